//! The repository of a workspace that is a linked worktree (gitrepository-layout(5)).
//!
//! # Rules
//!
//! The `.git` file of the workspace is written by whatever ran there, so its word counts for
//! nothing: the directory that it names must be `REPOSITORY/worktrees/NAME`, the user's own, and name
//! this workspace in return. Whoever could forge that can write to that repository already. No
//! symlink is followed, and no file is read further than [`LINK_MAX`].

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use nix::{sys::stat::SFlag, unistd::Uid};

use crate::{
    launch::spec::Protected,
    policy::{
        cause::Cause,
        off_limits::{OffLimits, Why},
        workspace::Opened,
    },
};

mod directory;
mod protect;
mod worktrees;

pub use directory::LINK_MAX;

use directory::Directory;

/// What a worktree shares with its repository.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Linked {
    /// The canonical path of the common directory.
    pub(super) common: PathBuf,
    /// What in it, and in the workspace, the tool can only read.
    pub(super) protect: Vec<Protected>,
    /// Paths that must have a name for the tool, whatever it is, or git forgets worktrees.
    pub(super) names: Vec<PathBuf>,
}

/// Why the common directory is not granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryError {
    /// A file of the link cannot be read, or is none.
    #[error("{path:?} cannot be read: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: Cause,
    },
    /// A pipe, a device, a directory.
    #[error("{0:?} is not a regular file")]
    NotAFile(PathBuf),
    /// `.git` is a symlink.
    #[error("{0:?} is a symlink, which leads out of the workspace")]
    Symlink(PathBuf),
    /// It is too long, or not one line.
    #[error("{0:?} is not one line with a path, of at most {LINK_MAX} bytes")]
    NotALine(PathBuf),
    /// `.git` does not say where the git directory is.
    #[error("{0:?} does not begin with \"gitdir: \" and a path")]
    NotALink(PathBuf),
    /// Somebody else's.
    #[error("{0:?} belongs to another user")]
    Owner(PathBuf),
    /// What `.git` names cannot be opened.
    #[error(
        "{link:?} leads to {path:?}, which cannot be opened without following symlinks: {cause}"
    )]
    Unreachable {
        /// The file that names it.
        link: PathBuf,
        /// What it names.
        path: PathBuf,
        /// Why.
        cause: Cause,
    },
    /// A repository of another kind: that of a submodule, one that lies elsewhere as a whole.
    #[error("{0:?} is not REPOSITORY/worktrees/NAME, the git directory of a linked worktree")]
    NotAWorktree(PathBuf),
    /// The repository knows nothing of this worktree.
    #[error(
        "{git_dir:?} does not point back: its \"gitdir\" names {names:?}, not this workspace \
         (git worktree repair mends what was moved)"
    )]
    NotBack {
        /// The worktree's git directory.
        git_dir: PathBuf,
        /// What it names.
        names: PathBuf,
    },
    /// The worktree's git directory lies in one repository and belongs to another.
    #[error("{git_dir:?} is in {common:?}, but its \"commondir\" names {names:?}")]
    OtherCommon {
        /// The worktree's git directory.
        git_dir: PathBuf,
        /// The repository it is in.
        common: PathBuf,
        /// What it names.
        names: PathBuf,
    },
    /// Not what git makes.
    #[error("{common:?} is not a repository: {lacks} is not there, or not what git makes it")]
    NotARepository {
        /// The common directory.
        common: PathBuf,
        /// What is not there.
        lacks: &'static str,
    },
    /// A repository around the worktree: granting it would grant its other worktrees.
    #[error("{0:?} holds the workspace itself")]
    HoldsWorkspace(PathBuf),
    /// A place that no tool gets.
    #[error("{path:?} is refused: {why}")]
    OffLimits {
        /// The common directory.
        path: PathBuf,
        /// The rule.
        why: Why,
    },
}

/// Finds what a workspace shares with its repository; none where it is no worktree, or all of it
/// lies in the workspace.
///
/// # Errors
/// [`RepositoryError`] naming what does not fit together.
pub(super) fn linked(
    workspace: &Opened,
    user: Uid,
    off_limits: &OffLimits,
) -> Result<Option<Linked>, RepositoryError> {
    let workspace = Directory::opened(workspace)?;
    let Some(git_dir) = git_dir(&workspace, user)? else { return Ok(None) };
    if git_dir.path().starts_with(workspace.path()) {
        return Ok(None);
    }
    if git_dir.path().parent().and_then(Path::file_name) != Some(OsStr::new("worktrees")) {
        return Err(RepositoryError::NotAWorktree(git_dir.path().to_owned()));
    }
    check_back(&git_dir, &workspace, user)?;
    let common = common(&git_dir, user)?;
    if workspace.path().starts_with(common.path()) {
        return Err(RepositoryError::HoldsWorkspace(common.path().to_owned()));
    }
    if let Some(why) = off_limits.workspace(common.path()) {
        return Err(RepositoryError::OffLimits { path: common.path().to_owned(), why });
    }
    let (protect, names) = (protect::of(&common), worktrees::names(&common, user));
    Ok(Some(Linked { common: common.path().to_owned(), protect, names }))
}

/// What the `.git` of a workspace names; none where it is no file, but a directory or nothing.
fn git_dir(workspace: &Directory, user: Uid) -> Result<Option<Directory>, RepositoryError> {
    match workspace.kind(".git") {
        None | Some(SFlag::S_IFDIR) => return Ok(None),
        Some(SFlag::S_IFLNK) if workspace.leads_inside(".git") => return Ok(None),
        Some(SFlag::S_IFLNK) => {
            return Err(RepositoryError::Symlink(workspace.path().join(".git")));
        }
        Some(_) => {}
    }
    let line = workspace.line(".git", user)?;
    let named = line.as_bytes().strip_prefix(b"gitdir: ").filter(|named| !named.is_empty());
    let named = named.ok_or_else(|| RepositoryError::NotALink(workspace.path().join(".git")))?;
    workspace.named(".git", Path::new(OsStr::from_bytes(named))).map(Some)
}

/// Whether the git directory is the user's and names the workspace's `.git`, absolute or relative to
/// itself.
fn check_back(
    git_dir: &Directory,
    workspace: &Directory,
    user: Uid,
) -> Result<(), RepositoryError> {
    git_dir.check_owner(user)?;
    let names = PathBuf::from(git_dir.line("gitdir", user)?);
    let holder = names.parent().filter(|_| names.file_name() == Some(OsStr::new(".git")));
    let is_back = holder.is_some_and(|holder| {
        git_dir.named("gitdir", holder).is_ok_and(|holder| holder.is_same(workspace))
    });
    let git_dir = git_dir.path().to_owned();
    if is_back { Ok(()) } else { Err(RepositoryError::NotBack { git_dir, names }) }
}

/// The directory that a worktree's git directory shares with its repository, if both agree.
fn common(git_dir: &Directory, user: Uid) -> Result<Directory, RepositoryError> {
    let common = git_dir.named("commondir", Path::new("../.."))?;
    let names = PathBuf::from(git_dir.line("commondir", user)?);
    if !git_dir.named("commondir", &names)?.is_same(&common) {
        let (git_dir, common) = (git_dir.path().to_owned(), common.path().to_owned());
        return Err(RepositoryError::OtherCommon { git_dir, common, names });
    }
    common.check_owner(user)?;
    let parts = [("HEAD", SFlag::S_IFREG), ("objects", SFlag::S_IFDIR), ("refs", SFlag::S_IFDIR)];
    match parts.into_iter().find(|(name, kind)| common.kind(name) != Some(*kind)) {
        None => Ok(common),
        Some((lacks, _)) => {
            Err(RepositoryError::NotARepository { common: common.path().to_owned(), lacks })
        }
    }
}

#[cfg(test)]
mod tests;
