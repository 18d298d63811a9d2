//! Where one thing in the new root comes from, and the mount that shows it.

use std::{
    ffi::CStr,
    path::{Path, PathBuf},
};

use super::{
    calls::{NODEV, NOEXEC, NOSUID, RDONLY},
    error::{MountError, at},
    tree::{Identity, Tree},
};
use crate::launch::spec::Access;

/// The most that a tool may keep in its own `/tmp`, and in its own `/dev/shm`. Their pages count as
/// memory of the session.
const PRIVATE_SIZE: &CStr = c"268435456";

/// The most files in each.
const PRIVATE_INODES: &CStr = c"65536";

/// What is laid in one place.
#[derive(Debug)]
pub(super) enum Source {
    /// The same path, as long as it is the same file.
    Path { identity: Identity, is_directory: bool, access: Access },
    /// The workspace, carried by the working directory.
    Workspace { writable: bool },
    /// The session's terminal, by its name outside.
    Terminal { name: PathBuf, identity: Identity },
    /// A socket that somebody outside listens on, by its path there.
    Socket { path: PathBuf, identity: Identity },
    /// Nothing: memory.
    Private,
    /// Nothing: a new instance of devpts.
    Terminals,
}

impl Source {
    pub(super) fn is_directory(&self) -> bool {
        match self {
            Self::Path { is_directory, .. } => *is_directory,
            Self::Terminal { .. } | Self::Socket { .. } => false,
            Self::Workspace { .. } | Self::Private | Self::Terminals => true,
        }
    }

    /// Whether the tool writes in there what stays when it is gone.
    pub(super) fn is_writable(&self) -> bool {
        match self {
            Self::Path { access, .. } => access.write && !access.device,
            Self::Workspace { writable } => *writable,
            Self::Terminal { .. } | Self::Socket { .. } | Self::Private | Self::Terminals => false,
        }
    }

    /// What may be done with it where nothing is granted: it is the tool's own.
    pub(super) fn own(&self) -> Option<Access> {
        let read_write = Access { read: true, write: true, ..Access::default() };
        match self {
            Self::Private => Some(read_write),
            Self::Terminals => Some(Access { device: true, ..read_write }),
            Self::Path { .. }
            | Self::Workspace { .. }
            | Self::Terminal { .. }
            | Self::Socket { .. } => None,
        }
    }

    /// The mount for it, with its attributes; `carried` is the one that the working directory brought.
    ///
    /// Through a read-only mount, a device node is written to and a socket connected to all the same;
    /// their modes and times are not changed.
    ///
    /// # Errors
    /// [`MountError`]; [`MountError::Changed`] where there is another file by now.
    pub(super) fn copy(&self, path: &Path, carried: &Tree) -> Result<Tree, MountError> {
        let read_only = |writable: bool| if writable { 0 } else { RDONLY };
        match self {
            Self::Private => Tree::tmpfs(
                &[(c"mode", c"1777"), (c"size", PRIVATE_SIZE), (c"nr_inodes", PRIVATE_INODES)],
                NOSUID | NODEV | NOEXEC,
            )
            .map_err(at("make a file system for", path)),
            Self::Terminals => Tree::devpts().map_err(at("make terminals for", path)),
            Self::Workspace { writable } => {
                let tree = carried.try_clone().map_err(at("copy the mount of", path))?;
                restricted(tree, NOSUID | NODEV | read_only(*writable), path)
            }
            Self::Terminal { name, identity } => same(name, *identity, NOSUID | NOEXEC | RDONLY),
            Self::Socket { path, identity } => {
                same(path, *identity, NOSUID | NODEV | NOEXEC | RDONLY)
            }
            Self::Path { identity, access, .. } if access.device => {
                same(path, *identity, NOSUID | NOEXEC | RDONLY)
            }
            Self::Path { identity, access, .. } => {
                same(path, *identity, NOSUID | NODEV | read_only(access.write))
            }
        }
    }
}

/// The mount of what is at a path, if that is the very file that was judged.
fn same(path: &Path, identity: Identity, attributes: u64) -> Result<Tree, MountError> {
    let tree = Tree::at(path).map_err(at("copy the mount of", path))?;
    if Identity::of(&tree).map_err(at("look at", path))? != identity {
        return Err(MountError::Changed(path.to_owned()));
    }
    restricted(tree, attributes, path)
}

fn restricted(tree: Tree, attributes: u64, path: &Path) -> Result<Tree, MountError> {
    tree.restrict(attributes).map_err(at("restrict the mount of", path))?;
    Ok(tree)
}
