//! Why a tool cannot be confined.

use std::{io, path::PathBuf};

use landlock::{RulesetError, RulesetStatus};

use super::{REQUIRED_ABI, SOCKETS_ABI};
use crate::launch::{
    capability::CapabilityError, mounts::MountError, report::Tier, seccomp::SeccompError,
    spec::Slot,
};

/// Why a tool cannot be confined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfineError {
    /// Landlock is not built in, or not among the `lsm=` of the kernel's command line.
    #[error("this kernel has no landlock")]
    NoLandlock,
    /// Below [`REQUIRED_ABI`], and the policy does not allow that.
    #[error("landlock ABI {0} is below {REQUIRED_ABI} and the policy does not allow it")]
    OldLandlock(u32),
    /// Ports are granted, but this ABI does not know ports.
    #[error("landlock ABI {0} is below 4 and cannot grant TCP ports")]
    NoPorts(u32),
    /// A tier that Landlock alone makes, but this ABI does not know sockets.
    #[error(
        "landlock ABI {0} is below {SOCKETS_ABI} and cannot confine sockets: no tier resolve-unix"
    )]
    NoResolveUnix(u32),
    /// A network of its own needs namespaces.
    #[error("network loopback needs tier mounts, and this is tier {}", .0.as_str())]
    NoLoopback(Tier),
    /// A tier in which no socket can be granted.
    #[error("the socket {} cannot be granted in tier {}", path.display(), tier.as_str())]
    NoSockets {
        /// The socket.
        path: PathBuf,
        /// The tier.
        tier: Tier,
    },
    /// A socket is granted, but local sockets are taken: a granted path holds those of others, or
    /// abstract ones are not scoped.
    #[error("the socket {} cannot be granted where the tool has no local sockets", .0.display())]
    NoLocalSockets(PathBuf),
    /// A tier that shows a socket only where it is.
    #[error("the socket {} cannot be shown at {} in tier {}", path.display(), at.display(), tier.as_str())]
    SocketElsewhere {
        /// The socket.
        path: PathBuf,
        /// Where the tool would find it.
        at: PathBuf,
        /// The tier.
        tier: Tier,
    },
    /// Granted as a socket.
    #[error("{} is granted as a socket, and is none", .0.display())]
    NotASocket(PathBuf),
    /// Granted as a file.
    #[error("{} is a socket, and not granted as one", .0.display())]
    IsASocket(PathBuf),
    /// A granted path cannot be opened.
    #[error("cannot open the granted path {}: {source}", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// The call's error.
        source: io::Error,
    },
    /// A granted file's kind cannot be read.
    #[error("cannot read the kind of a granted file: {source}")]
    Stat {
        /// The call's error.
        source: io::Error,
    },
    /// A grant names a descriptor that did not come.
    #[error("no descriptor came for the {0:?} grant")]
    NoDescriptor(Slot),
    /// A terminal is granted to a tool that has none.
    #[error("the session's terminal is granted, and it has none")]
    NoTerminal,
    /// A rule or the ruleset was refused.
    #[error("cannot make the landlock ruleset: {source}")]
    Ruleset {
        /// What landlock says.
        source: RulesetError,
    },
    /// The kernel took the ruleset, but not all of it.
    #[error("landlock enforces the ruleset only as {0:?}")]
    NotEnforced(RulesetStatus),
    /// A root of the tool's own.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// Capabilities.
    #[error(transparent)]
    Capability(#[from] CapabilityError),
    /// The system call filter.
    #[error(transparent)]
    Seccomp(#[from] SeccompError),
}

impl From<RulesetError> for ConfineError {
    fn from(source: RulesetError) -> Self {
        Self::Ruleset { source }
    }
}
