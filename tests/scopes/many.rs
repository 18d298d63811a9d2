//! Many sessions: at once, and one after the other.

use futures_util::future::join_all;
use serde_bytes::Bytes;
use st2_tools::client::Dict;

use crate::support::{Broker, lives, manager, outcome, output_until, soon, until, workspace};

#[tokio::test]
async fn sixty_four_sessions_live_at_once() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let sessions = join_all((0..64).map(|_| client.run(place.path(), &["cat"]))).await;
    let units = manager::session_units();
    assert_eq!(units.len(), 64);
    let mut pids = Vec::new();
    for session in &sessions {
        let pid = manager::members(&manager::group(&session.unit().await.unwrap()));
        assert_eq!(pid.len(), 1);
        pids.extend(pid);
    }
    for (number, session) in sessions.iter().enumerate() {
        let line = format!("to {number}\n");
        session.write(Bytes::new(line.as_bytes()), &Dict::new()).await.unwrap();
        output_until(session, &format!("to {number}\r\nto {number}\r\n")).await;
    }
    let closed = soon("the end of all", client.manager.close_sessions(&Dict::new())).await;
    assert_eq!(closed.unwrap(), 64);
    assert!(pids.iter().all(|pid| !lives(*pid)));
    until("no unit", || manager::session_units().is_empty()).await;
    assert!(broker.tmpdirs().is_empty());
}

#[tokio::test]
async fn five_hundred_sessions_leave_nothing() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    outcome(&client.run(place.path(), &["true"]).await).await;
    let slice = manager::group("app-st2tools.slice");
    let descriptors = broker.descriptors();
    for round in 0..50 {
        let argv: &[&str] = if round % 3 == 0 { &["true"] } else { &["sleep", "1000"] };
        let sessions = join_all((0..10).map(|_| client.run(place.path(), argv))).await;
        match round % 3 {
            0 => {
                for outcome in join_all(sessions.iter().map(outcome)).await {
                    assert_eq!(outcome.text("reason"), Some("exit"));
                }
            }
            1 => drop(soon("Close", client.manager.close_sessions(&Dict::new())).await.unwrap()),
            _ => {
                for outcome in join_all(sessions.iter().map(|session| session.kill())).await {
                    assert_eq!(outcome.unwrap().text("reason"), Some("killed-by-owner"));
                }
            }
        }
    }
    until("no unit", || manager::session_units().is_empty()).await;
    let groups = || {
        let entries = std::fs::read_dir(&slice).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().is_dir()).count()
    };
    until("no control group", || groups() == 0).await;
    until("closed descriptors", || broker.descriptors() <= descriptors).await;
    assert!(broker.tmpdirs().is_empty());
    let children = format!("/proc/{0}/task/{0}/children", broker.pid());
    assert_eq!(std::fs::read_to_string(children).unwrap(), "", "children of the broker");
}
