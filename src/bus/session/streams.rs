//! Attached streams.

use std::{os::fd, sync::Arc};

use serde_json::json;
use zbus::{OwnedFd, message::Header};

use super::{Dict, Session};
use crate::{
    broker::access::Need,
    bus::{
        Error,
        options::{Options, size},
    },
    engine::{Act, Caller, State},
    host::pty::Size,
    terminal::{Framing, Mode, Replay, Stats, Terminal},
};

/// What carries the terminal's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carrier {
    /// A socket, and nothing but the bytes.
    Raw,
    /// A socket, in frames.
    Pty,
    /// The controller end itself.
    Direct,
}

impl Session {
    pub(super) async fn open_stream(
        &self,
        mut options: Options,
        header: &Header<'_>,
    ) -> Result<(OwnedFd, Dict), Error> {
        let carriers = [("raw", Carrier::Raw), ("pty", Carrier::Pty), ("direct", Carrier::Direct)];
        let carrier = options.one_of("framing", &carriers)?.unwrap_or(Carrier::Raw);
        if carrier == Carrier::Direct {
            return self.hold(options, header).await;
        }
        let modes = [("control", Mode::Control), ("observe", Mode::Observe)];
        let mode = options.one_of("mode", &modes)?.unwrap_or(Mode::Control);
        let terminal = self.terminal()?;
        let framing = self.framing(terminal, carrier, &mut options)?;
        let size = size(&mut options)?;
        let caller = self.caller(header, options.take("token")?)?;
        let who = caller.connection.clone();
        self.make_ready(mode, size, caller).await?;
        let attached = terminal.attach(who.as_str(), mode, framing)?;
        let size = terminal.size();
        let mut info = Dict::from([("columns", size.columns.into()), ("rows", size.rows.into())]);
        info.extend(attached.begin.map(|begin| ("begin", begin.into())));
        Ok((fd::OwnedFd::from(attached.socket).into(), info))
    }

    /// How a stream is to carry the session.
    fn framing(
        &self,
        terminal: &Terminal,
        carrier: Carrier,
        options: &mut Options,
    ) -> Result<Framing, Error> {
        let replay = options.one_of("replay", &[("screen", true), ("none", false)])?;
        let cursor = options.take("cursor")?;
        if carrier == Carrier::Pty {
            let (state, terminal) = (self.state.clone(), terminal.downgrade());
            return Ok(Framing::Pty(Arc::new(move || status(&state.borrow(), terminal.stats()))));
        }
        Ok(Framing::Raw(match (cursor, replay) {
            (Some(cursor), _) => Replay::From(cursor),
            (None, Some(false)) => Replay::Nothing,
            (None, Some(true) | None) => Replay::Screen,
        }))
    }

    /// Checks who is to be given a stream, and gives the terminal the size that it is to begin in.
    async fn make_ready(
        &self,
        mode: Mode,
        size: Option<Size>,
        caller: Caller,
    ) -> Result<(), Error> {
        if mode == Mode::Observe {
            self.engine.find(&self.id, caller, Need::Observe).await?;
            let text = "columns and rows go with mode \"control\" only";
            return size.map_or(Ok(()), |_| Err(Error::InvalidArgs(text.to_owned())));
        }
        self.engine.find(&self.id, caller.clone(), Need::Control).await?;
        if let Some(size) = size {
            self.engine.act(&self.id, caller, Act::Resize(size)).await?;
        }
        Ok(())
    }
}

/// What STATUS of a framed stream tells.
fn status(state: &State, stats: Option<Stats>) -> String {
    let stats = stats.unwrap_or_default();
    json!({
        "id": state.view.facts.id.as_str(),
        "phase": state.view.phase,
        "pid": state.view.ran.as_ref().map(|ran| ran.pid),
        "columns": state.size.columns,
        "rows": state.size.rows,
        "bytes_out": stats.bytes_out,
        "bytes_in": stats.bytes_in,
        "bytes_dropped": stats.bytes_dropped,
    })
    .to_string()
}
