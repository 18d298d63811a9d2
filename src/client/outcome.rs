//! How a session ended, read from the contract's `a{sv}`.

use super::{ClientError, Dict, Step};

/// How the leader ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this code.
    Exited(i32),
    /// It was ended by the signal of this name, such as `SIGTERM`.
    Signaled {
        /// The signal's name.
        signal: String,
        /// Whether a core was dumped.
        core_dumped: bool,
    },
    /// It never started.
    Failed {
        /// Which step, and its `errno`.
        step: Step,
        /// The broker's one line.
        message: String,
    },
}

/// How a session ended, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How.
    pub ending: Ending,
    /// Why: an open set of words; `exit` is the tool's own end.
    pub reason: String,
    /// Unique name of the connection that asked for the end; empty where nobody did.
    pub requester: String,
    /// Bytes of output, as far as the broker saw it.
    pub bytes_out: u64,
    /// Bytes of output that can be read no longer.
    pub bytes_dropped: u64,
    /// Whether a direct holder took output, which is in neither number.
    pub unseen: bool,
    /// Processes that could not be confirmed dead.
    pub survivors: u64,
}

impl TryFrom<&Dict> for Outcome {
    type Error = ClientError;

    fn try_from(dict: &Dict) -> Result<Self, ClientError> {
        let missing = |key| ClientError::Missing { call: "Wait", key };
        let text = |key| dict.text(key).map(str::to_owned);
        let ending = match dict.text("kind") {
            Some("exited") => Ending::Exited(dict.signed("code").ok_or(missing("code"))?),
            Some("signaled") => Ending::Signaled {
                signal: text("signal").ok_or(missing("signal"))?,
                core_dumped: dict.flag("core_dumped").unwrap_or(false),
            },
            Some("failed") => Ending::Failed {
                step: Step {
                    name: text("step").unwrap_or_default(),
                    errno: dict.signed("errno").unwrap_or(0),
                },
                message: text("message").unwrap_or_default(),
            },
            _ => return Err(missing("kind")),
        };
        Ok(Self {
            ending,
            reason: text("reason").ok_or(missing("reason"))?,
            requester: text("requester").unwrap_or_default(),
            bytes_out: dict.number("bytes_out").unwrap_or(0),
            bytes_dropped: dict.number("bytes_dropped").unwrap_or(0),
            unseen: dict.flag("unseen").unwrap_or(false),
            survivors: dict.number("survivors").unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_read() {
        let dict = Dict::new().with("kind", "exited").with("code", 3_i32).with("reason", "exit");
        assert_eq!(Outcome::try_from(&dict).unwrap().ending, Ending::Exited(3));
        let dict = Dict::new()
            .with("kind", "signaled")
            .with("signal", "SIGKILL")
            .with("reason", "oom-kill")
            .with("survivors", 2_u32);
        let outcome = Outcome::try_from(&dict).unwrap();
        let signal = "SIGKILL".to_owned();
        assert_eq!(outcome.ending, Ending::Signaled { signal, core_dumped: false });
        assert_eq!((outcome.reason.as_str(), outcome.survivors), ("oom-kill", 2));
    }

    #[test]
    fn an_answer_without_its_keys_is_an_error_that_names_them() {
        let error = Outcome::try_from(&Dict::new()).unwrap_err();
        assert_eq!(error.to_string(), "the broker's answer to Wait has no kind");
        let dict = Dict::new().with("kind", "exited").with("code", "3");
        assert!(Outcome::try_from(&dict).is_err(), "a code of another type is no code");
    }
}
