//! How a session ended.

use crate::launch::spec::Failure;

/// How the leader's life ended, as wait(2) told it, or why it never began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this code.
    Exited(i32),
    /// It was ended by this signal number.
    Signaled {
        /// The signal's number.
        signal: i32,
        /// Whether a core was dumped.
        core_dumped: bool,
    },
    /// Its end could not be learnt, and why.
    Failed(Failure),
}

impl Ending {
    /// As a shell tells it: the exit code, or 128 and the number of the signal; -1 where it is not known.
    #[must_use]
    pub fn code(&self) -> i32 {
        match self {
            Self::Exited(code) => *code,
            Self::Signaled { signal, .. } => 128 + signal,
            Self::Failed(_) => -1,
        }
    }
}

/// Why a session ended. An open set on the wire: readers accept unknown words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The leader ended by itself.
    Exit,
    /// The owner asked, gently.
    ClosedByOwner,
    /// The owner asked, at once.
    KilledByOwner,
    /// The owner vanished and its grace ran out.
    OwnerVanished,
    /// A token lease ran out.
    LeaseExpired,
    /// The overall watchdog.
    Timeout,
    /// The no-output watchdog.
    SilenceTimeout,
    /// The unit named by `bind_unit` stopped.
    BoundUnitStopped,
    /// Somebody else told the service manager to stop the scope.
    StoppedByManager,
    /// The kernel's out-of-memory killer.
    OomKill,
    /// The broker is going down.
    BrokerShutdown,
}

impl Reason {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::ClosedByOwner => "closed-by-owner",
            Self::KilledByOwner => "killed-by-owner",
            Self::OwnerVanished => "owner-vanished",
            Self::LeaseExpired => "lease-expired",
            Self::Timeout => "timeout",
            Self::SilenceTimeout => "silence-timeout",
            Self::BoundUnitStopped => "bound-unit-stopped",
            Self::StoppedByManager => "stopped-by-manager",
            Self::OomKill => "oom-kill",
            Self::BrokerShutdown => "broker-shutdown",
        }
    }
}

/// What a session's processes used, as far as it could be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time of all its processes, microseconds.
    pub cpu_usec: u64,
    /// Peak of its memory, bytes.
    pub memory_peak: u64,
}

/// How a session ended, for good: never rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How the leader ended.
    pub ending: Ending,
    /// Why.
    pub reason: Reason,
    /// Unique name of the connection that asked; empty where nobody did.
    pub requester: String,
    /// When the tool's execve(2) had succeeded, µs since the epoch.
    pub started_usec: u64,
    /// When the end was confirmed, µs since the epoch.
    pub ended_usec: u64,
    /// Bytes of output in all, as far as the broker saw them.
    pub bytes_out: u64,
    /// Bytes of output that no reader can have any more.
    pub bytes_dropped: u64,
    /// Whether a direct holder took output that is in neither number.
    pub unseen: bool,
    /// Processes that could not be confirmed dead: 0, or a fault worth a report.
    pub survivors: u32,
    /// What it used.
    pub usage: Usage,
}
