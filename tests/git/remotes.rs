//! Fetching and pushing.

use super::{servers::Remote, tools::broker};
use crate::support::{
    Client,
    keys::SshAgent,
    ran::run,
    repository::{Repository, git},
    tiers,
};

/// The tiers that can grant a socket.
const WITH_SOCKETS: [&str; 2] = ["mounts", "resolve-unix"];

fn commit(repository: &Repository, subject: &str) {
    git(repository.path(), &["commit", "--quiet", "--allow-empty", "--message", subject]);
}

/// Fetches what came to be elsewhere.
async fn fetches(client: &Client, remote: &Remote, repository: &Repository, tier: &str) {
    remote.commit("from elsewhere");
    run(client, "git", repository.path(), &["fetch"]).await.worked();
    let fetched = git(repository.path(), &["log", "-1", "--format=%s", "origin/main"]);
    assert_eq!(fetched.trim(), "from elsewhere", "{tier}");
}

#[tokio::test]
async fn over_ssh_git_fetches_and_pushes_with_the_agent_where_the_tier_can_grant_it() {
    let agent = SshAgent::start();
    for tier in tiers().await {
        let (broker, _policy) = broker(&tier, &agent, &[]).await;
        let client = broker.client().await;
        let remote = Remote::start(&broker, &agent);
        let repository = remote.clone_of(&remote.ssh());
        commit(&repository, "from inside");
        let pushed = run(&client, "git", repository.path(), &["push"]).await;
        if WITH_SOCKETS.contains(&tier.as_str()) {
            assert!(pushed.has_gap("granted-sockets"), "{tier}: {pushed:?}");
            pushed.worked();
            assert_eq!(remote.subject(), "from inside");
            fetches(&client, &remote, &repository, &tier).await;
        } else {
            // The key is there, and nobody to sign with it.
            pushed.failed("Permission denied (publickey)");
            assert!(!pushed.has_gap("granted-sockets"), "{tier}: {pushed:?}");
            assert_eq!(remote.subject(), "first");
        }
    }
}

#[tokio::test]
async fn over_https_git_fetches_and_pushes_in_every_tier() {
    let agent = SshAgent::start();
    for tier in tiers().await {
        let (broker, _policy) = broker(&tier, &agent, &[]).await;
        let client = broker.client().await;
        let remote = Remote::start(&broker, &agent);
        let repository = remote.clone_of(&remote.https());
        commit(&repository, "from inside");
        run(&client, "git", repository.path(), &["push"]).await.worked();
        assert_eq!(remote.subject(), "from inside", "{tier}");
        fetches(&client, &remote, &repository, &tier).await;
    }
}

#[tokio::test]
async fn who_may_push_reads_the_names_of_hosts_and_never_a_key() {
    let agent = SshAgent::start();
    for tier in tiers().await {
        let (broker, _policy) = broker(&tier, &agent, &[]).await;
        let client = broker.client().await;
        let remote = Remote::start(&broker, &agent);
        let repository = remote.clone_of(&remote.ssh());
        let place = repository.path();
        let script = "cat ~/.ssh/known_hosts ~/.ssh/config; cat ~/.gitconfig";
        let said = run(&client, "script", place, &[script]).await.worked();
        for word in ["ssh-ed25519", "st2-git-host", "Test User"] {
            assert!(said.contains(word), "{tier}: {word} is not in {said}");
        }
        for script in ["cat ~/.ssh/id_ed25519", "ls ~/.ssh/* | grep id_", "echo x >>~/.ssh/config"]
        {
            let ran = run(&client, "script", place, &[script]).await;
            assert_ne!(ran.code, Some(0), "{tier}: {script}: {ran:?}");
            assert!(!ran.said.contains("PRIVATE KEY"), "{tier}: {script}");
        }
    }
}

/// Looks for the agent and for both servers.
const REACH: &str = "
    echo agent: ${SSH_AUTH_SOCK-none}
    GIT_SSH_COMMAND='ssh -o ConnectTimeout=5' git ls-remote \"$0\" && echo reached by ssh
    git ls-remote \"$1\" && echo reached by https
    SSH_AUTH_SOCK=$2 ssh-add -l && echo reached the agent
    true";

#[tokio::test]
async fn without_the_profile_of_remotes_nothing_of_them_is_reached() {
    let agent = SshAgent::start();
    let socket = agent.socket().to_str().unwrap().to_owned();
    for tier in tiers().await {
        // Masked by the user, and not declared by the tool.
        for (masked, tool) in [(&["git-remote"][..], "script"), (&[][..], "script-offline")] {
            let (broker, _policy) = broker(&tier, &agent, masked).await;
            let client = broker.client().await;
            let remote = Remote::start(&broker, &agent);
            let repository = remote.clone_of(&remote.https());
            let argv = [REACH, &remote.ssh(), &remote.https(), &socket];
            let ran = run(&client, tool, repository.path(), &argv).await;
            assert_eq!(ran.confinement.text("network"), Some("none"), "{tier}, {tool}");
            assert_eq!(ran.confinement.texts("sockets"), Vec::<&str>::new(), "{tier}, {tool}");
            let said = ran.worked();
            assert!(said.contains("agent: none"), "{tier}, {tool}: {said}");
            assert!(!said.contains("reached"), "{tier}, {tool}: {said}");
        }
    }
}

/// The other half of the test above: with the profile the same script reaches all that the tier can grant.
#[tokio::test]
async fn with_the_profile_of_remotes_all_of_them_are_reached() {
    let agent = SshAgent::start();
    let socket = agent.socket().to_str().unwrap().to_owned();
    for tier in tiers().await {
        let (broker, _policy) = broker(&tier, &agent, &[]).await;
        let client = broker.client().await;
        let remote = Remote::start(&broker, &agent);
        let repository = remote.clone_of(&remote.https());
        let argv = [REACH, &remote.ssh(), &remote.https(), &socket];
        let ran = run(&client, "script", repository.path(), &argv).await;
        assert_eq!(ran.confinement.text("network"), Some("tcp:22,443"), "{tier}");
        let said = ran.worked();
        assert!(said.contains("reached by https"), "{tier}: {said}");
        let granted = WITH_SOCKETS.contains(&tier.as_str());
        for word in ["reached by ssh", "reached the agent"] {
            assert_eq!(said.contains(word), granted, "{tier}: {said}");
        }
    }
}
