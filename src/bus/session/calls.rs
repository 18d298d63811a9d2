//! How the methods of a session reach the engine.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::sync::watch;
use zbus::message::Header;

use super::Session;
use crate::{
    broker::{access::Need, outcome::Outcome},
    bus::{
        Callers, Error,
        dict::{self, Dict},
        error::Contract,
        options::Options,
    },
    config::Limits,
    engine::{self, Act, Caller, ControlError, EndWish, State},
    host::pty::Size,
    terminal::{Channel, Framing, Mode, Replay, Stats, Terminal},
};

impl Session {
    /// Makes a session's object.
    pub fn new(
        engine: engine::Handle,
        callers: Arc<Callers>,
        state: watch::Receiver<State>,
        channel: Channel,
        limits: Limits,
    ) -> Self {
        let id = state.borrow().view.facts.id.clone();
        Self { engine, callers, id, state, channel, holder: Mutex::default(), limits }
    }

    /// The terminal, where it has one.
    pub(super) fn terminal(&self) -> Result<&Terminal, Error> {
        let terminal = self.channel.terminal();
        Ok(terminal.ok_or_else(|| ControlError::NotATerminal(self.id.clone()))?)
    }

    pub(super) fn caller(
        &self,
        header: &Header<'_>,
        token: Option<String>,
    ) -> Result<Caller, Error> {
        Ok(Caller { connection: self.callers.connection(header)?, token })
    }

    /// Checks a caller; the token may be in the options.
    pub(super) async fn admit(
        &self,
        header: &Header<'_>,
        options: &mut Options,
        need: Need,
    ) -> Result<(), Error> {
        let caller = self.caller(header, options.take("token")?)?;
        Ok(self.engine.find(&self.id, caller, need).await?)
    }

    pub(super) async fn act(&self, header: &Header<'_>, act: Act) -> Result<(), Error> {
        Ok(self.engine.act(&self.id, self.caller(header, None)?, act).await?)
    }

    pub(super) async fn end(&self, caller: Caller, wish: EndWish) -> Result<Dict, Error> {
        let mut state = self.engine.end(&self.id, caller, wish).await?;
        ended(&mut state).await.map(|outcome| dict::outcome(Some(&outcome)))
    }

    /// How a stream is to carry the session.
    pub(super) fn framing(
        &self,
        terminal: &Terminal,
        options: &mut Options,
    ) -> Result<Framing, Error> {
        let framed = options.one_of("framing", &[("raw", false), ("pty", true)])?.unwrap_or(false);
        let replay = options.one_of("replay", &[("screen", true), ("none", false)])?;
        let cursor = options.take("cursor")?;
        if framed {
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
    pub(super) async fn make_ready(
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
        self.make_way().await;
        if let Some(size) = size {
            self.engine.act(&self.id, caller, Act::Resize(size)).await?;
        }
        Ok(())
    }

    pub(super) fn ending(&self) -> Option<Outcome> {
        self.state.borrow().view.outcome.clone()
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

/// Waits for the outcome.
pub(super) async fn ended(state: &mut watch::Receiver<State>) -> Result<Outcome, Error> {
    let ended = state.wait_for(|state| state.view.outcome.is_some()).await;
    let outcome = ended.ok().and_then(|state| state.view.outcome.clone());
    outcome.ok_or_else(|| Contract::NoSuchSession("the session was forgotten".to_owned()).into())
}

/// The number of a signal's name, with or without `SIG`.
pub(super) fn signal(name: &str) -> Result<i32, Error> {
    let full = if name.starts_with("SIG") { name.to_owned() } else { format!("SIG{name}") };
    let signal: nix::sys::signal::Signal = full.parse().map_err(|_| {
        Error::InvalidArgs(format!("{name:?} is not the name of a signal, such as \"SIGTERM\""))
    })?;
    Ok(signal as i32)
}
