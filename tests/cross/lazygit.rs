//! lazygit.

use std::path::Path;

use st2_tools::client::Dict;

use crate::support::{
    Broker,
    client::Killable,
    lives, manager, outcome, owner_state,
    repository::{Repository, git},
    screen::Screen,
    soon,
    tools::install_from_path,
    until, within,
};

/// A repository with two changed files, and lazygit.
pub fn changed_repository() -> Repository {
    install_from_path("lazygit");
    let repository = Repository::new(&[("apples.txt", "one\n"), ("pears.txt", "one\n")]);
    repository.write("apples.txt", "one\ntwo\n");
    repository.write("pears.txt", "one\ntwo\n");
    repository
}

fn status(place: &Path) -> String {
    git(place, &["status", "--porcelain"])
}

/// Whether lazygit has drawn all it shows at first.
pub fn is_drawn(screen: &vt100::Screen) -> bool {
    let parts = ["M apples.txt", "M pears.txt", "* main", "first", "Stage: <space>", "+two"];
    let text = screen.contents();
    parts.iter().all(|part| text.contains(part))
}

async fn drawn(screen: &mut Screen<'_>) {
    screen.until("lazygit with its files, branches and commits", is_drawn).await;
}

/// Selects the first file, below the root of the tree: lazygit shows the changes of that one alone.
async fn select_first_file(screen: &mut Screen<'_>) {
    screen.press("j").await;
    screen.hides("diff --git a/pears.txt").await;
    assert!(screen.text().contains("diff --git a/apples.txt"), "{}", screen.text());
}

#[tokio::test]
async fn lazygit_draws_reacts_to_a_key_follows_a_resize_stages_a_file_and_quits() {
    let (broker, repository) = (Broker::unit().await, changed_repository());
    let client = broker.client().await;
    let (session, info) = client.open("lazygit", within(repository.path())).await.unwrap();
    let confinement = info.dict("confinement").unwrap();
    assert_eq!(confinement.text("network"), Some("tcp:22,443"), "{confinement:?}");
    let mut screen = Screen::attach(&session).await;
    drawn(&mut screen).await;
    select_first_file(&mut screen).await;

    screen.resize(130, 45).await;
    let fits = |screen: &vt100::Screen| {
        let mut rows = screen.rows(0, 130);
        let top = rows.next().unwrap_or_default();
        let bottom = rows.last().unwrap_or_default();
        top.ends_with('╮') && top.chars().count() == 130 && bottom.contains("Stage: <space>")
    };
    screen.until("all of the new size in use", fits).await;

    assert_eq!(status(repository.path()), " M apples.txt\n M pears.txt\n");
    screen.press(" ").await;
    screen.shows("M  apples.txt").await;
    assert_eq!(status(repository.path()), "M  apples.txt\n M pears.txt\n");
    screen.press("q").await;
    let outcome = outcome(&session).await;
    assert_eq!((outcome.text("kind"), outcome.signed("code")), (Some("exited"), Some(0)));
    assert_eq!(outcome.text("reason"), Some("exit"));
    until("no unit", || manager::session_units().is_empty()).await;
    assert!(broker.tmpdirs().is_empty());
}

#[tokio::test]
async fn lazygit_outlives_a_client_that_crashes_and_is_used_by_the_one_that_claims_it() {
    let (broker, repository) = (Broker::unit().await, changed_repository());
    let crashing = Killable::on(&broker.bus).await;
    let (session, info) = crashing.client.open("lazygit", within(repository.path())).await.unwrap();
    let (token, unit) = (info.text("token").unwrap(), session.unit().await.unwrap());
    let pid = i32::try_from(info.number("pid").unwrap()).unwrap();
    let path = session.inner().path().to_string();
    let mut screen = Screen::attach(&session).await;
    drawn(&mut screen).await;
    crashing.kill();
    drop(screen);

    let heir = broker.client().await;
    let session = heir.session(&path).await;
    owner_state(&session, "grace").await;
    heir.manager.claim_lease(token).await.unwrap();
    assert_eq!(session.owner_state().await.unwrap(), "present");
    let mut screen = Screen::attach(&session).await;
    drawn(&mut screen).await;
    assert!(lives(pid) && manager::members(&manager::group(&unit)).contains(&pid));
    select_first_file(&mut screen).await;
    screen.press(" ").await;
    screen.shows("M  apples.txt").await;
    assert_eq!(status(repository.path()), "M  apples.txt\n M pears.txt\n");
    let outcome = soon("Close", session.close(&Dict::new())).await.unwrap();
    assert_eq!(outcome.text("reason"), Some("closed-by-owner"));
    assert!(!lives(pid));
    screen.end().await;
}

#[tokio::test]
async fn lazygit_of_a_client_that_does_not_come_back_is_gone_after_the_grace() {
    let (broker, repository) = (Broker::unit().await, changed_repository());
    let (crashing, watcher) = (Killable::on(&broker.bus).await, broker.client().await);
    let options = within(repository.path()).with("grace_ms", 5000u64);
    let (session, info) = crashing.client.open("lazygit", options).await.unwrap();
    let path = session.inner().path().to_string();
    let watched = watcher.session(&path).await;
    let mut screen = Screen::attach(&session).await;
    drawn(&mut screen).await;
    let group = manager::group(&watched.unit().await.unwrap());
    crashing.kill();
    owner_state(&watched, "grace").await;
    let pid = i32::try_from(info.number("pid").unwrap()).unwrap();
    assert!(lives(pid));
    let outcome = outcome(&watched).await;
    assert_eq!(outcome.text("reason"), Some("owner-vanished"));
    assert!(!lives(pid) && manager::is_empty(&group));
    // The stream of the crashed client would have told it.
    screen.end().await;
}
