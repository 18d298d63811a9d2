//! Exit statuses.

use std::{process::ExitCode, str::FromStr};

use nix::sys::signal::Signal;

use crate::client::{ClientError, Ending, Outcome, Step};

/// The exit status of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status(u8);

/// What a shell adds to the number of the signal that ended a program.
const SIGNALED: i32 = 128;

impl Status {
    /// All went well.
    pub(super) const SUCCESS: Self = Self(0);
    /// A failure of a subcommand that runs nothing.
    pub(super) const FAILURE: Self = Self(1);
    /// A failure of ours where the tool's own status is expected, as env(1) has it.
    pub(super) const OURS: Self = Self(125);
    /// The tool could not be executed.
    const NOT_EXECUTED: Self = Self(126);
    /// The tool was not found.
    const NOT_FOUND: Self = Self(127);
    /// Whoever read our output is gone.
    pub(super) const OUTPUT_CLOSED: Self = Self(128 + 13);

    /// The status that a signal leaves.
    pub(super) fn signaled(signal: Signal) -> Self {
        Self::of(SIGNALED + signal as i32)
    }

    /// The tool's own status, for the shell that started us.
    pub(super) fn of_outcome(outcome: &Outcome) -> Self {
        match &outcome.ending {
            Ending::Exited(code) => Self::of(*code),
            Ending::Signaled { signal, .. } => {
                number(signal).map_or(Self::OURS, |number| Self::of(SIGNALED + number))
            }
            Ending::Failed { step, .. } => Self::of_step(step),
        }
    }

    /// The status of an `Open` that failed: whether it was the tool that could not be executed.
    pub(super) fn of_open(error: &ClientError) -> Self {
        match error {
            ClientError::Refused { step: Some(step), .. } => Self::of_step(step),
            _ => Self::OURS,
        }
    }

    fn of_step(step: &Step) -> Self {
        match (step.name.as_str(), step.errno) {
            ("exec", nix::libc::ENOENT) => Self::NOT_FOUND,
            ("exec", _) => Self::NOT_EXECUTED,
            _ => Self::OURS,
        }
    }

    /// As wait(2) keeps it: the low eight bits.
    fn of(code: i32) -> Self {
        Self(code.to_le_bytes()[0])
    }
}

/// The number of a signal's name, real-time ones (`SIGRTMIN+3`) included.
fn number(name: &str) -> Option<i32> {
    if let Ok(signal) = Signal::from_str(name) {
        return Some(signal as i32);
    }
    let offset = match name.strip_prefix("SIGRTMIN")? {
        "" => 0,
        rest => rest.strip_prefix('+')?.parse::<u8>().ok()?,
    };
    Some(nix::libc::SIGRTMIN() + i32::from(offset))
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Dict;

    fn outcome(ending: Ending) -> Status {
        let ended = Dict::new().with("kind", "exited").with("code", 0_i32).with("reason", "exit");
        Status::of_outcome(&Outcome { ending, ..Outcome::try_from(&ended).unwrap() })
    }

    fn failed(name: &str, errno: i32) -> Status {
        let step = Step { name: name.into(), errno };
        outcome(Ending::Failed { step, message: String::new() })
    }

    #[test]
    fn a_tool_s_end_is_told_as_a_shell_tells_it() {
        assert_eq!(outcome(Ending::Exited(0)), Status(0));
        assert_eq!(outcome(Ending::Exited(255)), Status(255));
        let signaled =
            |signal: &str| outcome(Ending::Signaled { signal: signal.into(), core_dumped: false });
        assert_eq!(signaled("SIGKILL"), Status(137));
        assert_eq!(signaled("SIGRTMIN+2").0, SIGNALED.to_le_bytes()[0] + 36);
        assert_eq!(signaled("SIGNOVEL"), Status::OURS);
    }

    #[test]
    fn a_tool_that_never_ran_is_told_as_env_tells_it() {
        assert_eq!(failed("exec", nix::libc::ENOENT), Status(127));
        assert_eq!(failed("exec", nix::libc::EACCES), Status(126));
        assert_eq!(failed("scope", nix::libc::ENOENT), Status(125));
    }
}
