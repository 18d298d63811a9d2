//! How the methods of a session reach the engine.

use std::sync::{Arc, Mutex};

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
    engine::{self, Act, Caller, EndWish, State},
    terminal::Terminal,
};

impl Session {
    /// Makes a session's object.
    pub fn new(
        engine: engine::Handle,
        callers: Arc<Callers>,
        state: watch::Receiver<State>,
        terminal: Terminal,
        limits: Limits,
    ) -> Self {
        let id = state.borrow().view.facts.id.clone();
        Self { engine, callers, id, state, terminal, holder: Mutex::default(), limits }
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

    pub(super) fn ending(&self) -> Option<Outcome> {
        self.state.borrow().view.outcome.clone()
    }
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
