//! A session of this server: what does not change of it, and what is followed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use tokio::sync::{self, OwnedMutexGuard, watch};

use super::{
    failure::{Code, Failure},
    text::Transcript,
};
use crate::client::{Dict, Outcome, Session};

/// What the MCP session ids begin with; the rest is the broker's id.
const PREFIX: &str = "session_";

/// What a session was opened as. It does not change.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The catalogue entry.
    pub agent: String,
    /// Canonical path of its workspace.
    pub root: String,
    /// Canonical path of its first working directory.
    pub cwd: String,
    /// Its argv.
    pub argv: Vec<String>,
    /// The file that was executed, where the broker tells it.
    pub program: Option<String>,
    /// Its leader, as the broker saw it.
    pub pid: Option<u64>,
    /// µs since the epoch.
    pub created_usec: u64,
    /// Attribution.
    pub labels: BTreeMap<String, String>,
    /// Whether it has pipes and no terminal.
    pub pipes: bool,
    /// Whether it was to have a terminal and has not.
    pub fallback: bool,
}

/// How following a session ended.
#[derive(Debug, Clone)]
pub enum End {
    /// It ended.
    Closed(Outcome),
    /// It cannot be followed any more: the broker is gone, or has forgotten it.
    Lost(String),
}

/// What changes of a session.
#[derive(Debug)]
pub struct State {
    /// What it has written. All cursors are offsets in it.
    pub transcript: Transcript,
    /// Its end, once every byte before it is in the transcript.
    pub end: Option<End>,
    /// When it last wrote.
    pub last_output: Option<SystemTime>,
    /// Up to where the last answered poll delivered.
    pub polled: u64,
    /// Bytes before that which no answer has shown, and no poll has told of: `exec` answered with the end alone.
    pub skipped: u64,
}

/// The right to type into a session.
pub type Turn = OwnedMutexGuard<()>;

/// A session of this server.
#[derive(Debug)]
pub struct Entry {
    /// The session itself.
    pub session: Session,
    /// What does not change of it.
    pub facts: Facts,
    state: Mutex<State>,
    changes: watch::Sender<u64>,
    turn: Arc<sync::Mutex<()>>,
}

impl Entry {
    /// One that has written nothing yet; `text_bytes` are kept of what it will write.
    #[must_use]
    pub fn new(session: Session, facts: Facts, text_bytes: usize) -> Self {
        let state = State {
            transcript: Transcript::new(text_bytes),
            end: None,
            last_output: None,
            polled: 0,
            skipped: 0,
        };
        Self {
            session,
            facts,
            state: Mutex::new(state),
            changes: watch::Sender::new(0),
            turn: Arc::default(),
        }
    }

    /// The id that clients know it by.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{PREFIX}{}", self.session.id())
    }

    /// The broker's id in an id that clients know.
    #[must_use]
    pub fn broker_id(id: &str) -> Option<&str> {
        id.strip_prefix(PREFIX)
    }

    /// What changes of it; not to be held across an await.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes it, and wakes whoever waits for that.
    pub fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changes.send_modify(|count| *count += 1);
    }

    /// Waits for the turn to type: they are given in the order in which they were first waited for, and nobody else
    /// types until this one is dropped.
    pub async fn turn(&self) -> Turn {
        self.turn.clone().lock_owned().await
    }

    /// Whether it has ended, and all that it wrote is known.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state().end.is_some()
    }

    /// Waits until a condition holds.
    pub async fn until(&self, mut holds: impl FnMut(&mut State) -> bool) {
        let mut changes = self.changes.subscribe();
        // The sender lives as long as `self`.
        let _ = changes.wait_for(|_| holds(&mut self.state())).await;
    }

    /// Waits until it has ended, and all that it wrote is known.
    pub async fn ended(&self) {
        self.until(|state| state.end.is_some()).await;
    }

    /// Whether it has these labels.
    #[must_use]
    pub fn is_labelled(&self, labels: &BTreeMap<String, String>) -> bool {
        labels.iter().all(|(name, value)| self.facts.labels.get(name) == Some(value))
    }
}

impl State {
    /// Refuses a cursor that nobody can have been given.
    ///
    /// # Errors
    /// `SESSION_RUNTIME_ERROR`, naming the cursor and the end.
    pub fn check(&self, what: &str, cursor: u64) -> Result<(), Failure> {
        let end = self.transcript.position();
        if cursor <= end {
            return Ok(());
        }
        let message = format!("{what} {cursor} is beyond the end, {end}");
        Err(Failure::recoverable(Code::SessionRuntimeError, message))
    }
}

impl Facts {
    /// The facts of a session, from its properties.
    #[must_use]
    pub fn of(properties: &Dict) -> Self {
        let text = |key| properties.text(key).unwrap_or_default().to_owned();
        Self {
            agent: text("Tool"),
            root: text("Workspace"),
            cwd: text("Cwd"),
            argv: properties.texts("Command").into_iter().map(str::to_owned).collect(),
            created_usec: properties.number("CreatedUsec").unwrap_or_default(),
            labels: properties.pairs("Labels"),
            pipes: properties.text("Io") == Some("pipe"),
            ..Self::default()
        }
    }
}
