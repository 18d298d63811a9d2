//! git, and a repository to use it in.

use std::{fs, path::Path, process::Command};

use tempfile::TempDir;

use crate::support::{Broker, outcome, screen::Screen, within, workspace};

/// Runs git outside of any session.
pub fn git(place: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").current_dir(place).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// A repository with one commit.
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

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).unwrap();
    }
}

/// A text of numbered lines, some of them changed.
fn lines(changed: &[usize]) -> String {
    let line = |number| {
        let word = if changed.contains(&number) { "changed" } else { "line" };
        format!("{word} {number}\n")
    };
    (1..=40).map(line).collect()
}

#[tokio::test]
async fn git_add_stages_one_of_two_hunks() {
    let broker = Broker::unit().await;
    let repository = Repository::new(&[("file.txt", &lines(&[]))]);
    repository.write("file.txt", &lines(&[3, 33]));
    let client = broker.client().await;
    let (session, _) = client.open("git-add", within(repository.path())).await.unwrap();
    let mut screen = Screen::attach(&session).await;
    let first = screen.shows("(1/2) Stage this hunk").await;
    assert!(first.contains("+changed 3") && !first.contains("+changed 33"), "{first}");
    screen.press("n\n").await;
    screen.shows("(2/2) Stage this hunk").await;
    screen.press("y\n").await;
    let outcome = outcome(&session).await;
    assert_eq!((outcome.text("kind"), outcome.signed("code")), (Some("exited"), Some(0)));
    assert_eq!(outcome.text("reason"), Some("exit"));
    let staged = git(repository.path(), &["diff", "--cached"]);
    assert!(staged.contains("+changed 33") && !staged.contains("+changed 3\n"), "{staged}");
    let left = git(repository.path(), &["diff"]);
    assert!(left.contains("+changed 3\n") && !left.contains("+changed 33"), "{left}");
}
