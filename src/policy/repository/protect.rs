//! What in a repository decides which programs git runs, in each of its worktrees.

use std::path::PathBuf;

use super::{directory::Directory, worktrees::worktrees};
use crate::launch::spec::Protected;

/// Longest configuration that is looked into, bytes.
const CONFIG_MAX: u64 = 64 * 1024;

/// What the tool can only read of what a worktree shares, and the link of the workspace itself.
///
/// Submodules of the main worktree are in `modules`, each with configuration and hooks. A worktree's
/// `commondir` says from where it takes its own. Where a repository says so (git-worktree(1),
/// "CONFIGURATION FILE"), each worktree has a configuration in `config.worktree`.
pub(super) fn of(common: &Directory) -> Vec<Protected> {
    let beneath = |path: PathBuf, directory| Protected {
        beneath: Some(common.path().to_owned()),
        path,
        directory,
    };
    let file = |path: PathBuf| beneath(path, false);
    let link = Protected { beneath: None, path: ".git".into(), directory: false };
    let mut protect = vec![link, beneath("hooks".into(), true), beneath("modules".into(), true)];
    protect.push(file("config".into()));
    let own_configuration = has_worktree_config(common);
    if own_configuration {
        protect.push(file("config.worktree".into()));
    }
    for worktree in worktrees(common.path()) {
        protect.push(file(worktree.join("commondir")));
        if own_configuration {
            protect.push(file(worktree.join("config.worktree")));
        }
    }
    protect
}

/// Whether git may read a `config.worktree` here: the configuration names the extension, or is too
/// long to tell.
fn has_worktree_config(common: &Directory) -> bool {
    match common.read("config", CONFIG_MAX) {
        Ok(Some((bytes, _))) if bytes.len() as u64 <= CONFIG_MAX => {
            String::from_utf8_lossy(&bytes).to_ascii_lowercase().contains("worktreeconfig")
        }
        _ => true,
    }
}
