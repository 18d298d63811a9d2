//! A session's object, without its interface.

use std::sync::Arc;

use tokio::sync::watch;
use zbus::message::Header;

use crate::{
    broker::name::SessionId,
    bus::{Callers, Error, guard::Answered},
    config::Limits,
    engine::{self, ControlError, State},
    terminal::{Channel, Terminal},
};

/// One session's object.
#[derive(Debug)]
pub struct Session {
    pub(super) engine: engine::Handle,
    pub(super) callers: Arc<Callers>,
    pub(super) id: SessionId,
    pub(super) state: watch::Receiver<State>,
    pub(super) channel: Channel,
    pub(super) limits: Limits,
}

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
        Self { engine, callers, id, state, channel, limits }
    }

    /// The terminal, where it has one.
    pub(super) fn terminal(&self) -> Result<&Terminal, Error> {
        let terminal = self.channel.terminal();
        Ok(terminal.ok_or_else(|| ControlError::NotATerminal(self.id.clone()))?)
    }
}

impl Answered for Session {
    async fn answered(&self, _: &Header<'_>) {}
}
