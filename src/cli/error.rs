//! What went wrong in the command, and what to do about it, in one line.

use std::{io, io::Write, path::PathBuf};

use super::{human::visible, mcp::McpSettingsError, status::Status};
use crate::{
    agents::{identity::CatalogError, serve::ServeError},
    client::{ClientError, Refusal, SessionId},
    policy::surroundings::SurroundingsError,
};

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    /// The asynchronous runtime cannot start.
    #[error("cannot start: {source}")]
    Runtime { source: io::Error },
    /// There is no user bus.
    #[error("no broker is running, for there is no user bus: {source}")]
    NoBus { source: zbus::Error },
    /// Neither a broker on the bus nor an embedded one.
    #[error("{why}; this build has no embedded broker either")]
    NoEmbedded { why: String },
    /// The embedded broker failed.
    #[error("the embedded broker failed: {source}")]
    Embedded { source: Box<dyn std::error::Error + Send + Sync> },
    /// A call to the broker failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The tool could not be opened.
    #[error("{source}")]
    Open { source: ClientError },
    /// A call to one session failed.
    #[error("{}{source}", about(id, source))]
    Session { id: SessionId, unit: Option<String>, source: ClientError },
    /// Whose sessions they would be cannot be found out.
    #[error(transparent)]
    Surroundings { source: SurroundingsError },
    /// The agent's catalogue gives no workspace.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// An identity and a label contradict each other.
    #[error("--agent sets the label {label}, and --label gives it another value")]
    AgentLabel { label: &'static str },
    /// A path cannot travel over the bus.
    #[error("{} is not UTF-8", path.display())]
    PathNotUtf8 { path: PathBuf },
    /// A path cannot be made absolute.
    #[error("cannot resolve {}: {source}", path.display())]
    Path { path: PathBuf, source: io::Error },
    /// The terminal does not do as it is told.
    #[error("cannot set the terminal: {source}")]
    Terminal { source: io::Error },
    /// Signals cannot be received.
    #[error("cannot watch for signals: {source}")]
    Signals { source: io::Error },
    /// Standard input cannot be read.
    #[error("cannot read standard input: {source}")]
    Input { source: io::Error },
    /// Standard output cannot be written.
    #[error("cannot write to standard output: {source}")]
    Output { source: io::Error },
    /// What the MCP server may be told is not understood.
    #[error("{0}")]
    McpSettings(#[source] McpSettingsError),
    /// The MCP client was not served.
    #[error(transparent)]
    Mcp(#[from] ServeError),
    /// A token cannot be kept.
    #[error("cannot keep the token in {}: {source}", path.display())]
    Token { path: PathBuf, source: io::Error },
}

impl CliError {
    /// The error of writing to standard output.
    pub(super) fn output(source: io::Error) -> Self {
        Self::Output { source }
    }

    /// The status of this error, where `general` is that of its subcommand's failures.
    pub(super) fn status(&self, general: Status) -> Status {
        match self {
            Self::Open { source } if general == Status::OURS => Status::of_open(source),
            Self::Output { .. } if self.is_silent() => Status::OUTPUT_CLOSED,
            _ => general,
        }
    }

    /// Whether nobody wants to read of it: the reader of our output went away.
    pub(super) fn is_silent(&self) -> bool {
        matches!(self, Self::Output { source } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The one line: what failed, and what to do next.
    pub(super) fn line(&self) -> String {
        let error = visible(&self.to_string());
        match self.hint() {
            Some(hint) => format!("{error} ({hint})"),
            None => error,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoBus { .. } => Some(
                "`st2-tools run` works without one; otherwise log in, or set \
                 DBUS_SESSION_BUS_ADDRESS"
                    .into(),
            ),
            Self::Client(source) | Self::Open { source } => client_hint(source, None),
            Self::Catalog(_) => Some("or name a directory with --workspace".into()),
            // The broker may have told how to end it already.
            Self::Session { source, .. } if source.to_string().contains("systemctl") => None,
            Self::Session { unit, source, .. } => client_hint(source, unit.as_deref()),
            _ => None,
        }
    }
}

/// Which session it is about, where the message does not name it.
fn about(id: &SessionId, source: &ClientError) -> String {
    match source.to_string().contains(id.as_str()) {
        true => String::new(),
        false => format!("session {id}: "),
    }
}

fn client_hint(error: &ClientError, unit: Option<&str>) -> Option<String> {
    let hint = match error {
        ClientError::Refused { refusal, .. } => return refusal_hint(*refusal, unit),
        ClientError::Absent { .. } => {
            "`st2-tools run` works without one; otherwise install the user service, or start \
             st2-toolsd"
        }
        ClientError::Activation { .. } => "see journalctl --user -u st2-tools.service",
        ClientError::Gone { .. } => "its sessions ended with it; see journalctl --user",
        _ => return None,
    };
    Some(hint.into())
}

fn refusal_hint(refusal: Refusal, unit: Option<&str>) -> Option<String> {
    let hint = match refusal {
        Refusal::NoSuchTool => "see st2-tools tools",
        Refusal::NoSuchSession => "see st2-tools list",
        Refusal::NotOwner => return Some(not_owner(unit)),
        Refusal::BadToken => "the lease was claimed by another, or ran out; see st2-tools list",
        Refusal::InvalidWorkspace => "name another directory with --workspace or --cwd",
        Refusal::NotPermitted => "see st2-tools explain TOOL for what it may be asked",
        Refusal::ConfinementUnavailable => "see st2-tools explain TOOL for what it needs",
        Refusal::LimitReached => "close sessions that are not needed: st2-tools list",
        Refusal::Closed => "what it wrote can still be read: st2-tools read ID",
        Refusal::BadCursor => "begin at 0, or at the `next` of the last read",
        Refusal::InputFull => "the tool does not read its input; try again later",
        Refusal::AccessDenied => "a tool in a session cannot use the broker",
        Refusal::LimitsExceeded => "try again later",
        Refusal::LaunchFailed | Refusal::NotATerminal | Refusal::InvalidArgs => return None,
    };
    Some(hint.into())
}

fn not_owner(unit: Option<&str>) -> String {
    match unit {
        Some(unit) if !unit.is_empty() => {
            format!("give its --token, or end it with: systemctl --user stop '{unit}'")
        }
        _ => "give its --token".into(),
    }
}

/// Says one line on standard error. A closed standard error is nobody's loss.
pub(super) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "st2-tools: {line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(refusal: Refusal, message: &str) -> ClientError {
        ClientError::Refused { refusal, message: message.into(), step: None }
    }

    #[test]
    fn a_stranger_is_told_how_to_end_the_session() {
        let error = CliError::Session {
            id: "a1".parse().unwrap(),
            unit: Some(r"app-st2tools-git\x2dadd-a1.scope".into()),
            source: refused(Refusal::NotOwner, "the owner is :1.5"),
        };
        assert_eq!(
            error.line(),
            r"session a1: the owner is :1.5 (give its --token, or end it with: systemctl --user stop 'app-st2tools-git\x2dadd-a1.scope')"
        );
    }

    #[test]
    fn what_the_broker_told_is_not_told_again() {
        let message = "session a1 is another's; end it with: systemctl --user stop a1.scope";
        let error = CliError::Session {
            id: "a1".parse().unwrap(),
            unit: Some("a1.scope".into()),
            source: refused(Refusal::NotOwner, message),
        };
        assert_eq!(error.line(), message);
    }

    #[test]
    fn a_message_stays_one_line_whatever_is_in_it() {
        let error = CliError::Client(refused(Refusal::NoSuchTool, "no tool \"a\nb\u{1b}[2J\""));
        let line = error.line();
        assert!(!line.contains(['\n', '\u{1b}']), "{line:?}");
        assert!(line.ends_with("(see st2-tools tools)"), "{line:?}");
    }
}
