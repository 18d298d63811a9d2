//! The controller end itself, for an owner whose terminal needs it.

use std::{os::fd, sync::PoisonError};

use zbus::{Fd, OwnedFd, Variant, message::Header};

use super::{Dict, Session};
use crate::{
    broker::access::Need,
    bus::{
        Error,
        options::{Options, size},
    },
    engine::Act,
};

impl Session {
    /// Lends the controller end to a caller that may control the session.
    pub(super) async fn hold(
        &self,
        mut options: Options,
        header: &Header<'_>,
    ) -> Result<(OwnedFd, Dict), Error> {
        options.one_of("mode", &[("control", ())])?;
        if options.rest().any(|key| ["cursor", "replay"].contains(&key)) {
            let text = "cursor and replay do not go with framing \"direct\"";
            return Err(Error::InvalidArgs(text.to_owned()));
        }
        let (terminal, size) = (self.terminal()?, size(&mut options)?);
        let caller = self.caller(header, options.take("token")?)?;
        self.engine.find(&self.id, caller.clone(), Need::Control).await?;
        self.make_way().await;
        let held = {
            let mut holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
            let held = terminal.hold()?;
            *holder = Some(caller.clone());
            held
        };
        if let Some(size) = size {
            self.engine.act(&self.id, caller, Act::Resize(size)).await?;
        }
        let size = terminal.size();
        let info = Dict::from([
            ("controller", Variant::Fd(Fd::from(held.controller))),
            ("begin", held.begin.into()),
            ("columns", size.columns.into()),
            ("rows", size.rows.into()),
        ]);
        Ok((fd::OwnedFd::from(held.socket).into(), info))
    }

    /// Takes the controller end back from a holder that may control the session no longer, as when its lease was
    /// claimed by another.
    pub(super) async fn make_way(&self) {
        let holder = || self.holder.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(fenced) = holder().clone() else { return };
        if self.engine.find(&self.id, fenced.clone(), Need::Control).await.is_err() {
            let mut holder = holder();
            if holder.as_ref() == Some(&fenced) {
                *holder = None;
                if let Some(terminal) = self.channel.terminal() {
                    terminal.take_back();
                }
            }
        }
    }
}
