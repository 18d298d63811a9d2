//! git, and repositories to use it in.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

use super::workspace;

/// Runs git outside of any session.
pub fn git(place: &Path, arguments: &[&str]) -> String {
    let output = try_git(place, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The same where it may fail.
pub fn try_git(place: &Path, arguments: &[&str]) -> Output {
    Command::new("git").current_dir(place).args(arguments).output().unwrap()
}

/// A repository with one commit.
#[derive(Debug)]
pub struct Repository(TempDir);

impl Repository {
    /// Makes one, and commits these files.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let repository = Self(workspace());
        git(repository.path(), &["init", "--quiet"]);
        for (name, text) in files {
            repository.write(name, text);
        }
        git(repository.path(), &["add", "--all"]);
        git(repository.path(), &["commit", "--quiet", "--message=first"]);
        repository
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A path in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file of it.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.join(name), text).unwrap();
    }

    /// The subject of the last commit.
    pub fn subject(&self) -> String {
        subject(self.path())
    }
}

/// A repository with two linked worktrees, each elsewhere.
#[derive(Debug)]
pub struct Linked {
    /// The repository that both are of.
    pub repository: Repository,
    place: TempDir,
    elsewhere: TempDir,
}

impl Linked {
    /// Makes them.
    pub fn new() -> Self {
        let repository = Repository::new(&[("file.txt", "one\n")]);
        let linked = Self { repository, place: workspace(), elsewhere: workspace() };
        for (place, name) in [(linked.path(), "side"), (linked.other(), "other")] {
            let add = ["worktree", "add", "--quiet", "-b", name, place.to_str().unwrap()];
            git(linked.repository.path(), &add);
        }
        fs::write(linked.other().join("secret"), "of the other one").unwrap();
        fs::create_dir_all(linked.common().join("hooks")).unwrap();
        linked
    }

    /// The one that is a workspace.
    pub fn path(&self) -> PathBuf {
        self.place.path().join("tree")
    }

    /// The other one.
    pub fn other(&self) -> PathBuf {
        self.elsewhere.path().join("other")
    }

    /// What all share.
    pub fn common(&self) -> PathBuf {
        self.repository.join(".git")
    }
}

/// The subject of the last commit of a repository.
pub fn subject(repository: &Path) -> String {
    git(repository, &["log", "-1", "--format=%s", "main"]).trim().to_owned()
}
