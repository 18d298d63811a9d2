//! Why a call to the broker failed.

use std::{fmt, io};

use zbus::fdo;

/// What the broker refused, by the name on the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The catalogue has no such tool, or it is masked.
    NoSuchTool,
    /// No session has this id, or it is no longer retained.
    NoSuchSession,
    /// The session belongs to another owner.
    NotOwner,
    /// The token is wrong, used or expired.
    BadToken,
    /// The workspace, or the working directory, cannot be one.
    InvalidWorkspace,
    /// Policy forbids it.
    NotPermitted,
    /// The profile cannot be enforced here.
    ConfinementUnavailable,
    /// A limit is reached.
    LimitReached,
    /// A step of opening failed.
    LaunchFailed,
    /// The session is closed.
    Closed,
    /// The cursor is beyond the end.
    BadCursor,
    /// More input than fits waits already.
    InputFull,
    /// The session has no terminal.
    NotATerminal,
    /// An argument or option is not what the contract says.
    InvalidArgs,
    /// The caller may not talk to the broker at all.
    AccessDenied,
    /// The bus or the broker has too much to do.
    LimitsExceeded,
}

/// The step of opening that failed, where the broker told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The step's word: `exec` and others.
    pub name: String,
    /// `errno`, 0 where there is none.
    pub errno: i32,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The broker said no.
    #[error("{message}")]
    Refused {
        /// Which no.
        refusal: Refusal,
        /// The broker's one line.
        message: String,
        /// The step of opening, for [`Refusal::LaunchFailed`].
        step: Option<Step>,
    },
    /// Nobody has the broker's name, and the bus did not start one.
    #[error("no broker is running: {reason}")]
    Absent {
        /// What the bus said.
        reason: String,
    },
    /// The bus knows how to start a broker, and that failed.
    #[error("the broker could not be started: {reason}")]
    Activation {
        /// What the bus said.
        reason: String,
    },
    /// The broker, its session or the connection to it went away.
    #[error("the broker is gone: {reason}")]
    Gone {
        /// How that showed.
        reason: String,
    },
    /// A reply or the connection is not as the contract says.
    #[error("the broker's answer cannot be understood: {source}")]
    Protocol {
        /// What was wrong with it.
        source: zbus::Error,
    },
    /// A reply lacks a key, or the key has another type.
    #[error("the broker's answer to {call} has no {key}")]
    Missing {
        /// The method.
        call: &'static str,
        /// The key.
        key: &'static str,
    },
    /// The attached stream's descriptor cannot be used.
    #[error("cannot use the attached stream: {source}")]
    Stream {
        /// The call's error.
        source: io::Error,
    },
}

impl ClientError {
    /// Which refusal it is, if it is one.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Refused { refusal, .. } => Some(*refusal),
            _ => None,
        }
    }
}

impl From<ClientError> for io::Error {
    /// For whoever wants a stream and knows of no broker: the kinds are those of connect(2).
    fn from(error: ClientError) -> Self {
        let kind = match &error {
            ClientError::Refused { refusal: Refusal::Closed | Refusal::NoSuchSession, .. } => {
                io::ErrorKind::NotFound
            }
            ClientError::Refused { .. } => io::ErrorKind::PermissionDenied,
            ClientError::Absent { .. } | ClientError::Activation { .. } => {
                io::ErrorKind::ConnectionRefused
            }
            ClientError::Gone { .. } => io::ErrorKind::ConnectionReset,
            ClientError::Protocol { .. } | ClientError::Missing { .. } => {
                io::ErrorKind::InvalidData
            }
            ClientError::Stream { source } => source.kind(),
        };
        Self::new(kind, error)
    }
}

impl From<zbus::Error> for ClientError {
    fn from(error: zbus::Error) -> Self {
        match error {
            zbus::Error::MethodError(name, detail, message) => {
                let body = message.body().deserialize::<(String, String, i32)>();
                let (detail, step) = match body {
                    Ok((text, name, errno)) => (Some(text), Some(Step { name, errno })),
                    Err(_) => (detail, None),
                };
                from_named(name.as_str(), detail.unwrap_or_default(), step).unwrap_or_else(|| {
                    Self::Protocol { source: zbus::Error::MethodError(name, None, message) }
                })
            }
            zbus::Error::FDO(error) => from_standard(*error),
            zbus::Error::InputOutput(source) => Self::Gone { reason: source.to_string() },
            source => Self::Protocol { source },
        }
    }
}

impl Refusal {
    /// The last part of the name on the bus.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSuchTool => "NoSuchTool",
            Self::NoSuchSession => "NoSuchSession",
            Self::NotOwner => "NotOwner",
            Self::BadToken => "BadToken",
            Self::InvalidWorkspace => "InvalidWorkspace",
            Self::NotPermitted => "NotPermitted",
            Self::ConfinementUnavailable => "ConfinementUnavailable",
            Self::LimitReached => "LimitReached",
            Self::LaunchFailed => "LaunchFailed",
            Self::Closed => "Closed",
            Self::BadCursor => "BadCursor",
            Self::InputFull => "InputFull",
            Self::NotATerminal => "NotATerminal",
            Self::InvalidArgs => "InvalidArgs",
            Self::AccessDenied => "AccessDenied",
            Self::LimitsExceeded => "LimitsExceeded",
        }
    }

    /// Those that the contract adds to the standard ones.
    const OWN: [Self; 13] = [
        Self::NoSuchTool,
        Self::NoSuchSession,
        Self::NotOwner,
        Self::BadToken,
        Self::InvalidWorkspace,
        Self::NotPermitted,
        Self::ConfinementUnavailable,
        Self::LimitReached,
        Self::LaunchFailed,
        Self::Closed,
        Self::BadCursor,
        Self::InputFull,
        Self::NotATerminal,
    ];
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn from_named(name: &str, message: String, step: Option<Step>) -> Option<ClientError> {
    let name = name.strip_prefix("org.st2.Tools.Error.")?;
    let refusal = Refusal::OWN.into_iter().find(|refusal| refusal.as_str() == name)?;
    Some(ClientError::Refused { refusal, message, step })
}

fn from_standard(error: fdo::Error) -> ClientError {
    use fdo::Error as E;
    let refused = |refusal, message| ClientError::Refused { refusal, message, step: None };
    match error {
        E::InvalidArgs(message) => refused(Refusal::InvalidArgs, message),
        E::AccessDenied(message) => refused(Refusal::AccessDenied, message),
        E::LimitsExceeded(message) => refused(Refusal::LimitsExceeded, message),
        // The object server's own word for a path without an object.
        E::UnknownObject(_) => refused(Refusal::NoSuchSession, "no session has this id".into()),
        E::ServiceUnknown(reason) | E::SpawnServiceNotFound(reason) | E::NameHasNoOwner(reason) => {
            ClientError::Absent { reason }
        }
        E::SpawnExecFailed(reason)
        | E::SpawnForkFailed(reason)
        | E::SpawnChildExited(reason)
        | E::SpawnChildSignaled(reason)
        | E::SpawnFailed(reason)
        | E::SpawnFailedToSetup(reason)
        | E::SpawnServiceNotValid(reason)
        | E::SpawnFileInvalid(reason)
        | E::TimedOut(reason) => ClientError::Activation { reason },
        E::NoReply(reason) | E::Disconnected(reason) => ClientError::Gone { reason },
        other => ClientError::Protocol { source: other.into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_contract_has_its_refusal() {
        for refusal in Refusal::OWN {
            let name = format!("org.st2.Tools.Error.{refusal}");
            let error = from_named(&name, "why".into(), None).unwrap();
            assert_eq!(error.refusal(), Some(refusal));
            assert_eq!(error.to_string(), "why");
        }
        assert!(from_named("org.st2.Tools.Error.Novel", String::new(), None).is_none());
        assert!(from_named("org.example.NotOwner", String::new(), None).is_none());
    }

    #[test]
    fn absent_refused_to_start_and_gone_are_told_apart() {
        let text = || "x".to_owned();
        assert!(matches!(
            from_standard(fdo::Error::ServiceUnknown(text())),
            ClientError::Absent { .. }
        ));
        assert!(matches!(
            from_standard(fdo::Error::SpawnChildExited(text())),
            ClientError::Activation { .. }
        ));
        assert!(matches!(from_standard(fdo::Error::NoReply(text())), ClientError::Gone { .. }));
    }
}
