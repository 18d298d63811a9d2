//! What a request comes to.

use std::{collections::BTreeMap, os::fd::OwnedFd, path::PathBuf, time::Duration};

use crate::{
    broker::name::{ToolName, UnitName},
    launch::spec::{Io, LaunchSpec, Target},
    policy::request::{LeaseKind, Stdin},
};

/// `TERM` of a tool without a terminal: the entry of terminfo that can nothing. Where the variable is missing, programs
/// such as tput(1) complain instead.
const NO_TERMINAL: &str = "dumb";

/// One request, judged: everything that opening needs, no choice left.
#[derive(Debug)]
pub struct Resolved {
    /// The tool.
    pub tool: ToolName,
    /// The file that declares it.
    pub source: PathBuf,
    /// The file that says which command it is: for an agent, possibly the project's or the user's.
    pub command_source: PathBuf,
    /// How many of the last arguments are an agent's prompt.
    pub prompt_words: usize,
    /// What the launcher gets. `TMPDIR` and its grant are in it.
    pub spec: LaunchSpec,
    /// The workspace, opened `O_PATH | O_DIRECTORY`.
    pub workspace_fd: OwnedFd,
    /// The working directory, opened `O_PATH | O_DIRECTORY` beneath the workspace.
    pub cwd_fd: OwnedFd,
    /// The workspace's canonical path.
    pub workspace: PathBuf,
    /// The working directory's canonical path.
    pub cwd: PathBuf,
    /// Where `TMPDIR` is to be made while opening.
    pub tmpdir: PathBuf,
    /// What the tool reads where it gets pipes.
    pub stdin: Stdin,
    /// Whether a pty that cannot be opened gives way to pipes.
    pub io_fallback: bool,
    /// Columns, 1..=1000; 0 without a terminal.
    pub columns: u16,
    /// Rows, 1..=1000; 0 without a terminal.
    pub rows: u16,
    /// How long the session outlives a vanished owner.
    pub grace: Duration,
    /// Whom it lives for; a token's `ttl` is set.
    pub lease: LeaseKind,
    /// Overall watchdog, at most 30 days.
    pub timeout: Option<Duration>,
    /// No-output watchdog, at most 30 days.
    pub silence: Option<Duration>,
    /// From the first gentle signal to SIGKILL.
    pub stop_timeout: Duration,
    /// `MemoryMax` of the scope, bytes.
    pub memory_max: Option<u64>,
    /// `TasksMax` of the scope.
    pub tasks_max: Option<u64>,
    /// Size of the output ring, bytes.
    pub ring_bytes: usize,
    /// Whether the terminal's controller end may be lent.
    pub direct: bool,
    /// Attribution.
    pub labels: BTreeMap<String, String>,
    /// A unit that the session ends with.
    pub bind_unit: Option<UnitName>,
    /// Whether no other connection may observe the session.
    pub private: bool,
    /// Whether a session that is there already will do.
    pub reuse: bool,
}

impl Resolved {
    /// Has pipes in the place of a terminal, and nothing that goes with one.
    #[must_use]
    pub fn without_terminal(mut self) -> Self {
        self.spec.io = Io::Pipe;
        self.spec.confinement.grants.retain(|grant| grant.target != Target::OwnTerminal);
        self.spec.environment.insert("TERM".into(), NO_TERMINAL.into());
        Self { columns: 0, rows: 0, direct: false, ..self }
    }
}
