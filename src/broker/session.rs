//! One session's life: phase × event → effects. No I/O, no clock, no flag beside the phase.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, time::Duration};

use super::{
    clock::Now,
    effect::Effect,
    lease::{Connection, LeaseId},
    name::{SessionId, ToolName, UnitName},
    outcome::{Ending, Outcome, Reason, Usage},
};
use crate::launch::{
    report::Report,
    spec::{Failure, Io},
};

mod transitions;

/// How a session's bytes are asked to be carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoWish {
    /// By a pty, or by pipes.
    pub io: Io,
    /// Whether pipes may take the place of a pty that cannot be opened.
    pub fallback: bool,
    /// Whether a tool on pipes can be written to.
    pub input: bool,
}

/// What is settled about a session before it opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Its id.
    pub id: SessionId,
    /// The connection that asked for it.
    pub opener: Connection,
    /// Its tool.
    pub tool: ToolName,
    /// Its whole argv.
    pub command: Vec<OsString>,
    /// How many of its last arguments are an agent's prompt.
    pub prompt_words: usize,
    /// Its workspace.
    pub workspace: PathBuf,
    /// Its working directory.
    pub cwd: PathBuf,
    /// How its bytes were asked to be carried.
    pub io: IoWish,
    /// Its scope.
    pub unit: UnitName,
    /// When it was asked for, µs since the epoch.
    pub created_usec: u64,
    /// Attribution.
    pub labels: BTreeMap<String, String>,
    /// Whether only its owner may observe it.
    pub private: bool,
    /// How long it outlives a vanished owner; zero is not at all.
    pub grace: Duration,
    /// Overall watchdog.
    pub timeout: Option<Duration>,
    /// No-output watchdog.
    pub silence: Option<Duration>,
    /// From the first gentle signal to SIGKILL.
    pub stop_timeout: Duration,
}

/// Why a session is ending, settled once: the first forced reason wins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Why.
    pub reason: Reason,
    /// Unique name of the connection that asked, or empty.
    pub requester: String,
}

/// When a tool began to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// µs since the epoch.
    pub started_usec: u64,
    /// Process id of the leader, for people.
    pub pid: u32,
    /// What the kernel accepted.
    pub confinement: Box<Report>,
}

/// Where a session is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Its owner has enough opens in flight: it waits its turn.
    Waiting,
    /// The launcher is on its way.
    Opening,
    /// It was ended while the launcher was on its way.
    Aborting(Cause),
    /// The tool runs.
    Running(Running),
    /// The scope is being emptied.
    Closing {
        /// How it had run.
        ran: Running,
        /// Why it ends.
        cause: Cause,
        /// How the leader ended, once it has.
        ending: Option<Ending>,
    },
    /// It ended.
    Closed {
        /// How it had run.
        ran: Running,
        /// How it ended.
        outcome: Outcome,
    },
    /// It never ran, or was forgotten: no trace of it is kept.
    Gone,
}

impl Phase {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Waiting | Self::Opening => "opening",
            Self::Running(_) => "running",
            Self::Aborting(_) | Self::Closing { .. } => "closing",
            Self::Closed { .. } | Self::Gone => "closed",
        }
    }
}

/// What is left to say once a scope is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emptied {
    /// Processes that could not be confirmed dead.
    pub survivors: u32,
    /// How the leader ended, as far as it is known: its own event may come later.
    pub ending: Option<Ending>,
    /// What was used.
    pub usage: Usage,
    /// Bytes of output in all.
    pub bytes_out: u64,
    /// Bytes of output that no reader can have any more.
    pub bytes_dropped: u64,
    /// Whether a direct holder took output that is in neither number.
    pub unseen: bool,
}

/// What happened to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It is its turn to open.
    Turn,
    /// `execve` succeeded.
    Started {
        /// Process id of the leader.
        pid: u32,
        /// What the kernel accepted.
        confinement: Box<Report>,
    },
    /// A step of opening failed; nothing of it is left.
    LaunchFailed(Failure),
    /// The leader ended.
    LeaderExited {
        /// How.
        ending: Ending,
        /// Why, as far as the host can tell.
        reason: Reason,
    },
    /// Nothing runs in the scope, and the terminal is drained.
    ScopeEmpty(Emptied),
    /// Its owner asked for a gentle end.
    CloseRequested {
        /// Who.
        requester: String,
        /// Shorter than the tool's stop timeout, where asked.
        within: Option<Duration>,
    },
    /// Its owner asked for an end at once.
    KillRequested {
        /// Who.
        requester: String,
    },
    /// Its owner vanished.
    OwnerVanished,
    /// Its lease was claimed.
    Claimed,
    /// Its grace ran out.
    GraceElapsed,
    /// Its token lease ran out.
    LeaseElapsed,
    /// Its overall watchdog.
    TimeoutElapsed,
    /// Its no-output watchdog.
    SilenceElapsed,
    /// It has been kept long enough, or its owner asked to forget it.
    Forgotten,
    /// The broker is going down.
    Shutdown,
}

/// One session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// What is settled.
    pub facts: Facts,
    /// The lease it lives by.
    pub lease: LeaseId,
    /// Where it is.
    pub phase: Phase,
    /// When its grace ends, µs since the epoch; 0 while none runs.
    pub grace_deadline_usec: u64,
}

impl Session {
    /// Makes a session that waits for its turn.
    #[must_use]
    pub fn new(facts: Facts, lease: LeaseId) -> Self {
        Self { facts, lease, phase: Phase::Waiting, grace_deadline_usec: 0 }
    }

    /// Whether it counts against the limit of live sessions.
    #[must_use]
    pub fn is_live(&self) -> bool {
        match self.phase {
            Phase::Waiting
            | Phase::Opening
            | Phase::Aborting(_)
            | Phase::Running(_)
            | Phase::Closing { .. } => true,
            Phase::Closed { .. } | Phase::Gone => false,
        }
    }

    /// How it ended, once it has.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Closed { outcome, .. } => Some(outcome),
            _ => None,
        }
    }

    /// How its leader ended, once it has, and why the session ends.
    #[must_use]
    pub fn ending(&self) -> Option<(Ending, Reason)> {
        match &self.phase {
            Phase::Closing { cause, ending, .. } => ending.clone().map(|it| (it, cause.reason)),
            Phase::Closed { outcome, .. } => Some((outcome.ending.clone(), outcome.reason)),
            Phase::Waiting
            | Phase::Opening
            | Phase::Aborting(_)
            | Phase::Running(_)
            | Phase::Gone => None,
        }
    }

    /// How it runs or had run, once it has.
    #[must_use]
    pub fn ran(&self) -> Option<&Running> {
        match &self.phase {
            Phase::Running(ran) | Phase::Closing { ran, .. } | Phase::Closed { ran, .. } => {
                Some(ran)
            }
            Phase::Waiting | Phase::Opening | Phase::Aborting(_) | Phase::Gone => None,
        }
    }

    /// Takes an event: changes the phase, gives what must be done.
    pub fn on(&mut self, event: Event, now: Now) -> Vec<Effect> {
        let phase = std::mem::replace(&mut self.phase, Phase::Gone);
        let (phase, effects) = match phase {
            Phase::Waiting => self.while_waiting(event),
            Phase::Opening => self.while_opening(event, now),
            Phase::Aborting(cause) => self.while_aborting(cause, event, now),
            Phase::Running(ran) => self.while_running(ran, event, now),
            Phase::Closing { ran, cause, ending } => {
                self.while_closing(ran, cause, ending, event, now)
            }
            Phase::Closed { ran, outcome } => self.while_closed(ran, outcome, event),
            Phase::Gone => (Phase::Gone, Vec::new()),
        };
        self.phase = phase;
        effects
    }
}

#[cfg(test)]
pub(super) mod tests;
