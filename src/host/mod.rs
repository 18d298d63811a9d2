//! The operating system's edge: ptys, pipes, the launcher, scopes. The only place, with `launch/`, that holds `unsafe`.

use std::{fmt::Debug, future::Future, io, path::PathBuf, time::Duration};

use crate::{
    broker::{
        name::{SessionId, UnitName},
        outcome::Usage,
    },
    host::pidfd::PidFd,
    launch::{
        report::Gap,
        spec::{Failure, Step, Supervise},
    },
};

pub mod cgroup;
pub mod child;
pub mod hardening;
pub mod limits;
pub mod origin;
pub mod pidfd;
pub mod pipes;
pub mod portable;
pub mod probe;
pub mod pty;
pub mod reading;
mod remove;
pub mod spawn;
pub mod systemd;
pub mod tmpdir;
pub mod unread;
pub mod watch;

/// What a host asks of the service manager for one session.
#[derive(Debug, Clone)]
pub struct ScopeSpec {
    /// The session.
    pub id: SessionId,
    /// The scope's name.
    pub unit: UnitName,
    /// One line for `systemctl status`.
    pub description: String,
    /// From TERM to KILL.
    pub stop_timeout: Duration,
    /// Backstop of the broker's own watchdog.
    pub runtime_max: Option<Duration>,
    /// Bytes.
    pub memory_max: Option<u64>,
    /// Processes and threads.
    pub tasks_max: Option<u64>,
    /// A unit that the session ends with.
    pub bind_unit: Option<UnitName>,
}

/// Who ended a session whose leader is gone without our asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// The leader itself.
    Itself,
    /// A stop that somebody else asked of the service manager.
    Manager,
    /// The unit named by `bind_unit`, which stopped.
    BoundUnit,
    /// The broker's own unit, which is stopping: sessions stop before it does.
    Broker,
    /// The runtime backstop.
    Timeout,
    /// The kernel's out-of-memory killer.
    OutOfMemory,
}

/// A way to run sessions so that each can be ended whole.
pub trait Host: Debug + Send + Sync + 'static {
    /// One session's place.
    type Place: Place;

    /// `systemd` or `portable`.
    fn backend(&self) -> &'static str;

    /// What this host cannot promise.
    fn gaps(&self) -> Vec<Gap>;

    /// How a launcher for this session must stay to watch its tool; makes the session's cgroup where the host has one.
    ///
    /// # Errors
    /// [`HostError::System`] where the cgroup cannot be made.
    fn supervise(&self, id: &SessionId) -> Result<Option<Supervise>, HostError>;

    /// Takes back what [`Host::supervise`] made for a session that will not be placed; asked for after the launcher's end.
    fn abandon(&self, id: &SessionId);

    /// Places a launcher that waits at the gate. On error nothing of the place is left, and the launcher is
    /// killed: it may be in a scope that is yet to come.
    fn place(
        &self,
        scope: &ScopeSpec,
        launcher: &PidFd,
    ) -> impl Future<Output = Result<Self::Place, HostError>> + Send;

    /// Ends everything of an earlier broker's in our slice; gives how many units that were.
    fn sweep(&self) -> impl Future<Output = Result<usize, HostError>> + Send;
}

/// One session's place: everything that runs in it, and nothing else.
pub trait Place: Debug + Send + Sync + 'static {
    /// Starts the gentle end: TERM and HUP to all, KILL by the manager after the scope's stop timeout.
    fn stop(&self) -> impl Future<Output = Result<(), HostError>> + Send;

    /// Ends all at once (`cgroup.kill` where there is one).
    fn kill(&self) -> impl Future<Output = Result<(), HostError>> + Send;

    /// Waits until nothing runs in it, at most so long; gives how many still do.
    fn emptied(&self, at_most: Duration) -> impl Future<Output = u32> + Send;

    /// Freezes or thaws all.
    fn freeze(&self, frozen: bool) -> impl Future<Output = Result<(), HostError>> + Send;

    /// Sends a signal to every member of this process group that runs in the place, by pidfd; gives how many that were.
    ///
    /// # Errors
    /// [`HostError::System`] where the members cannot be listed or the signal is none.
    fn signal_group(&self, group: i32, signal: i32) -> Result<u32, HostError>;

    /// Who ended it: asked after the leader's end and before anything else is asked of the place, when
    /// we did not ask for the end.
    fn ended_by(&self) -> impl Future<Output = EndedBy> + Send;

    /// What it used so far, or in all once it has ended; zero for what is not known.
    fn usage(&self) -> impl Future<Output = Usage> + Send;

    /// Lets go of what is kept of an empty place (the pinned unit, the cgroup).
    fn retire(&self) -> impl Future<Output = ()> + Send;
}

/// What went wrong at the edge.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried, as a verb and its object.
        what: &'static str,
        /// The call's error.
        source: io::Error,
    },
    /// The service manager, or the way to it, failed.
    #[error("the service manager did not {what}: {source}")]
    Manager {
        /// What it was to do.
        what: &'static str,
        /// What the bus says.
        source: zbus::Error,
    },
    /// The service manager did not answer, or not finish, in time.
    #[error("the service manager did not {what} in time")]
    Silent {
        /// What it was to do.
        what: &'static str,
    },
    /// A job of the service manager did not end well.
    #[error("the job that starts {unit} ended with {result:?}")]
    Job {
        /// The unit.
        unit: UnitName,
        /// The job's result.
        result: String,
    },
    /// The launcher is elsewhere than in its scope.
    #[error("the launcher is in {}, not in {unit}", found.display())]
    Misplaced {
        /// Where it should be.
        unit: UnitName,
        /// Its control group.
        found: PathBuf,
    },
    /// The launcher ended before it was placed.
    #[error("the launcher ended before it was placed")]
    Ended,
    /// The unit to bind a session to is not active.
    #[error("unit {unit} is {state}, and only an active unit can be bound to")]
    BoundUnit {
        /// The unit.
        unit: UnitName,
        /// Its state.
        state: String,
    },
}

impl HostError {
    pub(crate) fn system(what: &'static str, source: impl Into<io::Error>) -> Self {
        Self::System { what, source: source.into() }
    }

    pub(crate) fn manager(what: &'static str, source: zbus::Error) -> Self {
        Self::Manager { what, source }
    }

    /// Whether the service manager says that there is no such unit (any more).
    pub(crate) fn is_no_such_unit(&self) -> bool {
        let Self::Manager { source: zbus::Error::MethodError(name, ..), .. } = self else {
            return false;
        };
        name.as_str() == "org.freedesktop.systemd1.NoSuchUnit"
    }

    /// The system's number for the error, 0 where there is none.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::System { source, .. } => source.raw_os_error().unwrap_or_default(),
            Self::Silent { .. } => libc::ETIMEDOUT,
            Self::Ended => libc::ESRCH,
            Self::Manager { .. } | Self::Job { .. } | Self::Misplaced { .. } => 0,
            Self::BoundUnit { .. } => 0,
        }
    }

    /// The error as the failure of a step of opening.
    #[must_use]
    pub fn at(&self, step: Step) -> Failure {
        Failure { step, errno: self.errno(), message: self.to_string() }
    }
}
