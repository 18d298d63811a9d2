//! A `.git` that is not what git makes: a tool that ran in the workspace before may have written it.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use super::tools::broker;
use crate::support::{
    error_of,
    keys::{SshAgent, variable},
    ran::run,
    repository::Linked,
    short, tiers, within, workspace,
};

/// What an attacker leaves as `.git`.
enum Left {
    /// A file with this text.
    File(String),
    /// A symlink to this.
    Symlink(PathBuf),
}

/// A name, and what is left there. The victim is a repository of the user's with linked worktrees.
fn links(victim: &Linked) -> Vec<(&'static str, Left)> {
    let file = |path: &Path| Left::File(format!("gitdir: {}\n", path.display()));
    let common = victim.common();
    vec![
        ("a repository", file(&common)),
        ("a worktree of another's", file(&common.join("worktrees/other"))),
        ("a worktree that is not there", file(&common.join("worktrees/none"))),
        ("a directory of keys", file(&variable("HOME").join(".ssh"))),
        ("a directory of the system", file(Path::new("/etc"))),
        (
            "a relative path to a repository",
            Left::File(format!("gitdir: ../../..{}", common.display())),
        ),
        ("no path", Left::File("gitdir: \n".to_owned())),
        ("no link at all", Left::File("anything\n".to_owned())),
        ("a symlink to a repository", Left::Symlink(common.clone())),
        ("a symlink to the link of another worktree", Left::Symlink(victim.other().join(".git"))),
    ]
}

fn leave(left: &Left) -> TempDir {
    let place = workspace();
    let link = place.path().join(".git");
    match left {
        Left::File(text) => fs::write(link, text).unwrap(),
        Left::Symlink(target) => symlink(target, link).unwrap(),
    }
    place
}

#[tokio::test]
async fn a_link_that_is_not_pointed_back_at_is_refused() {
    let agent = SshAgent::start();
    for tier in tiers().await {
        let (broker, _policy) = broker(&tier, &agent, &[]).await;
        let client = broker.client().await;
        let victim = Linked::new();
        fs::create_dir_all(variable("HOME").join(".ssh")).unwrap();
        for (name, left) in links(&victim) {
            let place = leave(&left);
            let argv = vec!["status".to_owned()];
            let opened = client.open("git", within(place.path()).with("argv", argv)).await;
            assert!(opened.is_err(), "{tier}: {name} is accepted");
            let (error, text) = error_of(opened);
            assert_eq!(short(&error), "NotPermitted", "{tier}: {name}: {text}");
            assert!(text.contains("git_common_dir"), "{tier}: {name}: {text}");
        }
    }
}

/// What leads back into the workspace is the tool's own to begin with, whatever it says of elsewhere.
#[tokio::test]
async fn a_git_directory_forged_within_the_workspace_opens_nothing_of_the_victim() {
    let agent = SshAgent::start();
    for tier in tiers().await {
        let (broker, _policy) = broker(&tier, &agent, &[]).await;
        let client = broker.client().await;
        let victim = Linked::new();
        let place = leave(&Left::File("gitdir: forged/worktrees/mine\n".to_owned()));
        let forged = place.path().join("forged/worktrees/mine");
        fs::create_dir_all(&forged).unwrap();
        fs::write(forged.join("gitdir"), place.path().join(".git").to_str().unwrap()).unwrap();
        fs::write(forged.join("commondir"), victim.common().to_str().unwrap()).unwrap();
        fs::write(forged.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        let script =
            "cat $0/HEAD && echo seen; ls $0/objects && echo seen; echo x >$0/x && echo seen; true";
        let common = victim.common();
        let argv = [script, common.to_str().unwrap()];
        let said = run(&client, "script", place.path(), &argv).await.worked();
        assert!(!said.contains("seen"), "{tier}: {said}");
        assert!(!common.join("x").exists(), "{tier}");
    }
}

/// A directory outside that points back, as the attacker of an earlier session may have had written to, but shares with
/// another repository.
#[tokio::test]
async fn a_link_whose_common_directory_is_another_one_is_refused() {
    let agent = SshAgent::start();
    for tier in tiers().await {
        let (broker, _policy) = broker(&tier, &agent, &[]).await;
        let client = broker.client().await;
        let (victim, linked) = (Linked::new(), Linked::new());
        let directory = linked.common().join("worktrees/tree");
        fs::write(directory.join("commondir"), victim.common().to_str().unwrap()).unwrap();
        let argv = vec!["status".to_owned()];
        let opened = client.open("git", within(&linked.path()).with("argv", argv)).await;
        let (error, text) = error_of(opened);
        assert_eq!(short(&error), "NotPermitted", "{tier}: {text}");
    }
}
