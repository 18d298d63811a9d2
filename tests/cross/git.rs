//! git.

use crate::support::{
    Broker, outcome,
    repository::{Repository, git},
    screen::Screen,
    within,
};

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
