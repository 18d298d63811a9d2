//! Why a request is refused: one variant for each error of the bus.

use std::{ffi::OsString, path::PathBuf};

use crate::{
    broker::name::ToolName,
    config::MAX_TIER_VARIABLE,
    launch::{
        environment::ForbiddenName,
        report::Tier,
        spec::{Io, Network},
    },
    policy::{
        agent::AgentError, arguments::ArgumentError, cause::Cause, file::FileError,
        off_limits::Why, repository::RepositoryError, sockets::SocketError,
        workspace::WorkspaceError,
    },
};

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// `NoSuchTool`.
    #[error(transparent)]
    NoSuchTool(#[from] NoSuchTool),
    /// `InvalidWorkspace`.
    #[error(transparent)]
    InvalidWorkspace(#[from] WorkspaceError),
    /// `NotPermitted`.
    #[error(transparent)]
    NotPermitted(#[from] NotPermitted),
    /// `InvalidArgs`.
    #[error(transparent)]
    InvalidArgs(#[from] InvalidArgs),
    /// `LimitReached`.
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    /// `ConfinementUnavailable`.
    #[error(transparent)]
    ConfinementUnavailable(#[from] Missing),
}

/// No tool of this name can be asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSuchTool {
    /// Nobody declares it.
    #[error("no tool {0:?} is declared")]
    Unknown(String),
    /// Somebody masked it.
    #[error("tool \"{name}\" is masked by {}", by.display())]
    Masked {
        /// The tool.
        name: ToolName,
        /// The symlink to `/dev/null`.
        by: PathBuf,
    },
}

/// What policy does not permit, and which rule says so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotPermitted {
    /// The tool's file is broken.
    #[error("tool \"{name}\" is disabled: {error}")]
    Broken {
        /// The tool.
        name: ToolName,
        /// Its fault.
        error: Box<FileError>,
    },
    /// The broker's own settings are broken: nothing opens, because the bounds that hold are
    /// unknown.
    #[error("no tool opens until this is mended and the broker restarted: {0}")]
    Settings(Box<FileError>),
    /// An argument.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// A variable that no tool gets, or that this one does not declare.
    #[error(transparent)]
    Environment(#[from] ForbiddenName),
    /// A number or time above its cap.
    #[error("{what} {asked} is above {cap_name} = {cap}")]
    AboveCap {
        /// The option.
        what: &'static str,
        /// What was asked.
        asked: u64,
        /// The key that caps it.
        cap_name: &'static str,
        /// The cap.
        cap: u64,
    },
    /// A request without a watchdog where the tool declares one.
    #[error("{what} 0 (none) is wider than the tool's {what} = {cap}")]
    NoTimeout {
        /// The option.
        what: &'static str,
        /// The tool's.
        cap: u64,
    },
    /// A way of input and output that the tool does not declare.
    #[error("io \"{asked}\" is not in the tool's io = [{}]", quoted(declared))]
    Io {
        /// What was asked.
        asked: Io,
        /// What the tool declares.
        declared: Vec<Io>,
    },
    /// A way out that the tool does not declare.
    #[error("io_fallback needs \"pty\" and \"pipe\" in the tool's io = [{}]", quoted(declared))]
    Fallback {
        /// What the tool declares.
        declared: Vec<Io>,
    },
    /// A path that the policy grants and that is not there.
    #[error("{path:?} is granted but cannot be found ({cause}): a leading '-' lets it be absent")]
    GrantMissing {
        /// The path.
        path: PathBuf,
        /// Why.
        cause: Cause,
    },
    /// A path that the policy grants and that must not be granted.
    #[error("{path:?} cannot be granted: it is {canonical:?}, and {why}")]
    GrantOffLimits {
        /// The path as granted.
        path: PathBuf,
        /// The path, its symlinks followed.
        canonical: PathBuf,
        /// The rule.
        why: Why,
    },
    /// A socket that the policy grants and that cannot be.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// An agent without a command that can be used, or without a way for a prompt.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// What a worktree shares with its repository, where they do not belong together.
    #[error("git_common_dir: {0}")]
    Repository(#[from] RepositoryError),
}

fn quoted(words: &[Io]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    words.join(", ")
}

/// What no policy could permit: a value outside its type's rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidArgs {
    /// A number outside its bounds.
    #[error("{what} {value} is outside {least}..={most}")]
    Outside {
        /// The option.
        what: &'static str,
        /// What was asked.
        value: u64,
        /// Least.
        least: u64,
        /// Most.
        most: u64,
    },
    /// A command without a program.
    #[error("argv is empty, and tool \"{0}\" declares no command")]
    NoProgram(ToolName),
    /// A NUL byte, where execve(2) would end the text.
    #[error("{what} {value:?} holds a NUL byte")]
    Nul {
        /// Where.
        what: &'static str,
        /// The text.
        value: OsString,
    },
    /// A terminal type that is no name of one.
    #[error(
        "term {0:?} is not 1 to 64 of letters, digits, '+', '-', '.' and '_', \
         beginning with a letter or digit"
    )]
    Term(String),
    /// A standard input for a terminal.
    #[error(
        "stdin goes with io \"pipe\" or with io_fallback: a terminal is input and output in one"
    )]
    Stdin,
    /// Too many labels.
    #[error("{given} labels given, at most {most}")]
    Labels {
        /// How many.
        given: usize,
        /// Most.
        most: u64,
    },
    /// A label that is empty, too long or not one line.
    #[error(
        "label {name:?} is not a name of 1 to {most} bytes with a value of at most {most} bytes, \
         without control characters"
    )]
    Label {
        /// Its name.
        name: String,
        /// Most bytes of either.
        most: u64,
    },
    /// Not the name of a unit.
    #[error("bind_unit {0:?} is not the name of a unit")]
    Unit(String),
}

/// A limit of the settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitReached {
    /// argv and environment are too long together.
    #[error("argv and environment take {bytes} bytes, above argv_env_bytes = {most}")]
    ArgvEnv {
        /// How many.
        bytes: u64,
        /// Most.
        most: u64,
    },
}

/// What confinement needs and this machine lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Missing {
    /// No Landlock at all.
    #[error("the kernel offers no landlock")]
    Landlock,
    /// An old Landlock.
    #[error(
        "landlock ABI {abi} is below 6: signals and abstract sockets would stay open \
         (allow_degraded in broker.toml accepts that)"
    )]
    LandlockAbi {
        /// What there is.
        abi: u32,
    },
    /// Ports that a Landlock of this ABI does not know.
    #[error(
        "landlock ABI {abi} is below 4 and cannot hold a tool to \"{network}\": every TCP port would stay open \
         (allow_degraded in broker.toml accepts that)"
    )]
    Ports {
        /// What there is.
        abi: u32,
        /// What the profile grants.
        network: Network,
    },
    /// A loopback interface of a session's own.
    #[error("network \"loopback\" needs the tier \"mounts\", and the best here is \"{}\"", tier.as_str())]
    Loopback {
        /// What there is.
        tier: Tier,
    },
    /// No filters.
    #[error("the kernel offers no seccomp filters")]
    Seccomp,
    /// The settings allow no tier.
    #[error("no tier is allowed: {MAX_TIER_VARIABLE} is \"none\"")]
    NoTierAllowed,
}
