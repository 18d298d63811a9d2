//! What is bounded, and by how much.

use std::collections::BTreeMap;

use serde_bytes::Bytes;
use st2_tools::client::Dict;

use crate::support::{Broker, error_of, outcome, policy, short, soon, until, within, workspace};

#[tokio::test]
async fn the_sixty_fifth_session_of_an_owner_is_refused_and_the_others_live() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let options = || within(place.path()).with("argv", vec!["cat".to_owned()]);
    let opens = (0..64).map(|_| client.open("command", options()));
    let opened = futures_util::future::join_all(opens).await;
    assert!(opened.iter().all(Result::is_ok), "{:?}", opened.iter().find(|opened| opened.is_err()));
    let (name, text) = error_of(client.open("command", options()).await);
    assert_eq!(short(&name), "LimitReached");
    assert!(text.contains("64") && text.contains("live_sessions_per_owner"), "{text}");
    // Another owner has its own.
    broker.client().await.open("command", options()).await.unwrap();
    for session in &opened {
        let session = &session.as_ref().unwrap().0;
        session.write(Bytes::new(b"x\n"), &Dict::new()).await.unwrap();
        crate::support::output_until(session, "x\r\nx").await;
    }
    let closed = soon("the end of all", client.manager.close_sessions(&Dict::new())).await;
    assert_eq!(closed.unwrap(), 64);
    client.open("command", options()).await.unwrap();
}

#[tokio::test]
async fn limits_match_the_documentation() {
    let broker = Broker::private().await;
    let limits = broker.client().await.manager.limits().await.unwrap();
    let documented = std::fs::read_to_string(policy().join("README.md")).unwrap();
    let rows: BTreeMap<String, u64> = documented
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split('|');
            let name = cells.next()?.trim().trim_end_matches('`').to_owned();
            let number = cells.next()?.trim().replace(' ', "").parse().ok()?;
            Some((name, number))
        })
        .collect();
    assert!(limits.len() >= 15);
    for (name, value) in limits {
        assert_eq!(rows.get(&name), Some(&value), "{name} in policy/README.md");
    }
}

#[tokio::test]
async fn no_more_than_what_is_retained_is_kept() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    for _ in 0..70 {
        let session = client.run(place.path(), &["true"]).await;
        outcome(&session).await;
    }
    let kept = client.manager.list_sessions(&Dict::new().with("phase", "closed")).await.unwrap();
    assert_eq!(kept.len(), 64);
}

#[tokio::test]
async fn five_hundred_sessions_leave_no_descriptor_and_no_directory() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    outcome(&client.run(place.path(), &["true"]).await).await;
    let descriptors = broker.descriptors();
    for round in 0..50 {
        let opens = (0..10).map(|_| client.run(place.path(), &["sleep", "100"]));
        let sessions = futures_util::future::join_all(opens).await;
        if round % 2 == 0 {
            client.manager.close_sessions(&Dict::new()).await.unwrap();
        } else {
            for session in &sessions {
                session.kill().await.unwrap();
            }
        }
    }
    until("closed descriptors", || broker.descriptors() <= descriptors).await;
    assert!(broker.tmpdirs().is_empty());
}
