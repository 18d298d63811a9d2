//! What stays as it is inside a writable directory.
//!
//! A path is protected by a read-only mount on itself. Every directory between the granted one and it
//! gets a mount on itself as well, writable, because the kernel refuses to rename or remove only what
//! has a mount on it: without, the directory could be moved away and another put in its place.

use std::{
    collections::BTreeMap,
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

/// What in a workspace decides which programs git runs.
const HOOKS: [&str; 2] = [".git/hooks", ".git/config"];

/// The same in a repository that worktrees share.
const SHARED_HOOKS: [&str; 2] = ["hooks", "config"];

/// How well a path is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Wholly.
    Whole,
    /// By what bars the way to it: a file where a directory would have to be, which stays itself.
    Barred,
    /// Not at all: a symlink or nothing is on the way.
    None,
}

/// Says how well a path could be protected in a directory: wholly also where it is missing and would
/// be made.
#[must_use]
pub fn hold(directory: impl AsFd, path: &Path) -> Hold {
    reach(directory, path).unwrap_or(Hold::None)
}

fn reach(directory: impl AsFd, path: &Path) -> nix::Result<Hold> {
    let mut here: OwnedFd = open(directory, OsStr::new("."))?;
    let mut names = path.iter().peekable();
    while let Some(name) = names.next() {
        let is_last = names.peek().is_none();
        let next = match open(&here, name) {
            Err(Errno::ENOENT) if is_last => return Ok(Hold::Whole),
            other => other?,
        };
        match kind(&next)? {
            SFlag::S_IFLNK => return Ok(Hold::None),
            found if !is_last && found != SFlag::S_IFDIR => return Ok(Hold::Barred),
            _ => here = next,
        }
    }
    Ok(Hold::Whole)
}

/// Whether a tool that writes in the workspace, or in a repository that its worktree belongs to, could
/// decide what git runs outside: something that was to be protected is not, or it was not all to be.
///
/// A workspace whose `.git` is a file is a worktree: the file stays, and the repository is elsewhere.
#[must_use]
pub fn leaves_hooks(writes_workspace: bool, protect: &[(&Protected, Hold)]) -> bool {
    let (own, shared): (Vec<_>, Vec<_>) = protect.iter().partition(|(it, _)| it.beneath.is_none());
    let keeps = |list: &[(&Protected, Hold)], names: [&str; 2], bar: bool| {
        let is_git = |it: &Protected| names.iter().any(|name| it.path == Path::new(name));
        let named = |name: &&str| list.iter().any(|(it, _)| it.path == Path::new(name));
        let held = |(it, hold): &(&Protected, Hold)| {
            *hold == Hold::Whole || bar && *hold == Hold::Barred && is_git(it)
        };
        names.iter().all(named) && list.iter().all(held)
    };
    let keeps_shared = keeps(&shared, SHARED_HOOKS, false);
    let keeps_own = keeps(&own, HOOKS, keeps_shared);
    writes_workspace && !keeps_own || !shared.is_empty() && !keeps_shared
}

/// What of a writable directory has a mount on itself already, by its path in there, and whether that
/// is read-only.
#[derive(Debug, Default)]
pub(super) struct Guard(BTreeMap<PathBuf, bool>);

impl Guard {
    /// Protects one path, and makes it where it is missing in a directory that is there; gives how
    /// well, and what has the read-only mount.
    ///
    /// # Errors
    /// What a mount call gives.
    pub(super) fn protect(
        &mut self,
        tree: &Tree,
        path: &Path,
        is_directory: bool,
    ) -> io::Result<(Hold, Option<PathBuf>)> {
        let mut here = tree.as_fd().try_clone_to_owned()?;
        for way in ways(path) {
            let Some(name) = way.file_name() else { return Ok((Hold::None, None)) };
            let is_last = way == path;
            let next = match open(&here, name) {
                Err(Errno::ENOENT) if is_last && make(&here, name, is_directory).is_ok() => {
                    open(&here, name)?
                }
                Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok((Hold::None, None)),
                other => other?,
            };
            let found = kind(&next)?;
            if found == SFlag::S_IFLNK {
                return Ok((Hold::None, None));
            }
            let fixed = is_last || found != SFlag::S_IFDIR;
            here = self.mount(way, next, fixed)?;
            if fixed {
                let hold = if is_last { Hold::Whole } else { Hold::Barred };
                return Ok((hold, Some(way.to_owned())));
            }
        }
        Ok((Hold::Whole, None))
    }

    /// Keeps the directories on the way to what is mounted later from being renamed.
    ///
    /// # Errors
    /// What a mount call gives; `ENOENT` or `ENOTDIR` where one is missing or no directory.
    pub(super) fn pin(&mut self, tree: &Tree, path: &Path) -> io::Result<()> {
        let mut here = tree.as_fd().try_clone_to_owned()?;
        for way in ways(path) {
            let name = way.file_name().ok_or(Errno::EINVAL)?;
            let next = open(&here, name)?;
            if kind(&next)? != SFlag::S_IFDIR {
                return Err(Errno::ENOTDIR.into());
            }
            here = self.mount(way, next, false)?;
        }
        Ok(())
    }

    /// Puts a mount of itself on a file, unless it has one.
    fn mount(&mut self, path: &Path, file: OwnedFd, fixed: bool) -> io::Result<OwnedFd> {
        match self.0.get(path) {
            Some(is_fixed) if *is_fixed || !fixed => return Ok(file),
            _ => self.0.insert(path.to_owned(), fixed),
        };
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
