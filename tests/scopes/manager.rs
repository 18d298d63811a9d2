//! A user manager that starts anew, or does not answer.

use std::time::{Duration, Instant};

use serde_bytes::Bytes;
use st2_tools::client::Dict;

use super::ending::Nasty;
use crate::support::{
    Broker, error_of, lives, manager, outcome, output_until, short, soon, stopped::Stopped, until,
    within, workspace,
};

#[tokio::test]
async fn sessions_go_on_while_the_manager_starts_anew() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let (closed, stopped) =
        (client.run(place.path(), &["cat"]).await, client.run(place.path(), &["cat"]).await);
    let nasty = Nasty::open(&client, place.path(), Dict::new()).await;
    let pid = broker.pid();
    manager::systemctl(&["daemon-reexec"]);
    for session in [&closed, &stopped] {
        session.write(Bytes::new(b"still here\n"), &Dict::new()).await.unwrap();
        output_until(session, "still here\r\nstill here").await;
        let unit = session.unit().await.unwrap();
        assert_eq!(manager::property(&unit, "ActiveState"), "active");
        assert_eq!(manager::property(&unit, "BindsTo"), "st2-tools.service");
    }
    assert_eq!(broker.pid(), pid);
    assert!(nasty.is_whole());
    let ended = soon("Close", closed.close(&Dict::new())).await.unwrap();
    assert_eq!(ended.text("reason"), Some("closed-by-owner"));
    manager::systemctl(&["stop", &stopped.unit().await.unwrap()]);
    assert_eq!(outcome(&stopped).await.text("reason"), Some("stopped-by-manager"));
    let new = client.run(place.path(), &["true"]).await;
    assert_eq!(outcome(&new).await.text("reason"), Some("exit"));
    let ended = soon("Close", nasty.session.close(&Dict::new())).await.unwrap();
    nasty.is_gone_now();
    assert_eq!(ended.number("survivors"), Some(0));
    until("no unit", || manager::session_units().is_empty()).await;
}

#[tokio::test]
async fn a_manager_that_does_not_answer_delays_no_end_and_fails_what_opens() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let polite = client.run(place.path(), &["cat"]).await;
    let leaving = client.run(place.path(), &["cat"]).await;
    let killed = Nasty::open(&client, place.path(), Dict::new()).await;
    let closed = Nasty::open(&client, place.path(), Dict::new()).await;
    let stopped = Stopped::manager(&broker.bus.connect().await).await;

    let nothing = Dict::new();
    let options = within(place.path()).with("argv", vec!["cat".to_owned()]);
    let began = Instant::now();
    let opening = async {
        let (name, text) = error_of(client.open("command", options).await);
        (name, text, began.elapsed())
    };
    let ending = async {
        let at_once = soon("Kill", killed.session.kill()).await.unwrap();
        killed.is_gone_now();
        assert_eq!(at_once.text("reason"), Some("killed-by-owner"));
        let kill_took = began.elapsed();
        let (gentle, other) = tokio::join!(closed.session.close(&nothing), polite.close(&nothing));
        closed.is_gone_now();
        assert_eq!(gentle.unwrap().text("reason"), Some("closed-by-owner"));
        assert_eq!(other.unwrap().text("reason"), Some("closed-by-owner"));
        let close_took = began.elapsed() - kill_took;
        leaving.write(Bytes::new(b""), &Dict::new().with("eof", true)).await.unwrap();
        let outcome = outcome(&leaving).await;
        assert_eq!((outcome.text("kind"), outcome.signed("code")), (Some("exited"), Some(0)));
        (kill_took, close_took)
    };
    let ((name, text, open_took), (kill_took, close_took)) = tokio::join!(opening, ending);
    assert_eq!(short(&name), "LaunchFailed", "{text}");
    assert!(text.contains("scope") && text.contains("manager"), "{text}");
    assert!(open_took < Duration::from_secs(15), "Open took {open_took:?}");
    assert!(kill_took < Duration::from_secs(8), "Kill took {kill_took:?}");
    // The stop timeout of the tools is 2 s.
    assert!(close_took < Duration::from_secs(9), "Close took {close_took:?}");
    assert!(broker.tmpdirs().is_empty(), "{:?}", broker.tmpdirs());

    drop(stopped);
    // What the manager made late of the attempt is undone.
    until("no unit", || manager::session_units().is_empty()).await;
    let new = client.run(place.path(), &["cat"]).await;
    let pid = manager::members(&manager::group(&new.unit().await.unwrap()))[0];
    assert!(lives(pid));
    new.close(&Dict::new()).await.unwrap();
    until("no unit", || manager::session_units().is_empty()).await;
}
