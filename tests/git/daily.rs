//! Committing, and what decides which programs git runs.

use std::fs;

use super::tools::broker;
use crate::support::{
    keys::SshAgent,
    outcome,
    ran::run,
    repository::{Repository, git},
    screen::Screen,
    tiers, within,
};

#[tokio::test]
async fn commits_are_made_under_the_user_s_name() {
    let agent = SshAgent::start();
    for tier in tiers().await {
        let (broker, _policy) = broker(&tier, &agent, &[]).await;
        let client = broker.client().await;
        let repository = Repository::new(&[("file.txt", "one\n")]);
        repository.write("file.txt", "one\ntwo\n");
        let argv = ["commit", "--all", "--message=from inside"];
        run(&client, "git", repository.path(), &argv).await.worked();
        let last = git(repository.path(), &["log", "-1", "--format=%s by %an <%ae>"]);
        assert_eq!(last.trim(), "from inside by Test User <test@example.org>", "{tier}");
        assert_eq!(git(repository.path(), &["status", "--porcelain"]), "", "{tier}");
    }
}

#[tokio::test]
async fn a_hunk_is_staged_on_a_terminal_in_every_tier() {
    let agent = SshAgent::start();
    for tier in tiers().await {
        let (broker, _policy) = broker(&tier, &agent, &[]).await;
        let client = broker.client().await;
        let repository = Repository::new(&[("file.txt", "one\n")]);
        repository.write("file.txt", "one\ntwo\n");
        let (session, _) = client.open("git-add", within(repository.path())).await.unwrap();
        let mut screen = Screen::attach(&session).await;
        screen.shows("(1/1) Stage this hunk").await;
        screen.press("y\n").await;
        assert_eq!(outcome(&session).await.signed("code"), Some(0), "{tier}");
        assert!(git(repository.path(), &["diff", "--cached"]).contains("+two"), "{tier}");
    }
}

/// Ways to have git run a program later, outside: each leaves `planted` where it works.
const PLANTS: [&str; 4] = [
    "echo 'touch planted' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "git config core.fsmonitor 'touch planted; false'",
    "printf '[alias]\\n\\tstatus = !touch planted\\n[core]\\n\\tfsmonitor = touch planted; false\\n' >>.git/config",
    "mv .git/hooks .git/old; mkdir .git/hooks; echo 'touch planted' >.git/hooks/pre-commit; \
     chmod +x .git/hooks/pre-commit",
];

#[tokio::test]
async fn nothing_is_planted_that_git_would_run_or_it_is_stated() {
    let agent = SshAgent::start();
    for tier in tiers().await {
        let (broker, _policy) = broker(&tier, &agent, &[]).await;
        let client = broker.client().await;
        for script in PLANTS {
            let repository = Repository::new(&[("file.txt", "one\n")]);
            fs::create_dir_all(repository.join(".git/hooks")).unwrap();
            let ran = run(&client, "script", repository.path(), &[script]).await;
            git(repository.path(), &["commit", "--quiet", "--allow-empty", "--message=outside"]);
            git(repository.path(), &["status"]);
            let planted = repository.join("planted").exists();
            assert_eq!(planted, ran.has_gap("git-hooks"), "{tier}: {script}: {ran:?}");
            assert_eq!(planted, tier != "mounts", "{tier}: {script}: {ran:?}");
        }
    }
}
