//! Errors as the bus shows them: a small set of names, one line each.

use zbus::DBusError;

use crate::{
    broker::{
        access::Denied,
        effect::OpenFailure,
        events::EventsError,
        outcome::{Ending, Outcome},
        ownership::TokenError,
    },
    engine::{ControlError, OpenError},
    launch::spec::Failure,
    policy::refusal::Refusal,
    terminal::{
        AttachError, PasteError, ReadError, ScreenError, TypeError, WriteError, keys::KeyError,
    },
};

/// `org.st2.Tools.Error.*`.
#[derive(Debug, DBusError)]
#[zbus(prefix = "org.st2.Tools.Error")]
pub enum Contract {
    /// No such entry in the catalogue, or a masked one.
    NoSuchTool(String),
    /// Never was, or no longer retained.
    NoSuchSession(String),
    /// Another's session.
    NotOwner(String),
    /// Wrong, used or expired.
    BadToken(String),
    /// Not a directory that a tool may have.
    InvalidWorkspace(String),
    /// Policy; names the rule.
    NotPermitted(String),
    /// What the profile asks for cannot be enforced here.
    ConfinementUnavailable(String),
    /// Names the limit.
    LimitReached(String),
    /// Names the step and the system's error, in words and again each by itself: `ssi`.
    LaunchFailed(String, String, i32),
    /// It has ended; tells how.
    Closed(String),
    /// A cursor beyond the end.
    BadCursor(String),
    /// The tool does not read what was written.
    InputFull(String),
    /// The session has no terminal.
    NotATerminal(String),
}

/// What a method may fail with.
#[derive(Debug)]
pub enum Error {
    /// One of ours.
    Contract(Contract),
    /// `org.freedesktop.DBus.Error.InvalidArgs`.
    InvalidArgs(String),
    /// `org.freedesktop.DBus.Error.AccessDenied`.
    AccessDenied(String),
    /// `org.freedesktop.DBus.Error.Failed`: not the caller's fault.
    Failed(String),
}

impl DBusError for Error {
    fn create_reply(&self, call: &zbus::message::Header<'_>) -> zbus::Result<zbus::Message> {
        match self {
            Self::Contract(error) => error.create_reply(call),
            other => other.standard().create_reply(call),
        }
    }

    fn name(&self) -> zbus::names::ErrorName<'_> {
        let standard = |name| zbus::names::ErrorName::from_static_str_unchecked(name);
        match self {
            Self::Contract(error) => error.name(),
            Self::InvalidArgs(_) => standard("org.freedesktop.DBus.Error.InvalidArgs"),
            Self::AccessDenied(_) => standard("org.freedesktop.DBus.Error.AccessDenied"),
            Self::Failed(_) => standard("org.freedesktop.DBus.Error.Failed"),
        }
    }

    fn description(&self) -> Option<&str> {
        match self {
            Self::Contract(error) => error.description(),
            Self::InvalidArgs(text) | Self::AccessDenied(text) | Self::Failed(text) => Some(text),
        }
    }
}

impl Error {
    fn standard(&self) -> zbus::fdo::Error {
        let text = self.description().unwrap_or_default().to_owned();
        match self {
            Self::InvalidArgs(_) => zbus::fdo::Error::InvalidArgs(text),
            Self::AccessDenied(_) => zbus::fdo::Error::AccessDenied(text),
            Self::Failed(_) | Self::Contract(_) => zbus::fdo::Error::Failed(text),
        }
    }

    /// The session has ended, and how.
    #[must_use]
    pub fn closed(session: &impl std::fmt::Display, outcome: &Outcome) -> Self {
        let how = match &outcome.ending {
            Ending::Exited(code) => format!("exited with {code}"),
            Ending::Signaled { signal, .. } => format!("ended by signal {signal}"),
            Ending::Failed(failure) => format!("ended, but {}", failure.message),
        };
        let reason = outcome.reason.as_str();
        Self::Contract(Contract::Closed(format!("session {session} {how} ({reason})")))
    }
}

impl From<Contract> for Error {
    fn from(error: Contract) -> Self {
        Self::Contract(error)
    }
}

impl From<Denied> for Error {
    fn from(denied: Denied) -> Self {
        let text = denied.to_string();
        Self::Contract(match denied {
            Denied::NoSuchSession(_) => Contract::NoSuchSession(text),
            Denied::NotOwner { .. } | Denied::Private(_) | Denied::ObserveOnly(_) => {
                Contract::NotOwner(text)
            }
            Denied::Token(_) => Contract::BadToken(text),
        })
    }
}

impl From<TokenError> for Error {
    fn from(error: TokenError) -> Self {
        Self::Contract(Contract::BadToken(error.to_string()))
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let text = refusal.to_string();
        Self::Contract(match refusal {
            Refusal::NoSuchTool(_) => Contract::NoSuchTool(text),
            Refusal::InvalidWorkspace(_) => Contract::InvalidWorkspace(text),
            Refusal::NotPermitted(_) => Contract::NotPermitted(text),
            Refusal::LimitReached(_) => Contract::LimitReached(text),
            Refusal::ConfinementUnavailable(_) => Contract::ConfinementUnavailable(text),
            Refusal::InvalidArgs(_) => return Self::InvalidArgs(text),
        })
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Quota(quota) => Contract::LimitReached(quota.to_string()).into(),
            OpenError::Failed(OpenFailure::Launch(failure)) => failure.into(),
            OpenError::Failed(OpenFailure::Ended(reason)) => {
                let reason = reason.as_str();
                Contract::Closed(format!("ended while it was being opened ({reason})")).into()
            }
            OpenError::Stopping => Self::Failed(error.to_string()),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let Failure { step, errno, message } = failure;
        let step = step.as_str().to_owned();
        let text = format!("step {step}, errno {errno}: {message}");
        Contract::LaunchFailed(text, step, errno).into()
    }
}

impl From<ControlError> for Error {
    fn from(error: ControlError) -> Self {
        let text = error.to_string();
        match error {
            ControlError::Denied(denied) => denied.into(),
            ControlError::Closed(session, outcome) => Self::closed(&session, &outcome),
            ControlError::Closing(_) => Contract::Closed(text).into(),
            ControlError::NotClosed(_) | ControlError::RawMode(_) => {
                Contract::NotPermitted(text).into()
            }
            ControlError::NotATerminal(_) => Contract::NotATerminal(text).into(),
            ControlError::Write(error) => error.into(),
            ControlError::Share(_) => Contract::LimitReached(text).into(),
            ControlError::Host(_) | ControlError::Stopping => Self::Failed(text),
        }
    }
}

impl From<EventsError> for Error {
    fn from(error: EventsError) -> Self {
        Contract::BadCursor(error.to_string()).into()
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        let text = error.to_string();
        match error {
            ReadError::BadCursor { .. } => Contract::BadCursor(text).into(),
            ReadError::OneOutput => Self::InvalidArgs(text),
        }
    }
}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        let text = error.to_string();
        match error {
            WriteError::InputFull { .. } => Contract::InputFull(text).into(),
            WriteError::TooLong { .. } => Contract::LimitReached(text).into(),
            WriteError::NoStdin(_) => Contract::NotPermitted(text).into(),
            WriteError::Closed => Contract::Closed(text).into(),
        }
    }
}

impl From<TypeError> for Error {
    fn from(error: TypeError) -> Self {
        let text = error.to_string();
        match error {
            TypeError::Key(KeyError::TooMany { .. }) => Contract::LimitReached(text).into(),
            TypeError::Key(KeyError::Unknown(_) | KeyError::Impossible(_))
            | TypeError::Paste(PasteError::HoldsEnd) => Self::InvalidArgs(text),
            TypeError::Write(error) => error.into(),
        }
    }
}

impl From<ScreenError> for Error {
    fn from(error: ScreenError) -> Self {
        Contract::LimitReached(error.to_string()).into()
    }
}

impl From<AttachError> for Error {
    fn from(error: AttachError) -> Self {
        let text = error.to_string();
        match error {
            AttachError::TooManyStreams { .. } | AttachError::Held => {
                Contract::LimitReached(text).into()
            }
            AttachError::Fenced => Contract::NotOwner(text).into(),
            AttachError::NotDirect => Contract::NotPermitted(text).into(),
            AttachError::Ended => Contract::Closed(text).into(),
            AttachError::Cursor(_) => Contract::BadCursor(text).into(),
            AttachError::Socket { .. } => Self::Failed(text),
        }
    }
}
