//! What one caller asks of one tool: the options of `Open`, typed and within their bounds, not yet judged by policy.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, time::Duration};

use crate::{broker::name::UnitName, launch::spec::Io};

/// Whom the session will live for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LeaseKind {
    /// The connection that opens it.
    #[default]
    Caller,
    /// Whoever holds the token; `ttl` is how long without a claim or renewal.
    Token {
        /// `None` is the default of the settings.
        ttl: Option<Duration>,
    },
}

/// What a tool on pipes reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing: `/dev/null`.
    Closed,
    /// What is written to the session, until that is ended.
    Open,
}

/// The options of one `Open`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// Arguments appended to the declared command; for a tool that declares none, the whole argv.
    pub argv: Vec<OsString>,
    /// What an agent is told to begin with; its last argument.
    pub prompt: Option<String>,
    /// Absolute path of the workspace.
    pub workspace: Option<PathBuf>,
    /// Working directory inside the workspace; the workspace itself where absent.
    pub cwd: Option<PathBuf>,
    /// Values for names that the tool declares as passable.
    pub env: BTreeMap<String, String>,
    /// How input and output are carried; by a pty where absent and the tool may have one.
    pub io: Option<Io>,
    /// What the tool reads where it gets pipes: nothing where absent, unless they are what a terminal fell back to.
    pub stdin: Option<Stdin>,
    /// Whether a pty that cannot be opened gives way to pipes.
    pub io_fallback: bool,
    /// Columns, 1..=1000; 80 where absent; without a meaning on pipes, as are rows and `TERM`.
    pub columns: Option<u16>,
    /// Rows, 1..=1000; 24 where absent.
    pub rows: Option<u16>,
    /// `TERM`; `xterm-256color` where absent.
    pub term: Option<String>,
    /// Whom it lives for.
    pub lease: LeaseKind,
    /// How long it outlives a vanished owner; the tool's own where absent.
    pub grace: Option<Duration>,
    /// Overall watchdog; zero is none; the tool's own where absent.
    pub timeout: Option<Duration>,
    /// No-output watchdog; zero is none; the tool's own where absent.
    pub silence_timeout: Option<Duration>,
    /// Size of the output ring, bytes, 4 KiB..=4 MiB; 256 KiB where absent.
    pub ring_bytes: Option<u64>,
    /// Narrows the tool's limit, bytes.
    pub memory_max: Option<u64>,
    /// Narrows the tool's limit.
    pub tasks_max: Option<u64>,
    /// Attribution: at most 16, name and value at most 256 bytes each.
    pub labels: BTreeMap<String, String>,
    /// A unit of the user manager that the session ends with.
    pub bind_unit: Option<UnitName>,
    /// Whether no other connection may observe the session.
    pub private: bool,
    /// Whether a session that is there already will do.
    pub reuse: bool,
}
