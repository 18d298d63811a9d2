//! What a tool answers when it could not do what was asked, in the documented shape.

use std::fmt;

use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::{Value, json};

use crate::client::{ClientError, Refusal, Step};

/// Longest message, bytes.
pub const MESSAGE_MAX: usize = 2048;

/// What went wrong, as a program tells it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// This server has no such session, or not at that root.
    SessionNotFound,
    /// The session has ended, or its broker is gone.
    SessionNotHealthy,
    /// Nothing was opened.
    SessionStartFailed,
    /// Nothing, or not everything, was written.
    SessionWriteFailed,
    /// The end could not be confirmed.
    SessionCloseFailed,
    /// Anything else that a session or the broker refused.
    SessionRuntimeError,
    /// The program is not there.
    ExecutableNotFound,
    /// The program is there and cannot be executed.
    ExecutableNotRunnable,
    /// The catalogue has no such agent, or refuses what was asked of it.
    InvalidAgentConfig,
}

/// A failure of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    code: Code,
    message: String,
    recoverable: bool,
}

impl Failure {
    /// One that the same call may not meet again: later, or after what the message says was done.
    #[must_use]
    pub fn recoverable(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), recoverable: true }
    }

    /// One that the same call will always meet.
    #[must_use]
    pub fn lasting(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), recoverable: false }
    }

    /// A call to the broker that failed, where `code` is what the call was for.
    #[must_use]
    pub fn of(error: &ClientError, code: Code) -> Self {
        let (code, recoverable) = match error {
            ClientError::Refused { step: Some(step), .. } => of_step(step, code),
            ClientError::Refused { refusal, .. } => of_refusal(*refusal, code),
            _ => (code, true),
        };
        Self { code, message: error.to_string(), recoverable }
    }

    /// The same, after what its message begins with.
    #[must_use]
    pub fn after(self, before: impl fmt::Display) -> Self {
        Self { message: format!("{before}: {}", self.message), ..self }
    }

    /// The same, where the same call will always meet it.
    #[must_use]
    pub fn for_good(self) -> Self {
        Self { recoverable: false, ..self }
    }

    /// The answer to the call named so.
    #[must_use]
    pub fn answer(&self, command: &str) -> CallToolResult {
        let body = self.body(command);
        let mut result = CallToolResult::error(vec![ContentBlock::text(body.to_string())]);
        result.structured_content = Some(body);
        result
    }

    fn body(&self, command: &str) -> Value {
        let error = json!({
            "code": self.code,
            "message": bounded(&self.message),
            "recoverable": self.recoverable,
        });
        json!({ "ok": false, "command": command, "error": error })
    }
}

/// The launcher told which step failed: those of execve(2) are the program's fault.
fn of_step(step: &Step, code: Code) -> (Code, bool) {
    match (step.name.as_str(), step.errno) {
        ("exec", nix::libc::ENOENT) => (Code::ExecutableNotFound, false),
        ("exec", _) => (Code::ExecutableNotRunnable, false),
        _ => (code, true),
    }
}

fn of_refusal(refusal: Refusal, code: Code) -> (Code, bool) {
    match refusal {
        Refusal::NoSuchSession => (Code::SessionNotFound, false),
        Refusal::Closed => (Code::SessionNotHealthy, false),
        Refusal::NoSuchTool => (Code::InvalidAgentConfig, false),
        // What was to be written is too large, and stays so. Elsewhere it is too many, of which some may go.
        Refusal::LimitReached => (code, code != Code::SessionWriteFailed),
        Refusal::InputFull | Refusal::LimitsExceeded => (code, true),
        _ => (code, false),
    }
}

/// A message of one line, without what a terminal would obey, cut at [`MESSAGE_MAX`] bytes.
fn bounded(message: &str) -> String {
    let line: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.len() <= MESSAGE_MAX {
        return line;
    }
    let mark = "…";
    let mut end = MESSAGE_MAX - mark.len();
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{mark}", &line[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(refusal: Refusal, step: Option<(&str, i32)>) -> ClientError {
        let step = step.map(|(name, errno)| Step { name: name.into(), errno });
        ClientError::Refused { refusal, message: "why".into(), step }
    }

    #[test]
    fn the_shape_is_the_documented_one() {
        let failure = Failure::recoverable(Code::SessionNotFound, "no session \"session_x\"");
        assert_eq!(
            failure.body("session.read").to_string(),
            r#"{"command":"session.read","error":{"code":"SESSION_NOT_FOUND","message":"no session \"session_x\"","recoverable":true},"ok":false}"#
        );
        let answer = failure.answer("session.read");
        assert_eq!(answer.is_error, Some(true));
        assert_eq!(answer.structured_content, Some(failure.body("session.read")));
    }

    #[test]
    fn a_program_that_is_not_there_and_one_that_cannot_run_are_told_apart() {
        let code = |step| {
            let error = refused(Refusal::LaunchFailed, Some(step));
            Failure::of(&error, Code::SessionStartFailed).code
        };
        assert_eq!(code(("exec", nix::libc::ENOENT)), Code::ExecutableNotFound);
        assert_eq!(code(("exec", nix::libc::EACCES)), Code::ExecutableNotRunnable);
        assert_eq!(code(("scope", 0)), Code::SessionStartFailed);
    }

    #[test]
    fn an_ended_session_is_told_from_an_unknown_one() {
        let code = |refusal| Failure::of(&refused(refusal, None), Code::SessionWriteFailed).code;
        assert_eq!(code(Refusal::Closed), Code::SessionNotHealthy);
        assert_eq!(code(Refusal::NoSuchSession), Code::SessionNotFound);
        assert_eq!(code(Refusal::InputFull), Code::SessionWriteFailed);
    }

    #[test]
    fn a_size_is_refused_for_good_and_a_quota_for_now() {
        let body = |refusal, code| Failure::of(&refused(refusal, None), code).body("exec");
        let recoverable = |refusal, code| body(refusal, code)["error"]["recoverable"].clone();
        assert_eq!(recoverable(Refusal::LimitReached, Code::SessionStartFailed), true);
        assert_eq!(recoverable(Refusal::LimitReached, Code::SessionWriteFailed), false);
        assert_eq!(recoverable(Refusal::InputFull, Code::SessionWriteFailed), true);
    }

    #[test]
    fn messages_are_one_line_and_bounded() {
        let long = Failure::lasting(
            Code::SessionRuntimeError,
            format!("a\n\u{1b}[31m{}", "é".repeat(4000)),
        );
        let body = long.body("exec");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.len() <= MESSAGE_MAX && message.ends_with('…'), "{}", message.len());
        assert!(!message.contains(char::is_control));
    }
}
