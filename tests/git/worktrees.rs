//! Linked worktrees: their git directory lies in a repository elsewhere.

use std::{fs, path::Path};

use super::tools::broker;
use crate::support::{
    keys::SshAgent,
    ran::run,
    repository::{Linked, git, try_git},
    tiers,
};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test]
async fn a_commit_is_made_from_a_linked_worktree() {
    let agent = SshAgent::start();
    for tier in tiers().await {
        let (broker, _policy) = broker(&tier, &agent, &[]).await;
        let client = broker.client().await;
        let linked = Linked::new();
        let place = linked.path();
        fs::write(place.join("file.txt"), "one\ntwo\n").unwrap();
        let argv = ["commit", "--all", "--message=from the side"];
        run(&client, "git", &place, &argv).await.worked();
        let subject = git(linked.repository.path(), &["log", "-1", "--format=%s", "side"]);
        assert_eq!(subject.trim(), "from the side", "{tier}");
        run(&client, "git", &place, &["status"]).await.worked();
        git(linked.repository.path(), &["fsck"]);
    }
}

/// Ways to have git run a program later in one of the worktrees; `$0` is the common directory.
const PLANTS: [&str; 5] = [
    "echo 'touch planted' >$0/hooks/pre-commit; chmod +x $0/hooks/pre-commit",
    "printf '[core]\\n\\tfsmonitor = touch planted; false\\n' >>$0/config",
    "mv $0/hooks $0/old; mkdir $0/hooks; echo 'touch planted' >$0/hooks/pre-commit; chmod +x $0/hooks/pre-commit",
    "git config core.fsmonitor 'touch planted; false'",
    // Configuration from elsewhere, for the other worktree.
    "mkdir -p fake/objects fake/refs; cp $0/HEAD fake; pwd >$0/worktrees/other/commondir; \
     sed -i 's|$|/fake|' $0/worktrees/other/commondir; \
     printf '[core]\\n\\tfsmonitor = touch planted; false\\n' >fake/config",
];

#[tokio::test]
async fn nothing_is_planted_in_the_common_directory_that_git_would_run_or_it_is_stated() {
    let agent = SshAgent::start();
    for tier in tiers().await {
        let (broker, _policy) = broker(&tier, &agent, &[]).await;
        let client = broker.client().await;
        for script in PLANTS {
            let linked = Linked::new();
            let common = linked.common();
            let argv = [script, text(&common)];
            let ran = run(&client, "script", &linked.path(), &argv).await;
            for outside in [linked.repository.path(), &linked.other()] {
                try_git(outside, &["commit", "--quiet", "--allow-empty", "--message=outside"]);
                try_git(outside, &["status"]);
            }
            let is_planted = |place: &Path| place.join("planted").exists();
            let planted = is_planted(linked.repository.path()) || is_planted(&linked.other());
            assert_eq!(planted, ran.has_gap("git-hooks"), "{tier}: {script}: {ran:?}");
            assert_eq!(planted, tier != "mounts", "{tier}: {script}: {ran:?}");
        }
    }
}

#[tokio::test]
async fn another_worktree_s_files_are_out_of_reach() {
    let agent = SshAgent::start();
    for tier in tiers().await {
        let (broker, _policy) = broker(&tier, &agent, &[]).await;
        let client = broker.client().await;
        let linked = Linked::new();
        let (other, main) = (linked.other(), linked.repository.join("file.txt"));
        let scripts = [
            format!("cat {}/secret", other.display()),
            format!("ls {} | grep .", other.display()),
            format!("cat {}", main.display()),
        ];
        for script in scripts {
            let ran = run(&client, "script", &linked.path(), &[&script]).await;
            assert_ne!(ran.code, Some(0), "{tier}: {script}: {ran:?}");
            assert!(!ran.said.contains("of the other one"), "{tier}: {script}");
        }
        // Where its name is in the tool's own /tmp, something may be there; it is not this worktree.
        let script = format!("echo x >{}/planted", other.display());
        run(&client, "script", &linked.path(), &[&script]).await;
        assert!(!other.join("planted").exists(), "{tier}");
    }
}

#[tokio::test]
async fn no_worktree_is_forgotten_whose_files_are_out_of_reach() {
    let agent = SshAgent::start();
    for tier in tiers().await {
        let (broker, _policy) = broker(&tier, &agent, &[]).await;
        let client = broker.client().await;
        let linked = Linked::new();
        let script = "git worktree prune --expire=now --verbose; git gc --quiet --prune=now";
        run(&client, "script", &linked.path(), &[script]).await.worked();
        for tree in [&linked.path(), &linked.other()] {
            git(tree, &["status"]);
        }
        // What is gone is forgotten all the same, by whoever sees that.
        fs::remove_dir_all(linked.other()).unwrap();
        git(linked.repository.path(), &["worktree", "prune", "--expire=now"]);
        assert!(!linked.common().join("worktrees/other").exists(), "{tier}");
    }
}

#[tokio::test]
async fn a_tool_that_does_not_declare_it_sees_nothing_of_the_common_directory() {
    let agent = SshAgent::start();
    for tier in tiers().await {
        let (broker, _policy) = broker(&tier, &agent, &[]).await;
        let client = broker.client().await;
        let linked = Linked::new();
        let script = "cat $0/HEAD && echo seen; ls $0 && echo seen; echo x >$0/x && echo seen; \
                      git status && echo seen; true";
        let common = linked.common();
        let argv = [script, text(&common)];
        let said = run(&client, "script-plain", &linked.path(), &argv).await.worked();
        assert!(!said.contains("seen"), "{tier}: {said}");
        assert!(!linked.common().join("x").exists(), "{tier}");
        // With git's profile the same script sees it all.
        let said = run(&client, "script", &linked.path(), &argv).await.worked();
        assert_eq!(said.matches("seen").count(), 4, "{tier}: {said}");
    }
}
