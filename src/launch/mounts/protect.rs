//! What stays as it is inside a writable workspace.
//!
//! A path is protected by a read-only mount on itself. Every directory between the workspace and it
//! gets a mount on itself as well, writable, because the kernel refuses to rename or remove only what
//! has a mount on it: without, the directory could be moved away and another put in its place.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use nix::{errno::Errno, sys::stat::SFlag};

use super::{
    calls::RDONLY,
    tree::{Tree, kind, make, open},
};
use crate::launch::spec::Protected;

/// Whether every path can be protected: it is there, or what it lies in is, and no symlink is on the
/// way.
#[must_use]
pub fn is_whole(workspace: impl AsFd, protect: &[Protected]) -> bool {
    protect.iter().all(|protected| reaches(workspace.as_fd(), &protected.path).unwrap_or(false))
}

fn reaches(workspace: impl AsFd, path: &Path) -> nix::Result<bool> {
    let mut here: OwnedFd = open(workspace, OsStr::new("."))?;
    let mut names = path.iter().peekable();
    while let Some(name) = names.next() {
        let next = match open(&here, name) {
            Err(Errno::ENOENT) if names.peek().is_none() => return Ok(true),
            other => other?,
        };
        let found = kind(&next)?;
        let wanted = names.peek().is_none() || found == SFlag::S_IFDIR;
        if !wanted || found == SFlag::S_IFLNK {
            return Ok(false);
        }
        here = next;
    }
    Ok(true)
}

/// What of a workspace has a mount on itself already.
#[derive(Debug, Default)]
pub(super) struct Guard(BTreeSet<PathBuf>);

impl Guard {
    /// Protects one path, and makes it where it is missing in a directory that is there; gives
    /// whether that could be done.
    ///
    /// Something else than a directory on the way is protected itself.
    ///
    /// # Errors
    /// What a mount call gives.
    pub(super) fn protect(&mut self, workspace: &Tree, protected: &Protected) -> io::Result<bool> {
        let mut here = workspace.as_fd().try_clone_to_owned()?;
        for path in ways(&protected.path) {
            let Some(name) = path.file_name() else { return Ok(false) };
            let is_last = path == protected.path;
            let next = match open(&here, name) {
                Err(Errno::ENOENT) if is_last && make(&here, name, protected.directory).is_ok() => {
                    open(&here, name)?
                }
                Err(Errno::ENOENT) => return Ok(false),
                other => other?,
            };
            let found = kind(&next)?;
            if found == SFlag::S_IFLNK {
                return Ok(false);
            }
            let fixed = is_last || found != SFlag::S_IFDIR;
            here = self.mount(path, next, fixed)?;
            if fixed {
                return Ok(is_last);
            }
        }
        Ok(true)
    }

    /// Puts a mount of itself on a file, unless it has one.
    fn mount(&mut self, path: &Path, file: OwnedFd, fixed: bool) -> io::Result<OwnedFd> {
        if !self.0.insert(path.to_owned()) && !fixed {
            return Ok(file);
        }
        let mount = Tree::of(file.as_fd())?;
        if fixed {
            mount.restrict(RDONLY)?;
        }
        mount.attach(&file)?;
        mount.as_fd().try_clone_to_owned()
    }
}

/// The path and all that it lies in, the outermost first.
fn ways(path: &Path) -> Vec<&Path> {
    let mut ways: Vec<&Path> =
        path.ancestors().filter(|path| !path.as_os_str().is_empty()).collect();
    ways.reverse();
    ways
}
