//! What the core asks the world to do. It is performed in the order given.

use std::time::Duration;

use super::{deadline::Key, name::SessionId, outcome::Reason};
use crate::launch::spec::Failure;

/// How hard a session is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// HUP and TERM; KILL after this long.
    Stop {
        /// Never above the tool's stop timeout.
        within: Duration,
    },
    /// KILL at once.
    Kill,
}

/// Why an `Open` got no session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenFailure {
    /// A step failed.
    Launch(Failure),
    /// It was ended before the tool ran.
    Ended(Reason),
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Arm a deadline at this time since the broker began; the core keeps it itself.
    Arm(Key, Duration),
    /// Disarm a deadline; the core does it itself.
    Disarm(Key),
    /// Begin opening: the session has its turn.
    Launch(SessionId),
    /// Stop opening: kill the launcher, undo what was done. A launch failure follows, unless the tool had started.
    AbortLaunch(SessionId),
    /// End a started session, or end it harder. That its scope is empty follows once.
    End(SessionId, How),
    /// Answer the `Open`, show the session.
    Opened(SessionId),
    /// Answer the `Open` with what went wrong; nothing of the session is left.
    OpenFailed(SessionId, OpenFailure),
    /// Properties changed.
    Changed(SessionId),
    /// The outcome is there, and every byte before it can be read.
    Closed(SessionId),
    /// Forget all about it.
    Retired(SessionId),
}
