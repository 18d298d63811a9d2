//! Arguments of `coordinate_agents_session_*`.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Input, Label, Name, TwoTargets, Whole, bounds::without_nul, one_target};

/// Opens a session of a coding agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Open {
    /// Absolute path of the worktree: an existing directory, not a symbolic link. The session sees nothing of the user's
    /// files but this.
    pub root: Name,
    /// Name of a catalogue entry (`st2-tools tools` lists them), such as "claude" or "shell".
    pub agent: Name,
    /// Given to the agent once: as a launch argument (then command and environment together may take 128 KiB) or typed
    /// into its terminal, whichever the catalogue says. Not given to a session that is reused.
    #[serde(default, deserialize_with = "prompt")]
    pub initial_prompt: Option<Input>,
    /// Language of the session: sets LANG and LC_ALL where the catalogue lets them pass.
    #[serde(default)]
    pub language: Option<Language>,
    /// Where no pty can be had, use pipes instead; the answer then has backend "stdio-fallback".
    #[serde(default)]
    pub io_fallback: bool,
    /// Task that the session belongs to: a label of its results and events, at most 256 bytes.
    #[serde(default)]
    pub task: Option<Label>,
    /// Part of the task, at most 256 bytes.
    #[serde(default)]
    pub subtask: Option<Label>,
}

/// A language that a session can be opened in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[schemars(inline)]
pub enum Language {
    /// English.
    #[serde(rename = "en")]
    English,
    /// Chinese, simplified.
    #[serde(rename = "zh-CN")]
    Chinese,
}

impl Language {
    /// The locale, as `LANG` has it.
    #[must_use]
    pub fn locale(self) -> &'static str {
        match self {
            Self::English => "en_US.UTF-8",
            Self::Chinese => "zh_CN.UTF-8",
        }
    }
}

/// Asks how a session is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Status {
    /// The root that the session was opened with.
    pub root: Name,
    /// Its id, as `open` gave it.
    pub session_id: Name,
}

/// Looks at the end of a session's output.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Inspect {
    /// The root that the session was opened with.
    pub root: Name,
    /// Its id, as `open` gave it.
    pub session_id: Name,
    /// Most lines.
    #[serde(default = "hundred")]
    pub max_lines: Whole<1, 200>,
    /// Most bytes.
    #[serde(default = "inspect_bytes")]
    pub max_bytes: Whole<1024, 32_768>,
}

/// Types into a session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WriteSession {
    /// The root that the session was opened with.
    pub root: Name,
    /// Its id, as `open` gave it.
    pub session_id: Name,
    /// What to type, as it is.
    pub input: Input,
    /// Press Enter after it, unless it ends in one already. A line feed that a terminal's input ends in is taken for
    /// Enter.
    #[serde(default = "yes")]
    pub submit: bool,
}

/// Reads a session's output from a cursor on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Read {
    /// The root that the session was opened with.
    pub root: Name,
    /// Its id, as `open` gave it.
    pub session_id: Name,
    /// Where to begin: 0, or `next` of the last read. Default: the beginning.
    #[serde(default)]
    pub cursor: u64,
    /// Most lines.
    #[serde(default = "hundred")]
    pub max_lines: Whole<1, 200>,
    /// Most bytes.
    #[serde(default = "read_bytes")]
    pub max_bytes: Whole<1024, 32_768>,
}

/// Ends a session. Files, branches and worktrees are left as they are.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Close {
    /// The root that the session was opened with.
    pub root: Name,
    /// Its id, as `open` gave it; instead, `task` with or without `subtask` ends all sessions of that task at this root.
    #[serde(default)]
    pub session_id: Option<Name>,
    /// Ask it to end before it is killed.
    #[serde(default = "yes")]
    pub graceful: bool,
    /// How long it has, milliseconds, before it is killed.
    #[serde(default = "close_timeout")]
    pub timeout_ms: Whole<100, 30_000>,
    /// See sessionId.
    #[serde(default)]
    pub task: Option<Label>,
    /// See sessionId.
    #[serde(default)]
    pub subtask: Option<Label>,
}

/// It may become an argument.
fn prompt<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Input>, D::Error> {
    let prompt = Option::<Input>::deserialize(deserializer)?;
    prompt.map(|prompt| without_nul(prompt.0).map(super::Bounded)).transpose()
}

impl Close {
    /// Refuses what would be passed over: a task beside a session.
    ///
    /// # Errors
    /// [`TwoTargets`].
    pub fn check(&self) -> Result<(), TwoTargets> {
        one_target(self.session_id.as_ref(), self.task.as_ref(), self.subtask.as_ref())
    }
}

fn yes() -> bool {
    true
}

fn hundred() -> Whole<1, 200> {
    Whole(100)
}

fn inspect_bytes() -> Whole<1024, 32_768> {
    Whole(16 * 1024)
}

fn read_bytes() -> Whole<1024, 32_768> {
    Whole(32 * 1024)
}

fn close_timeout() -> Whole<100, 30_000> {
    Whole(2000)
}
