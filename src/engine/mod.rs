//! The engine: one task owns the core and its sessions' runs; edges send it requests and never hold a lock.
//!
//! Work that waits (opening, ending, watching a leader) is done by tasks of its own, which report back. So the
//! engine answers at once whatever a launcher, a service manager or a terminal does.

#![forbid(unsafe_code)]

mod command;
mod core;
mod ending;
mod notices;
mod opening;
mod opens;
mod quiet;
mod requests;
mod run;
mod watching;
mod wiring;

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

pub use self::{
    command::{Act, Caller, Claimed, ControlError, EndWish, OpenError, Opened},
    notices::{Notice, Notices},
    run::State,
};
use self::{
    command::{Command, OpenRequest},
    core::Engine,
    opening::Workshop,
};
use crate::{
    broker::{
        access::{Denied, Need},
        events::{EventsError, Page},
        lease::{Connection, Token},
        name::SessionId,
        ownership::TokenError,
    },
    config::Settings,
    host::{Host, tmpdir::TmpRoot},
    policy::resolved::Resolved,
    terminal::RingPool,
};

/// Requests on their way to the engine; a sender waits beyond that.
const QUEUE: usize = 1024;

/// What an engine works with.
#[derive(Debug)]
pub struct Parts<H> {
    /// Where sessions run.
    pub host: Arc<H>,
    /// The launcher's path.
    pub launcher: std::path::PathBuf,
    /// Where each session's `TMPDIR` is made.
    pub tmp_root: TmpRoot,
    /// What bounds all rings together.
    pub rings: RingPool,
    /// Limits and caps.
    pub settings: Arc<Settings>,
}

/// Draws the id of a session: 60 random bits, so that no two meet.
#[must_use]
pub fn draw_id() -> SessionId {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = [0; 12];
    getrandom::fill(&mut bytes).expect("the kernel has no randomness");
    let id: String = bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
    SessionId::new(id).expect("the letters are those of an id")
}

/// A way to reach the engine; cheap to clone. When the last is dropped, every session is ended.
#[derive(Debug, Clone)]
pub struct Handle(mpsc::Sender<Command>);

/// Starts an engine on the current runtime; gives a handle, and what it tells of its own accord.
#[must_use]
pub fn start<H: Host>(parts: Parts<H>) -> (Handle, Notices) {
    let (commands, incoming) = mpsc::channel(QUEUE);
    let (reports, reported) = mpsc::channel(QUEUE);
    let (notices, told) = notices::board();
    let Parts { host, launcher, tmp_root, rings, settings } = parts;
    let bounds = settings.limits.terminal_bounds();
    let workshop = Workshop { host, launcher, tmp_root, rings, bounds };
    let engine = Engine::new(workshop, settings, reports, notices);
    tokio::spawn(engine.run(incoming, reported));
    (Handle(commands), told)
}

impl Handle {
    /// Begins to open a session for a connection. When this returns the engine has the request, and a vanish that
    /// is told from then on finds the session. What it gives is ready once the tool runs; it fails with an
    /// [`OpenError`], and nothing of the session is left then.
    pub async fn open(
        &self,
        opener: Connection,
        id: SessionId,
        resolved: Resolved,
    ) -> impl Future<Output = Result<Opened, OpenError>> + use<> {
        let (reply, answer) = oneshot::channel();
        let request = OpenRequest { opener, id, resolved: Box::new(resolved), reply };
        let sent = self.0.send(Command::Open(request)).await.is_ok();
        async move {
            if !sent {
                return Err(OpenError::Stopping);
            }
            answer.await.unwrap_or(Err(OpenError::Stopping))
        }
    }

    /// The state of every session, live and retained, in the order of their ids.
    pub async fn sessions(&self) -> Vec<State> {
        self.ask(Command::List).await.unwrap_or_default()
    }

    /// The state of every session that a caller owns.
    pub async fn owned(&self, caller: Caller) -> Vec<State> {
        self.ask(|reply| Command::Owned(caller, reply)).await.unwrap_or_default()
    }

    /// Checks whether a caller may do something to a session.
    ///
    /// # Errors
    /// [`ControlError::Denied`].
    pub async fn find(
        &self,
        id: &SessionId,
        caller: Caller,
        need: Need,
    ) -> Result<(), ControlError> {
        let found = self.ask(|reply| Command::Find(id.clone(), caller, need, reply)).await;
        found.ok_or(ControlError::Stopping)?.map_err(|denied: Denied| denied.into())
    }

    /// Begins the end of a session; its outcome appears in the state.
    ///
    /// # Errors
    /// [`ControlError`]. Asking again, or after the end, is none.
    pub async fn end(
        &self,
        id: &SessionId,
        caller: Caller,
        wish: EndWish,
    ) -> Result<watch::Receiver<State>, ControlError> {
        let ended = self.ask(|reply| Command::End(id.clone(), caller, wish, reply)).await;
        ended.unwrap_or(Err(ControlError::Stopping))
    }

    /// Does something to a running session.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn act(&self, id: &SessionId, caller: Caller, act: Act) -> Result<(), ControlError> {
        let done = self.ask(|reply| Command::Act(id.clone(), caller, act, reply)).await;
        done.unwrap_or(Err(ControlError::Stopping))
    }

    /// Forgets a closed session.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn forget(&self, id: &SessionId, caller: Caller) -> Result<(), ControlError> {
        let done = self.ask(|reply| Command::Forget(id.clone(), caller, reply)).await;
        done.unwrap_or(Err(ControlError::Stopping))
    }

    /// Moves a lease to a connection.
    ///
    /// # Errors
    /// [`TokenError`].
    pub async fn claim(&self, token: String, caller: Connection) -> Result<Claimed, TokenError> {
        let claimed = self.ask(|reply| Command::Claim(token, caller, reply)).await;
        claimed.unwrap_or(Err(TokenError::Expired))
    }

    /// Renews a token lease; gives when it runs out, µs since the epoch.
    ///
    /// # Errors
    /// [`TokenError`].
    pub async fn renew(&self, token: String, caller: Connection) -> Result<u64, TokenError> {
        let renewed = self.ask(|reply| Command::Renew(token, caller, reply)).await;
        renewed.unwrap_or(Err(TokenError::Expired))
    }

    /// Makes a token with which others may observe or control a session.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn share(
        &self,
        id: &SessionId,
        caller: Caller,
        need: Need,
    ) -> Result<Token, ControlError> {
        let shared = self.ask(|reply| Command::Share(id.clone(), caller, need, reply)).await;
        shared.unwrap_or(Err(ControlError::Stopping))
    }

    /// The events after one that a connection may see, at most so many; none where the broker is going down.
    ///
    /// # Errors
    /// [`EventsError`].
    pub async fn events(
        &self,
        after: u64,
        limit: usize,
        caller: Connection,
    ) -> Result<Page, EventsError> {
        let page = self.ask(|reply| Command::Events(after, limit, caller, reply)).await;
        page.unwrap_or(Ok(Page { rows: Vec::new(), next: after }))
    }

    /// Tells that a connection has left the bus. Asking twice is harmless.
    pub async fn vanished(&self, connection: Connection) {
        let _ = self.0.send(Command::Vanished(connection)).await;
    }

    /// Ends every session, opens no more, and returns when nothing runs.
    pub async fn shut_down(&self) {
        let _ = self.ask(Command::Shutdown).await;
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.0.send(command(reply)).await.ok()?;
        answer.await.ok()
    }
}
