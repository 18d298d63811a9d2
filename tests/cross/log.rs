//! A log that is followed for long.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
};

use st2_tools::client::Dict;

use crate::support::{Broker, error_of, screen::Screen, short, soon, within, workspace};

fn append(log: &Path, line: &str) {
    let mut file = OpenOptions::new().append(true).create(true).open(log).unwrap();
    writeln!(file, "{line}").unwrap();
}

#[tokio::test]
async fn a_log_is_followed_through_its_rotation_until_it_is_closed() {
    let (broker, place) = (Broker::unit().await, workspace());
    let log = place.path().join("service.log");
    append(&log, "it was there");
    let client = broker.client().await;
    let options = |file: &str| within(place.path()).with("argv", vec![file.to_owned()]);
    let (session, _) = client.open("log-tail", options("service.log")).await.unwrap();
    let mut screen = Screen::attach(&session).await;
    screen.shows("it was there").await;
    for number in 0..5 {
        append(&log, &format!("appended {number}"));
        screen.shows(&format!("appended {number}")).await;
    }
    fs::rename(&log, place.path().join("service.log.1")).unwrap();
    append(&log, "after the rotation");
    screen.shows("after the rotation").await;
    append(&log, "and on");
    screen.shows("and on").await;
    assert_eq!(session.phase().await.unwrap(), "running");
    let outcome = soon("Close", session.close(&Dict::new())).await.unwrap();
    assert_eq!(outcome.text("reason"), Some("closed-by-owner"));
    assert_eq!(outcome.text("kind"), Some("signaled"));
    let last = screen.end().await;
    assert!(last.contains("and on"), "{last}");
    for outside in ["/etc/passwd", "../x", "--pid=1"] {
        let (name, text) = error_of(client.open("log-tail", options(outside)).await);
        assert_eq!(short(&name), "NotPermitted", "{text}");
    }
}
