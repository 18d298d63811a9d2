//! The wire form between broker and launcher: one launch specification down, steps and outcome up.
//!
//! Each message is a frame on the control socket: a little-endian `u32` length (at most [`FRAME_MAX`]) and that many
//! bytes of postcard. Descriptors ride with the specification by `SCM_RIGHTS`, in the order of [`Slot`].

use std::{collections::BTreeMap, ffi::OsString, fmt, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::report::{Report, Tier};

/// Longest frame, bytes: the bound on argv and environment (128 KiB) with room for the grants.
pub const FRAME_MAX: usize = 512 * 1024;

/// Which descriptor rides where beside the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Slot {
    /// The workspace directory, `O_PATH`.
    Workspace = 0,
    /// The working directory, `O_PATH`.
    Cwd = 1,
    /// The session's private `TMPDIR`, `O_PATH`.
    TmpDir = 2,
    /// What the tool reads as standard input; with [`Io::Pipe`] only.
    Stdin = 3,
}

/// How input and output are carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Io {
    /// A pseudoterminal: the launcher's standard output and error, and the tool's controlling terminal.
    #[default]
    Pty,
    /// Pipes and no terminal: the launcher's standard output and error are two, [`Slot::Stdin`] is what is read.
    Pipe,
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

    /// How many descriptors ride with a specification: one for each [`Slot`] that has a meaning.
    #[must_use]
    pub fn descriptors(self) -> usize {
        match self {
            Self::Pty => Slot::Stdin as usize,
            Self::Pipe => Slot::Stdin as usize + 1,
        }
    }
}

impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Everything the launcher needs to become the tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchSpec {
    /// argv; the first is the program: a path, or a name that is looked up in the `PATH` of `environment`.
    pub argv: Vec<OsString>,
    /// The whole environment of the tool.
    pub environment: BTreeMap<OsString, OsString>,
    /// What its standard descriptors are.
    pub io: Io,
    /// What it may touch.
    pub confinement: ConfinementSpec,
    /// File mode creation mask.
    pub umask: u32,
    /// Soft limit on open files.
    pub nofile_soft: u64,
    /// `oom_score_adj` (proc(5)), 0..=1000: tools go before the desktop does.
    pub oom_score_adj: i16,
    /// Set where no service manager watches over the session.
    pub supervise: Option<Supervise>,
}

/// How the launcher stays to watch over its tool (portable host).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supervise {
    /// A cgroup2 directory of the session's own for the tool to join.
    pub cgroup: Option<PathBuf>,
}

/// What the tool may touch, resolved: no globs, no variables, no choices left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfinementSpec {
    /// What closes pathname sockets.
    pub tier: Tier,
    /// What may be touched beneath which paths.
    pub grants: Vec<Grant>,
    /// Pathname sockets of others that it may connect to.
    pub sockets: Vec<SocketGrant>,
    /// Sockets other than local ones.
    pub network: Network,
    /// What the root of tier [`Tier::Mounts`] holds beside the grants.
    pub root: OwnRoot,
    /// Whether [`Tier::Mounts`] was wanted and this machine gives none: a gap.
    pub no_user_namespace: bool,
    /// For tests: act as on a kernel with at most this Landlock ABI.
    pub landlock_abi_cap: Option<u32>,
    /// Whether an ABI below 6 is accepted, its gaps listed.
    pub allow_degraded: bool,
}

impl ConfinementSpec {
    /// These grants and nothing else: no socket of another, no network, a root without anything beside, all that the
    /// kernel enforces.
    #[must_use]
    pub fn new(tier: Tier, grants: Vec<Grant>) -> Self {
        Self {
            tier,
            grants,
            sockets: Vec::new(),
            network: Network::None,
            root: OwnRoot::default(),
            no_user_namespace: false,
            landlock_abi_cap: None,
            allow_degraded: false,
        }
    }
}

/// What a root made for one tool holds beside what is granted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnRoot {
    /// A directory that is there, empty, where nothing granted makes it: the home directory.
    pub home: Option<PathBuf>,
    /// Symlinks, from their absolute paths to what they name: other names of what is granted.
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// What stays as it is inside a writable directory.
    pub protect: Vec<Protected>,
}

/// Something inside a writable directory that the tool can only read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protected {
    /// The granted directory that it is in; the workspace where absent.
    pub beneath: Option<PathBuf>,
    /// Relative to that directory, of plain names only.
    pub path: PathBuf,
    /// What is made, empty, where it is missing and its parent is there: a directory, or a file.
    pub directory: bool,
}

/// Access beneath one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Where.
    pub target: Target,
    /// What.
    pub access: Access,
    /// Whether a missing target is passed over (system directories that not every distribution has) or refused.
    pub optional: bool,
}

/// Where a grant applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// A path that the tool cannot change, its symlinks followed: opened by the launcher, which follows none.
    Path(PathBuf),
    /// A directory opened by the broker, and its name for the report.
    Descriptor(Slot, PathBuf),
    /// The session's own terminal; with [`Io::Pty`] only.
    OwnTerminal,
}

/// Kinds of access; each stands for every Landlock right of its kind that the kernel knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Read files, list directories.
    pub read: bool,
    /// Write, create, remove, rename, link, truncate.
    pub write: bool,
    /// Execute.
    pub execute: bool,
    /// `ioctl` on device files.
    pub device: bool,
}

/// A pathname socket that somebody else listens on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketGrant {
    /// Where it is, its symlinks followed.
    pub path: PathBuf,
    /// Where the tool finds it; another place than `path` only in a root of its own.
    pub at: PathBuf,
}

/// What network a tool has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// No socket family but local pairs.
    None,
    /// A loopback interface of the session's own, which leads nowhere else: any protocol, listeners
    /// too.
    Loopback,
    /// TCP connections to these ports; no listener.
    TcpConnect(Vec<u16>),
    /// Any.
    All,
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Loopback => f.write_str("loopback"),
            Self::TcpConnect(ports) => {
                let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                write!(f, "tcp:{}", ports.join(","))
            }
            Self::All => f.write_str("all"),
        }
    }
}

/// Broker to launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToLauncher {
    /// The first frame, with the descriptors.
    Spec(Box<LaunchSpec>),
    /// The scope is there: execute.
    Release,
}

/// Launcher to broker. Without supervision, end of file after `Confined` means that `execve` succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromLauncher {
    /// The terminal or the pipes are taken and the confinement in force: release me once I am placed.
    Ready,
    /// Released; the kernel accepted this, and `execve` comes next.
    Confined(Box<Report>),
    /// A step failed; nothing follows.
    Failed(Failure),
    /// Supervised only: the tool runs as this process.
    Started {
        /// Process id of the leader, in the broker's PID namespace.
        pid: i32,
    },
    /// Supervised only: the leader ended.
    Exited {
        /// The status as wait(2) gives it.
        status: i32,
        /// CPU time of the leader and those it waited for, microseconds.
        cpu_usec: u64,
        /// Peak resident size of the largest of them, bytes.
        memory_peak: u64,
    },
}

/// A step of opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Step {
    /// Open the pty.
    Pty,
    /// Open the pipes.
    Pipes,
    /// Make the private `TMPDIR`.
    TmpDir,
    /// Spawn the launcher.
    Spawn,
    /// Hand over the specification.
    Spec,
    /// Take the controlling terminal.
    Terminal,
    /// Start the scope and place the launcher in it.
    Scope,
    /// Enter the working directory.
    Cwd,
    /// Restrict itself.
    Confine,
    /// Execute the tool.
    Exec,
    /// Learn how the tool ended.
    Wait,
}

impl Step {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pty => "pty",
            Self::Pipes => "pipes",
            Self::TmpDir => "tmpdir",
            Self::Spawn => "spawn",
            Self::Spec => "spec",
            Self::Terminal => "terminal",
            Self::Scope => "scope",
            Self::Cwd => "cwd",
            Self::Confine => "confine",
            Self::Exec => "exec",
            Self::Wait => "wait",
        }
    }
}

/// Which step failed, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}: {message}", step.as_str())]
pub struct Failure {
    /// The step.
    pub step: Step,
    /// `errno`, 0 where there is none.
    pub errno: i32,
    /// One line for a person; names the value and the rule.
    pub message: String,
}
