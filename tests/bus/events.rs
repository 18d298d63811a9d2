//! The log of what happens.

use std::collections::BTreeMap;

use st2_tools::client::Dict;

use crate::support::{Broker, Client, error_of, outcome, short, within, workspace};

fn options(place: &std::path::Path, script: &str, subtask: &str) -> Dict {
    let labels = [("task", "t1"), ("subtask", subtask), ("agent", "a")];
    let labels: BTreeMap<_, _> =
        labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    within(place).with("argv", argv).with("labels", labels)
}

/// The kinds of a session's events, in order.
async fn kinds(client: &Client, session: &str) -> Vec<String> {
    let (rows, _) = client.manager.list_events(0, 1024).await.unwrap();
    let of_it = rows.iter().filter(|row| row.text("session") == Some(session));
    of_it.map(|row| row.text("kind").unwrap().to_owned()).collect()
}

#[tokio::test]
async fn two_subtasks_at_once_are_told_apart() {
    let (broker, one, other) = (Broker::private().await, workspace(), workspace());
    let client = broker.client().await;
    let opens =
        [(&one, "one", "exit 4"), (&other, "two", "kill -9 $$")].map(|(place, subtask, script)| {
            client.open("command", options(place.path(), script, subtask))
        });
    for opened in futures_util::future::join_all(opens).await {
        outcome(&opened.unwrap().0).await;
    }
    let (rows, next) = client.manager.list_events(0, 1024).await.unwrap();
    let seqs: Vec<_> = rows.iter().map(|row| row.number("seq").unwrap()).collect();
    assert_eq!(seqs, (1..=next).collect::<Vec<_>>());
    for (subtask, ended, code, signal) in
        [("one", "exited", 4, ""), ("two", "signaled", 0, "SIGKILL")]
    {
        let of_it: Vec<_> =
            rows.iter().filter(|row| row.pairs("labels")["subtask"] == subtask).collect();
        let mut sessions: Vec<_> = of_it.iter().map(|row| row.text("session").unwrap()).collect();
        sessions.dedup();
        assert_eq!(sessions.len(), 1, "events of a session have the labels of that session");
        assert!(of_it.iter().all(|row| row.pairs("labels")["task"] == "t1"));
        let exited = of_it.iter().find(|row| row.text("kind") == Some("session-exited")).unwrap();
        assert_eq!(exited.text("ended"), Some(ended));
        assert_eq!((exited.signed("code"), exited.text("signal")), (Some(code), Some(signal)));
        assert_eq!(exited.text("reason"), Some("exit"));
        assert_eq!(exited.text("tool"), Some("command"));
        assert!(exited.number("at_usec").unwrap() > 1_600_000_000_000_000);
    }
}

#[tokio::test]
async fn a_life_is_told_from_a_cursor_on() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let asked = || options(place.path(), "exec cat", "s").with("reuse", true);
    let (session, info) = client.open("command", asked()).await.unwrap();
    let id = info.text("id").unwrap();
    client.open("command", asked()).await.unwrap();
    let idle = async { while !kinds(&client, id).await.contains(&"session-idle".to_owned()) {} };
    crate::support::soon("idle", idle).await;
    session.kill().await.unwrap();
    // On a slow machine it is idle before it is opened again.
    let (reused, rest): (Vec<_>, Vec<_>) =
        kinds(&client, id).await.into_iter().partition(|kind| kind == "session-reused");
    assert_eq!(reused.len(), 1);
    let told = ["starting", "started", "idle", "exited", "closed"];
    assert_eq!(rest, told.map(|kind| format!("session-{kind}")));
    let (rows, next) = client.manager.list_events(1, 2).await.unwrap();
    assert_eq!((rows.len(), next, rows[1].number("seq")), (2, 3, Some(3)));
    let (rows, next) = client.manager.list_events(6, 10).await.unwrap();
    assert_eq!((rows.len(), next), (0, 6));
    assert_eq!(client.manager.list_events(2, 0).await.unwrap().1, 2);
    let (name, text) = error_of(client.manager.list_events(7, 1).await);
    assert_eq!(short(&name), "BadCursor", "{text}");
    let failed = within(place.path()).with("argv", vec!["no-such-program".to_owned()]);
    assert!(client.open("command", failed).await.is_err());
    let (rows, _) = client.manager.list_events(6, 10).await.unwrap();
    let failure = rows.last().unwrap();
    assert_eq!(failure.text("kind"), Some("session-failed"));
    assert_eq!((failure.text("step"), failure.signed("errno")), (Some("exec"), Some(2)));
}

#[tokio::test]
async fn events_of_a_private_session_are_its_owners() {
    let (broker, place) = (Broker::private().await, workspace());
    let (client, other) = (broker.client().await, broker.client().await);
    let hidden = options(place.path(), "exit 0", "s").with("private", true);
    let (session, info) = client.open("command", hidden).await.unwrap();
    outcome(&session).await;
    session.forget().await.unwrap();
    let id = info.text("id").unwrap();
    assert!(kinds(&client, id).await.len() >= 4);
    assert_eq!(kinds(&other, id).await, Vec::<String>::new());
    let shown = other.run(place.path(), &["true"]).await;
    let shown = shown.id().await.unwrap();
    assert!(!kinds(&client, &shown).await.is_empty());
}
