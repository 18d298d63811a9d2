//! What the kernel accepted of a confinement: the launcher's word, given just before `execve`.

use serde::{Deserialize, Serialize};

/// What closes pathname sockets, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// A mount namespace whose root holds only what is granted: no other socket has a path.
    Mounts,
    /// Landlock's `RESOLVE_UNIX` (ABI 9): a socket outside the session can be connected to where it is granted.
    ResolveUnix,
    /// `socket(AF_UNIX)` is refused by a seccomp filter; `socketpair` stays.
    Seccomp,
}

/// What is not enforced. The words are part of the contract and documented in the README.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gap {
    /// What needs no open file is open on files outside the grants, as far as ownership lets it: chmod, chown,
    /// utimensat and setxattr; and seeing size, times, attributes and changes of a file whose name is known.
    MetadataOutside,
    /// `.git/hooks` or `.git/config` of a writable workspace can be written, or the repository replaced by another;
    /// or so of the repository that its worktree belongs to; or something else that was to be protected.
    GitHooks,
    /// What is written in a writable workspace may run later, outside: build files, `.envrc`, nested repositories,
    /// a `.git/commondir`.
    WorkspaceCode,
    /// Other directories than the workspace and `TMPDIR` can be written, and what is left there may run later,
    /// outside: caches of packages, settings of programs, a repository that worktrees share.
    OutsideCode,
    /// Somebody outside serves a granted socket, and does for the tool what it would do for the user.
    GrantedSockets,
    /// User namespaces are forbidden here: a lesser tier is in force.
    NoUserNamespace,
    /// Nothing bounds how much a tool writes where it may write.
    DiskSpace,
    /// What /proc shows of every process can be read: command lines, status, the numbers of open descriptors.
    ProcessesVisible,
    /// UDP is open where the profile allows any network (below Landlock ABI 10).
    UdpOpen,
    /// TCP is open to every port where the profile names some (below Landlock ABI 4).
    TcpOpen,
    /// Refusals are not written to the audit log (below Landlock ABI 7).
    Audit,
    /// Signals to processes outside are open (below Landlock ABI 6).
    SignalsOutside,
    /// `ioctl` on device files that can be opened is open (below Landlock ABI 5).
    DeviceIoctl,
    /// Files outside the grants can be truncated as far as ownership lets them (below Landlock ABI 3).
    TruncateOutside,
    /// No service manager: there is no scope, and `systemctl` does not see the session.
    NoScope,
    /// No cgroup of its own: processes are found by descent, and cannot be frozen.
    NoCgroup,
    /// `MemoryMax` and `TasksMax` are not enforced: no controller here.
    NoResourceLimits,
}

impl Tier {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mounts => "mounts",
            Self::ResolveUnix => "resolve-unix",
            Self::Seccomp => "seccomp",
        }
    }
}

impl Gap {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MetadataOutside => "metadata-outside",
            Self::GitHooks => "git-hooks",
            Self::WorkspaceCode => "workspace-code",
            Self::OutsideCode => "outside-code",
            Self::GrantedSockets => "granted-sockets",
            Self::NoUserNamespace => "no-user-namespace",
            Self::DiskSpace => "disk-space",
            Self::ProcessesVisible => "processes-visible",
            Self::UdpOpen => "udp-open",
            Self::TcpOpen => "tcp-open",
            Self::Audit => "audit",
            Self::SignalsOutside => "signals-outside",
            Self::DeviceIoctl => "device-ioctl",
            Self::TruncateOutside => "truncate-outside",
            Self::NoScope => "no-scope",
            Self::NoCgroup => "no-cgroup",
            Self::NoResourceLimits => "no-resource-limits",
        }
    }
}

/// What is not enforced in all: what the kernel leaves open and what the host cannot promise, each once.
#[must_use]
pub fn all_gaps(of_kernel: &[Gap], of_host: &[Gap]) -> Vec<Gap> {
    let mut gaps = [of_kernel, of_host].concat();
    gaps.sort_unstable();
    gaps.dedup();
    gaps
}

/// What the kernel accepted, as `Confinement` on the bus shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// What closes pathname sockets.
    pub tier: Tier,
    /// Landlock ABI in force: the kernel's, or the cap of a test.
    pub landlock_abi: u32,
    /// Paths that can be read, beneath them included.
    pub read: Vec<String>,
    /// Paths that can be written, beneath them included.
    pub write: Vec<String>,
    /// Paths from which programs can be executed.
    pub execute: Vec<String>,
    /// Device nodes that can be opened.
    pub devices: Vec<String>,
    /// What beneath the writable paths can only be read: what has a mount of its own, in tier `mounts` only.
    pub protect: Vec<String>,
    /// `none`, or what is open.
    pub network: String,
    /// `none`: no local sockets but connected pairs. `session`: those that are made inside, those beneath the workspace
    /// and `TMPDIR` (beneath every granted path in tier `mounts` below Landlock ABI 9), and `sockets`.
    pub unix_sockets: String,
    /// Pathname sockets of others that can be connected to, as the tool finds them.
    pub sockets: Vec<String>,
    /// `session`, or `open`.
    pub signals: String,
    /// `filtered`.
    pub syscalls: String,
    /// `none`.
    pub capabilities: String,
    /// What is not enforced.
    pub gaps: Vec<Gap>,
}
