//! Opens that take the session there is.

use std::{collections::BTreeMap, path::Path};

use serde_bytes::Bytes;
use st2_tools::client::Dict;

use crate::support::{
    Broker, Client, Start, error_of, output_until, short, soon, within, workspace,
};

fn options(place: &Path, agent: &str) -> Dict {
    let labels = BTreeMap::from([("agent".to_owned(), agent.to_owned())]);
    within(place).with("argv", vec!["cat".to_owned()]).with("labels", labels).with("reuse", true)
}

/// Opens, and gives the session's path and whether it was there.
async fn open(client: &Client, options: Dict) -> (String, bool) {
    let (session, info) = client.open("command", options).await.unwrap();
    (session.inner().path().to_string(), info.flag("reused").unwrap())
}

#[tokio::test]
async fn the_same_of_the_same_owner_is_reused_while_it_is_healthy() {
    let (broker, place, elsewhere) = (Broker::private().await, workspace(), workspace());
    let (client, other) = (broker.client().await, broker.client().await);
    let (session, info) = client.open("command", options(place.path(), "a")).await.unwrap();
    let first = session.inner().path().to_string();
    assert_eq!(info.flag("reused"), Some(false));
    let (again, same) = client.open("command", options(place.path(), "a")).await.unwrap();
    assert_eq!(again.inner().path(), session.inner().path());
    assert_eq!((same.flag("reused"), same.text("token")), (Some(true), info.text("token")));
    assert_eq!(same.number("pid"), info.number("pid"));
    session.write(Bytes::new(b"still\n"), &Dict::new()).await.unwrap();
    output_until(&again, "still\r\nstill").await;
    for different in [
        options(place.path(), "b"),
        options(elsewhere.path(), "a"),
        options(place.path(), "a").with("argv", vec!["cat".to_owned(), "-".to_owned()]),
        options(place.path(), "a").with("private", true),
        options(place.path(), "a").with("lease", "token"),
        options(place.path(), "a").with("reuse", false),
    ] {
        let (path, reused) = open(&client, different).await;
        assert!(!reused && path != first);
    }
    let (path, reused) = open(&other, options(place.path(), "a")).await;
    assert!(!reused && path != first, "another's is never reused");
    session.kill().await.unwrap();
    let (path, reused) = open(&client, options(place.path(), "a")).await;
    assert!(path != first, "one that ended is not reused");
    assert!(reused, "the one that was opened without reuse is there");
}

#[tokio::test]
async fn what_policy_refuses_is_not_reused_either() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    open(&client, options(place.path(), "a")).await;
    let (name, _) =
        error_of(client.open("command", options(place.path(), "a").with("tasks_max", 0u64)).await);
    assert!(name.ends_with("InvalidArgs"), "{name}");
}

#[tokio::test]
async fn opens_at_once_are_one_session_and_each_is_answered() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let opens = (0..8).map(|_| open(&client, options(place.path(), "a")));
    let opened = soon("all opens", futures_util::future::join_all(opens)).await;
    let first = &opened[0].0;
    assert!(opened.iter().all(|(path, _)| path == first), "{opened:?}");
    assert_eq!(opened.iter().filter(|(_, reused)| *reused).count(), 7);
    // Its end is told although it had many openers.
    let session = client.session(first).await;
    let mut closed = session.receive_closed().await.unwrap();
    session.kill().await.unwrap();
    soon("Closed", futures_util::StreamExt::next(&mut closed)).await.unwrap();
}

#[tokio::test]
async fn an_open_that_waits_for_another_shares_its_failure() {
    let (bench, place) = (workspace(), workspace());
    let script = bench.path().join("slow");
    let text =
        format!("#!/bin/sh\nuntil [ -e {0}/go ]; do sleep 0.01; done\n", bench.path().display());
    std::fs::write(&script, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let launcher = script.to_str().unwrap().to_owned();
    let broker = Start::default().env("ST2_TOOLS_LAUNCHER", launcher).private().await;
    let client = broker.client().await;
    let opens = async {
        let open = || client.open("command", options(place.path(), "a"));
        futures_util::future::join(open(), open()).await
    };
    let go = async {
        let listed = async || client.manager.list_sessions(&Dict::new()).await.unwrap().len();
        soon("the first open", async { while listed().await == 0 {} }).await;
        // What is judged later than the second open.
        client.manager.explain("shell", &within(place.path())).await.unwrap();
        assert_eq!(listed().await, 1, "the second waits for the first");
        std::fs::write(bench.path().join("go"), "").unwrap();
    };
    let ((one, other), ()) = soon("both failures", futures_util::future::join(opens, go)).await;
    assert_eq!(
        (short(&error_of(one).0), short(&error_of(other).0)),
        ("LaunchFailed", "LaunchFailed")
    );
    assert!(client.manager.list_sessions(&Dict::new()).await.unwrap().is_empty());
}
