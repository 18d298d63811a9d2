//! The workspace of a session and the working directory in it: checked, and opened once.
//!
//! # Rules
//!
//! A workspace is an absolute path without `.` and `..` to a directory that the user can list and
//! enter. A symlink on the way is followed only where it stays beneath the directory that holds it:
//! a tool that could write there earlier may have put it, and must not choose what the next one
//! gets. What the walk found is then opened with no symlink allowed at all, so that the directory
//! opened is the one that was judged, whatever is renamed meanwhile.

use std::{
    fs,
    io::{self, ErrorKind},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Component, Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat, openat2},
    sys::stat::Mode,
};

use crate::policy::{
    beneath,
    cause::Cause,
    off_limits::{OffLimits, Why},
};

/// Longest path, bytes, its end included (path_resolution(7)).
const PATH_MAX: usize = 4096;

/// A directory, opened, and the path at which it was.
#[derive(Debug)]
pub struct Opened {
    /// The directory, `O_PATH | O_DIRECTORY`.
    pub fd: OwnedFd,
    /// Its canonical path.
    pub path: PathBuf,
}

/// A directory that a session cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// Neither the request nor the tool names one.
    #[error("no workspace is given, and the tool declares none")]
    None,
    /// Not a path from the root.
    #[error("workspace {0:?} is not an absolute path")]
    NotAbsolute(PathBuf),
    /// `..`, NUL, or too long.
    #[error("workspace {0:?} holds '..' or a NUL byte, or is longer than 4095 bytes")]
    NotNormal(PathBuf),
    /// Not there, or not to be reached.
    #[error("workspace {path:?} cannot be opened: {cause}")]
    Unreachable {
        /// The path.
        path: PathBuf,
        /// Why.
        cause: Cause,
    },
    /// A file.
    #[error("workspace {0:?} is not a directory")]
    NotADirectory(PathBuf),
    /// The user may not list or enter it.
    #[error("workspace {0:?} cannot be listed and entered by this user")]
    Unreadable(PathBuf),
    /// A symlink out.
    #[error(
        "workspace {path:?} leaves {parent:?} through the symlink {link:?}: \
         name its target if that is meant"
    )]
    LeavesParent {
        /// The path.
        path: PathBuf,
        /// The symlink.
        link: PathBuf,
        /// The directory that holds it.
        parent: PathBuf,
    },
    /// It was replaced while it was opened.
    #[error("workspace {0:?} changed while it was opened")]
    Changed(PathBuf),
    /// A place that no tool gets.
    #[error("workspace {path:?} is refused: {why}")]
    OffLimits {
        /// Its canonical path.
        path: PathBuf,
        /// The rule.
        why: Why,
    },
    /// A working directory elsewhere.
    #[error("cwd {cwd:?} is not inside the workspace {workspace:?}")]
    CwdOutside {
        /// The working directory.
        cwd: PathBuf,
        /// The workspace.
        workspace: PathBuf,
    },
    /// A working directory that cannot be entered.
    #[error("cwd {path:?} cannot be opened: {cause}")]
    CwdUnreachable {
        /// The path.
        path: PathBuf,
        /// Why.
        cause: Cause,
    },
}

/// Checks and opens a workspace.
///
/// # Errors
/// [`WorkspaceError`] naming the rule of this module that is broken.
pub fn open(path: &Path, off_limits: &OffLimits) -> Result<Opened, WorkspaceError> {
    check_form(path)?;
    let canonical = walk(path)?;
    if let Some(why) = off_limits.workspace(&canonical) {
        return Err(WorkspaceError::OffLimits { path: canonical, why });
    }
    let how =
        directory().resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let fd = openat2(AT_FDCWD, &canonical, how).map_err(|errno| match errno {
        Errno::ENOTDIR => WorkspaceError::NotADirectory(path.to_owned()),
        Errno::ELOOP | Errno::ENOENT => WorkspaceError::Changed(path.to_owned()),
        other => WorkspaceError::Unreachable { path: path.to_owned(), cause: other.into() },
    })?;
    if !is_usable(&fd) {
        return Err(WorkspaceError::Unreadable(path.to_owned()));
    }
    Ok(Opened { fd, path: canonical })
}

/// Opens the working directory, absolute or relative to the workspace, beneath it.
///
/// Symlinks are followed as long as they stay inside.
///
/// # Errors
/// [`WorkspaceError::CwdOutside`] or [`WorkspaceError::CwdUnreachable`].
pub fn open_cwd(workspace: &Opened, asked: &Path, cwd: &Path) -> Result<Opened, WorkspaceError> {
    let outside =
        || WorkspaceError::CwdOutside { cwd: cwd.to_owned(), workspace: workspace.path.clone() };
    let unreachable = |cause| WorkspaceError::CwdUnreachable { path: cwd.to_owned(), cause };
    let relative = inner(workspace, asked, cwd).ok_or_else(outside)?;
    let fd =
        beneath::open(&workspace.fd, non_empty(relative), directory()).map_err(
            |errno| match errno {
                Errno::EXDEV => outside(),
                other => unreachable(other.into()),
            },
        )?;
    if !is_usable(&fd) {
        return Err(unreachable(Cause(ErrorKind::PermissionDenied)));
    }
    let path = path_of(&fd).map_err(|error| unreachable((&error).into()))?;
    Ok(Opened { fd, path })
}

impl Opened {
    /// Whether a path, relative to `cwd` (a directory in this workspace), stays inside: its
    /// symlinks followed as far as it exists, and absolute ones counting as a way out.
    #[must_use]
    pub fn holds(&self, cwd: &Opened, asked: &Path, path: &Path) -> bool {
        let from_cwd = cwd.path.join(path);
        let path = if path.is_absolute() { path } else { &from_cwd };
        let Some(relative) = inner(self, asked, path) else {
            return false;
        };
        let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC);
        match beneath::open(&self.fd, non_empty(relative), how) {
            Ok(_) => true,
            // The kernel came as far as the path exists without leaving; what is missing may not
            // lead back up.
            Err(Errno::ENOENT) => !relative.components().any(|part| part == Component::ParentDir),
            Err(_) => false,
        }
    }
}

fn check_form(path: &Path) -> Result<(), WorkspaceError> {
    if !path.is_absolute() {
        return Err(WorkspaceError::NotAbsolute(path.to_owned()));
    }
    let bytes = path.as_os_str().as_bytes();
    let climbs = path.components().any(|part| part == Component::ParentDir);
    if climbs || bytes.contains(&0) || bytes.len() >= PATH_MAX {
        return Err(WorkspaceError::NotNormal(path.to_owned()));
    }
    Ok(())
}

/// Follows a path name by name; gives the canonical path.
fn walk(path: &Path) -> Result<PathBuf, WorkspaceError> {
    let unreachable = |error: io::Error| match error.kind() {
        ErrorKind::NotADirectory => WorkspaceError::NotADirectory(path.to_owned()),
        kind => WorkspaceError::Unreachable { path: path.to_owned(), cause: Cause(kind) },
    };
    let mut reached = PathBuf::from("/");
    for name in path.components().filter(|part| matches!(part, Component::Normal(_))) {
        let next = reached.join(name);
        if next.symlink_metadata().map_err(unreachable)?.is_symlink() {
            let target = fs::canonicalize(&next).map_err(unreachable)?;
            if !target.starts_with(&reached) {
                let (path, parent) = (path.to_owned(), reached);
                return Err(WorkspaceError::LeavesParent { path, link: next, parent });
            }
            reached = target;
        } else {
            reached = next;
        }
    }
    Ok(reached)
}

/// The part of a path that lies beneath the workspace, by its canonical or its asked name.
fn inner<'p>(workspace: &Opened, asked: &Path, path: &'p Path) -> Option<&'p Path> {
    if path.as_os_str().as_bytes().contains(&0) {
        return None;
    }
    if path.is_relative() {
        return Some(path);
    }
    path.strip_prefix(&workspace.path).or_else(|_| path.strip_prefix(asked)).ok()
}

fn non_empty(relative: &Path) -> &Path {
    if relative.as_os_str().is_empty() { Path::new(".") } else { relative }
}

fn directory() -> OpenHow {
    OpenHow::new().flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
}

/// Whether the user can list and enter a directory: by doing both, not by reading permission bits.
fn is_usable(directory: &OwnedFd) -> bool {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    openat(directory.as_fd(), ".", flags, Mode::empty()).is_ok()
}

/// The path of an open directory, as the kernel tells it (proc(5), `/proc/PID/fd`).
pub(super) fn path_of(directory: &OwnedFd) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd()))
}

#[cfg(test)]
mod tests;
