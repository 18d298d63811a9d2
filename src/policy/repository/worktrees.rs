//! The other worktrees of a repository.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use nix::unistd::Uid;

use super::directory::Directory;
use crate::policy::settled::settled;

/// Most worktrees that are looked at, the first by name.
const WORKTREES_MAX: usize = 64;

/// `worktrees/NAME` of each worktree that has a `commondir`.
pub(super) fn worktrees(common: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(common.join("worktrees")) else { return Vec::new() };
    let names = entries.flatten().map(|entry| Path::new("worktrees").join(entry.file_name()));
    let is_linked = |path: &PathBuf| {
        let link = fs::symlink_metadata(common.join(path).join("commondir"));
        link.is_ok_and(|link| link.is_file())
    };
    let mut worktrees: Vec<PathBuf> = names.filter(is_linked).collect();
    worktrees.sort_unstable();
    worktrees.truncate(WORKTREES_MAX);
    worktrees
}

/// The `.git` of each worktree that is there, by the name that the repository has for it.
///
/// git forgets a worktree whose `.git` has no name any more (git-worktree(1), `prune`; `git gc` does
/// it unasked), and with it what was staged and checked out there. In a root of the tool's own none of
/// the others has one, so these names have to be made.
pub(super) fn names(common: &Directory, user: Uid) -> Vec<PathBuf> {
    let worktrees = worktrees(common.path()).into_iter();
    worktrees.filter_map(|worktree| name(common, &worktree, user)).collect()
}

fn name(common: &Directory, worktree: &Path, user: Uid) -> Option<PathBuf> {
    let git_dir = common.named("worktrees", worktree).ok()?;
    let named = PathBuf::from(git_dir.line("gitdir", user).ok()?);
    let name = if named.is_absolute() {
        named
    } else {
        let named = git_dir.path().join(named);
        settled(named.parent()?).join(named.file_name()?)
    };
    let plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
    let there = fs::symlink_metadata(&name).is_ok();
    (there && name.file_name()? == ".git" && name.components().all(plain)).then_some(name)
}
