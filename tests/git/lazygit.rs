//! lazygit as it is shipped.

use super::{servers::Remote, tools};
use crate::support::{
    keys::SshAgent, outcome, screen::Screen, tiers, tools::install_from_path, within,
};

/// Stages the one file that is changed, and commits it.
async fn commit(screen: &mut Screen<'_>, subject: &str) {
    screen.shows("M file.txt").await;
    screen.press(" ").await;
    screen.shows("M  file.txt").await;
    screen.press("c").await;
    screen.shows("Commit summary").await;
    screen.press(subject).await;
    screen.shows(subject).await;
    screen.press("\r").await;
    screen.hides("Commit summary").await;
    screen.hides("M  file.txt").await;
}

/// Over ssh only where the agent can be granted, and only in a root of its own has lazygit the terminal on which it runs
/// git to push.
fn addresses(tier: &str, remote: &Remote) -> Vec<String> {
    if tier == "seccomp" { vec![remote.https()] } else { vec![remote.ssh(), remote.https()] }
}

#[tokio::test]
async fn lazygit_stages_commits_and_pushes() {
    install_from_path("lazygit");
    let agent = SshAgent::start();
    for tier in tiers().await {
        let (broker, _policy) = tools::broker(&tier, &agent, &[]).await;
        let client = broker.client().await;
        let remote = Remote::start(&broker, &agent);
        for address in addresses(&tier, &remote) {
            let repository = remote.clone_of(&address);
            repository.write("file.txt", "one\ntwo\n");
            let (session, _) = client.open("lazygit", within(repository.path())).await.unwrap();
            let mut screen = Screen::attach(&session).await;
            commit(&mut screen, "by lazygit").await;
            assert_eq!(repository.subject(), "by lazygit");
            screen.shows("* main ↑1").await;
            screen.press("P").await;
            if tier == "mounts" {
                screen.shows("* main ✓").await;
                assert_eq!(remote.subject(), "by lazygit", "{address}");
            } else {
                screen.shows("permission denied").await;
                assert_eq!(remote.subject(), "first", "{address}");
                screen.press("\x1b").await;
                screen.hides("permission denied").await;
            }
            screen.press("q").await;
            assert_eq!(outcome(&session).await.signed("code"), Some(0), "{tier}, {address}");
            remote.empty();
        }
    }
}
