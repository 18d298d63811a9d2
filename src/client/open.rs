//! The options of `Open` and `Explain`, typed.

use std::{collections::BTreeMap, ffi::OsString, os::unix::ffi::OsStringExt, time::Duration};

use super::Dict;

/// Whom the session lives for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lease {
    /// The connection that opens it.
    #[default]
    Caller,
    /// Whoever holds the token.
    Token {
        /// How long without a claim or renewal; the broker's default where absent.
        ttl: Option<Duration>,
    },
}

/// How input and output are carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    /// A pseudoterminal.
    Pty,
    /// Pipes: standard output and standard error apart, and no terminal.
    Pipe,
}

/// What a tool on pipes reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing.
    Closed,
    /// What is written to the session.
    Open,
}

impl Io {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pty => "pty",
            Self::Pipe => "pipe",
        }
    }
}

impl Stdin {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
        }
    }
}

/// The options of one `Open`. What is absent is the broker's to choose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Arguments appended to the declared command; for `command`, the whole argv.
    pub argv: Vec<OsString>,
    /// What an agent is told to begin with, where its declaration takes that as an argument.
    pub prompt: Option<String>,
    /// Absolute path of a directory.
    pub workspace: Option<String>,
    /// Directory inside the workspace.
    pub cwd: Option<String>,
    /// Values for names that the tool declares as passable.
    pub env: BTreeMap<String, String>,
    /// How input and output are carried; by a pty where absent.
    pub io: Option<Io>,
    /// Whether a tool on pipes can be written to; not where absent, unless the pipes are what a pty fell back to.
    pub stdin: Option<Stdin>,
    /// Whether a pty that cannot be opened gives way to pipes; [`super::Opened::fell_back`] tells.
    pub io_fallback: bool,
    /// Columns and rows, each 1..=1000.
    pub size: Option<(u16, u16)>,
    /// `TERM`.
    pub term: Option<String>,
    /// Whom it lives for.
    pub lease: Lease,
    /// How long it outlives a vanished owner; zero ends it at once.
    pub grace: Option<Duration>,
    /// Overall watchdog; zero is none.
    pub timeout: Option<Duration>,
    /// No-output watchdog; zero is none.
    pub silence_timeout: Option<Duration>,
    /// Size of the output ring, bytes.
    pub ring_bytes: Option<u64>,
    /// Narrows the tool's limit, bytes.
    pub memory_max: Option<u64>,
    /// Narrows the tool's limit.
    pub tasks_max: Option<u64>,
    /// Attribution.
    pub labels: BTreeMap<String, String>,
    /// A unit of the user manager that the session ends with.
    pub bind_unit: Option<String>,
    /// Whether no other connection may observe the session.
    pub private: bool,
    /// Take this connection's running session of the same tool, command, workspace and `agent` label, where there is
    /// one ([`super::Opened::reused`]).
    pub reuse: bool,
}

impl OpenOptions {
    /// The options as the bus carries them; only what is set is in it.
    #[must_use]
    pub fn to_dict(&self) -> Dict {
        let (lease, ttl) = match self.lease {
            Lease::Caller => (None, None),
            Lease::Token { ttl } => (Some("token"), ttl),
        };
        let (columns, rows) = self.size.unzip();
        let map = |map: &BTreeMap<String, String>| (!map.is_empty()).then(|| map.clone());
        argv(&self.argv)
            .with_some("prompt", self.prompt.clone())
            .with_some("workspace", self.workspace.clone())
            .with_some("cwd", self.cwd.clone())
            .with_some("env", map(&self.env))
            .with_some("io", self.io.map(Io::as_str))
            .with_some("stdin", self.stdin.map(Stdin::as_str))
            .with_some("io_fallback", self.io_fallback.then_some(true))
            .with_some("columns", columns)
            .with_some("rows", rows)
            .with_some("term", self.term.clone())
            .with_some("lease", lease)
            .with_some("lease_ttl_ms", ttl.map(milliseconds))
            .with_some("grace_ms", self.grace.map(milliseconds))
            .with_some("timeout_ms", self.timeout.map(milliseconds))
            .with_some("silence_timeout_ms", self.silence_timeout.map(milliseconds))
            .with_some("ring_bytes", self.ring_bytes)
            .with_some("memory_max", self.memory_max)
            .with_some("tasks_max", self.tasks_max)
            .with_some("labels", map(&self.labels))
            .with_some("bind_unit", self.bind_unit.clone())
            .with_some("private", self.private.then_some(true))
            .with_some("reuse", self.reuse.then_some(true))
    }
}

/// `argv` where every argument is UTF-8, `argv_bytes` where one is not, neither where there is none.
fn argv(arguments: &[OsString]) -> Dict {
    if arguments.is_empty() {
        return Dict::new();
    }
    let texts: Option<Vec<String>> =
        arguments.iter().map(|argument| argument.to_str().map(str::to_owned)).collect();
    match texts {
        Some(texts) => Dict::new().with("argv", texts),
        None => {
            let bytes: Vec<Vec<u8>> =
                arguments.iter().map(|argument| argument.clone().into_vec()).collect();
            Dict::new().with("argv_bytes", bytes)
        }
    }
}

/// Whole milliseconds, as every `_ms` of the contract; the largest number where it is longer.
pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_asked_is_nothing_sent() {
        assert!(OpenOptions::default().to_dict().is_empty());
    }

    #[test]
    fn each_option_has_its_type_of_the_contract() {
        let options = OpenOptions {
            argv: vec!["ls".into(), "-l".into()],
            prompt: Some("p".into()),
            workspace: Some("/w".into()),
            cwd: Some("/w/c".into()),
            env: BTreeMap::from([("A".into(), "1".into())]),
            io: Some(Io::Pipe),
            stdin: Some(Stdin::Open),
            io_fallback: true,
            size: Some((132, 50)),
            term: Some("xterm".into()),
            lease: Lease::Token { ttl: Some(Duration::from_secs(5)) },
            grace: Some(Duration::ZERO),
            timeout: Some(Duration::from_millis(1500)),
            ring_bytes: Some(4096),
            memory_max: Some(1),
            tasks_max: Some(2),
            labels: BTreeMap::from([("agent".into(), "a".into())]),
            bind_unit: Some("x.service".into()),
            private: true,
            silence_timeout: Some(Duration::from_secs(60)),
            reuse: true,
        };
        let dict = options.to_dict();
        let signatures: Vec<_> =
            dict.iter().map(|(key, value)| format!("{key} {}", value.value_signature())).collect();
        assert_eq!(
            signatures,
            [
                "argv as",
                "bind_unit s",
                "columns q",
                "cwd s",
                "env a{ss}",
                "grace_ms t",
                "io s",
                "io_fallback b",
                "labels a{ss}",
                "lease s",
                "lease_ttl_ms t",
                "memory_max t",
                "private b",
                "prompt s",
                "reuse b",
                "ring_bytes t",
                "rows q",
                "silence_timeout_ms t",
                "stdin s",
                "tasks_max t",
                "term s",
                "timeout_ms t",
                "workspace s",
            ]
        );
        assert_eq!(dict.number("timeout_ms"), Some(1500));
        assert_eq!(dict.number("grace_ms"), Some(0));
    }

    #[test]
    fn arguments_that_are_not_utf8_travel_as_bytes() {
        let options = OpenOptions {
            argv: vec!["cat".into(), OsString::from_vec(vec![0xff, b'x'])],
            ..OpenOptions::default()
        };
        let dict = options.to_dict();
        assert!(dict.get("argv").is_none());
        let value = dict.get("argv_bytes").unwrap();
        assert_eq!(value.value_signature().to_string(), "aay");
    }
}
