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
    engine::State,
    terminal::{Framing, Mode, Replay, Terminal, WeakTerminal},
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
        // Listed first, or a claim could come between the answer and what is given for it.
        let admission = terminal.admit(caller.connection.as_str(), mode);
        let need = if mode == Mode::Control { Need::Control } else { Need::Observe };
        self.engine.find(&self.id, caller, need).await?;
        if size.is_some() && mode == Mode::Observe {
            let text = "columns and rows go with mode \"control\" only";
            return Err(Error::InvalidArgs(text.to_owned()));
        }
        let attached = admission.with_size(size).attach(framing)?;
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
            return Ok(Framing::Pty(Arc::new(move || status(&state.borrow(), &terminal))));
        }
        Ok(Framing::Raw(match (cursor, replay) {
            (Some(cursor), _) => Replay::From(cursor),
            (None, Some(false)) => Replay::Nothing,
            (None, Some(true) | None) => Replay::Screen,
        }))
    }
}

/// What STATUS of a framed stream tells.
fn status(state: &State, terminal: &WeakTerminal) -> String {
    let stats = terminal.stats().unwrap_or_default();
    // That of the state follows it some time later.
    let size = terminal.size().unwrap_or(state.size);
    json!({
        "id": state.view.facts.id.as_str(),
        "phase": state.view.phase,
        "pid": state.view.ran.as_ref().map(|ran| ran.pid),
        "columns": size.columns,
        "rows": size.rows,
        "bytes_out": stats.bytes_out,
        "bytes_in": stats.bytes_in,
        "bytes_dropped": stats.bytes_dropped,
    })
    .to_string()
}
