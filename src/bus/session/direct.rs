//! The controller end itself, for an owner whose terminal needs it.

use std::os::fd;

use zbus::{Fd, OwnedFd, Variant, message::Header};

use super::{Dict, Session};
use crate::{
    broker::access::Need,
    bus::{
        Error,
        options::{Options, size},
    },
    engine::Act,
    terminal::Mode,
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
        // Listed first, or a claim could come between the answer and what is given for it.
        let admission = terminal.admit(caller.connection.as_str(), Mode::Control);
        self.engine.find(&self.id, caller.clone(), Need::Control).await?;
        let held = admission.hold()?;
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
}
