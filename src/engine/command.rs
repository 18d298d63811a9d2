//! What the edges ask of the engine, and what it answers.

use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::run::State;
use crate::{
    broker::{
        access::{Denied, Need},
        effect::OpenFailure,
        events::{EventsError, Page},
        lease::{Connection, Token},
        name::SessionId,
        outcome::Outcome,
        ownership::TokenError,
        registry::QuotaError,
        share::ShareError,
    },
    host::{HostError, pty::Size},
    policy::resolved::Resolved,
    terminal::{Channel, WriteError},
};

/// A session that opened.
#[derive(Debug)]
pub struct Opened {
    /// Its state, now and from now on.
    pub state: watch::Receiver<State>,
    /// The way of its bytes.
    pub channel: Channel,
    /// What claims its lease.
    pub token: String,
    /// Whether it was there before.
    pub reused: bool,
}

/// Why an `Open` got no session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// A quota is used up.
    #[error(transparent)]
    Quota(#[from] QuotaError),
    /// It was begun, and nothing of it is left.
    #[error("opening failed")]
    Failed(OpenFailure),
    /// The broker is going down.
    #[error("the broker is going down")]
    Stopping,
}

/// Why nothing was done to a session.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The caller may not.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// It has ended.
    #[error("session {0} has ended")]
    Closed(SessionId, Box<Outcome>),
    /// It is ending.
    #[error("session {0} is being closed")]
    Closing(SessionId),
    /// It runs, where only a closed one will do.
    #[error("session {0} has not ended; close it first")]
    NotClosed(SessionId),
    /// The program reads in raw mode, where no character means the end of input.
    #[error("session {0} reads its terminal in raw mode: there is no end-of-file character")]
    RawMode(SessionId),
    /// It has pipes.
    #[error("session {0} has no terminal: its io is \"pipe\"")]
    NotATerminal(SessionId),
    /// What was written before is still to be read.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// It is shared as often as may be.
    #[error(transparent)]
    Share(#[from] ShareError),
    /// The host could not.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The engine is gone.
    #[error("the broker is going down")]
    Stopping,
}

/// What a claim gave.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The token from now on.
    pub token: String,
    /// The sessions that came with it.
    pub sessions: Vec<SessionId>,
}

/// Who asks, and what entitles them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The connection.
    pub connection: Connection,
    /// A token shown with this call.
    pub token: Option<String>,
}

/// How a session's owner wants it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndWish {
    /// Gently, and no later than so long.
    Close(Option<Duration>),
    /// At once.
    Kill,
}

/// What is done to a running session's processes or its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Send a signal to the foreground process group; to the leader's, where there is no terminal.
    Signal(i32),
    /// Do what Ctrl-C would.
    Interrupt,
    /// Do what Ctrl-D would at the beginning of a line; close standard input, where there is no terminal.
    EndOfFile,
    /// Freeze or thaw all of it.
    Freeze(bool),
    /// Give the terminal a size.
    Resize(Size),
}

/// A session that is to be opened.
#[derive(Debug)]
pub(super) struct OpenRequest {
    pub opener: Connection,
    pub id: SessionId,
    pub resolved: Box<Resolved>,
    pub reply: Reply<Result<Opened, OpenError>>,
}

type Reply<T> = oneshot::Sender<T>;

/// One request to the engine.
#[derive(Debug)]
pub(super) enum Command {
    Open(OpenRequest),
    List(Reply<Vec<State>>),
    Find(SessionId, Caller, Need, Reply<Result<(), Denied>>),
    End(SessionId, Caller, EndWish, Reply<Result<watch::Receiver<State>, ControlError>>),
    Act(SessionId, Caller, Act, Reply<Result<(), ControlError>>),
    Forget(SessionId, Caller, Reply<Result<(), ControlError>>),
    Claim(String, Connection, Reply<Result<Claimed, TokenError>>),
    Renew(String, Connection, Reply<Result<u64, TokenError>>),
    Owned(Caller, Reply<Vec<State>>),
    Share(SessionId, Caller, Need, Reply<Result<Token, ControlError>>),
    Events(u64, usize, Connection, Reply<Result<Page, EventsError>>),
    Vanished(Connection),
    Shutdown(Reply<()>),
}
