//! What is announced of a terminal that changes.

use std::{collections::HashMap, time::Instant};

use futures_util::StreamExt;
use st2_tools::client::Session;
use zbus::fdo::{PropertiesChangedStream, PropertiesProxy};

use super::readers::open;
use crate::support::{Broker, soon};

/// The announcements of a session.
async fn announcements(session: &Session) -> PropertiesChangedStream {
    let connection = session.proxy().inner().connection();
    let properties = PropertiesProxy::builder(connection)
        .destination("org.st2.Tools")
        .path(session.id().path())
        .build()
        .await
        .unwrap();
    properties.receive_properties_changed().await.unwrap()
}

/// What the next one says, each value as text; that the session is busy or idle is left out, which it may be at any time.
async fn next(announced: &mut PropertiesChangedStream) -> HashMap<String, String> {
    loop {
        let signal = soon("PropertiesChanged", announced.next()).await.unwrap();
        let arguments = signal.args().unwrap();
        assert_eq!(arguments.interface_name.as_str(), "org.st2.Tools.Session1");
        assert!(arguments.invalidated_properties.is_empty());
        let changed = arguments.changed_properties.iter();
        let changed = changed.filter(|(name, _)| **name != "Activity");
        let changed: HashMap<_, _> =
            changed.map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
        if !changed.is_empty() {
            return changed;
        }
    }
}

fn only(name: &str, value: &str) -> HashMap<String, String> {
    HashMap::from([(name.to_owned(), value.to_owned())])
}

#[tokio::test]
async fn a_title_is_announced_when_it_is_set_and_cleared_and_is_bounded() {
    let broker = Broker::private().await;
    let script = "stty -echo; printf ready; read -r _; printf '\\033]2;first \\350\\251\\261\\007'; \
                  read -r _; printf '\\033]0;%03000d\\033\\\\' 0; read -r _; printf '\\033]2;\\007'; read -r _; \
                  printf '\\033]2;a\\tb\\007'; read -r _";
    let session = open(broker.bus.connect().await, script, 64 << 10).await;
    let wait = st2_tools::client::ReadOptions {
        wait: Some(std::time::Duration::from_secs(10)),
        ..Default::default()
    };
    while session.read(0, 9, &wait).await.unwrap().next < 5 {}
    assert_eq!(session.proxy().title().await.unwrap(), "");
    let mut announced = announcements(&session).await;
    for title in ["first 話", &"0".repeat(1024), "", "ab"] {
        session.write(b"\n").await.unwrap();
        assert_eq!(next(&mut announced).await, only("Title", &format!("{title:?}")));
        assert_eq!(session.proxy().title().await.unwrap(), title);
        let screen = session.proxy().screen(&st2_tools::client::Dict::new()).await.unwrap();
        assert_eq!(screen.text("title"), Some(title));
    }
    session.resize(91, 24).await.unwrap();
    assert_eq!(next(&mut announced).await, only("Columns", "uint16 91"), "only what changed");
}

/// Sets titles as fast as it can for a while, and then the last one.
const TITLES: &str = "stty -echo; printf ready; read -r _; n=0; \
    while [ $n -lt 30000 ]; do n=$((n + 1)); printf '\\033]2;title %s\\007' $n; done; \
    printf '\\033]2;the last\\007'; read -r _";

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_titles_is_announced_ten_times_a_second_and_its_last_one_always() {
    let broker = Broker::private().await;
    let session = open(broker.bus.connect().await, TITLES, 64 << 10).await;
    let mut announced = announcements(&session).await;
    session.write(b"\n").await.unwrap();
    let began = Instant::now();
    let mut titles = 0;
    let last = loop {
        let Some(title) = next(&mut announced).await.remove("Title") else { continue };
        titles += 1;
        if title.contains("the last") {
            break title;
        }
    };
    let most = 2 + began.elapsed().as_millis() / 100;
    assert!(titles <= most, "{titles} announcements, where {most} were due");
    assert_eq!(last, format!("{:?}", "the last"));
    session.write(b"\n").await.unwrap();
    soon("the end", session.ended()).await.unwrap();
    assert_eq!(session.proxy().title().await.unwrap(), "the last");
}

#[tokio::test]
async fn a_title_set_last_of_all_is_known_when_the_end_is() {
    let broker = Broker::private().await;
    let script = "stty -echo; read -r _; printf '\\033]2;one\\007'; printf '\\033]2;two\\007'";
    let session = open(broker.bus.connect().await, script, 64 << 10).await;
    let mut announced = announcements(&session).await;
    session.write(b"\n").await.unwrap();
    let mut title = String::new();
    loop {
        let mut changes = next(&mut announced).await;
        title = changes.remove("Title").unwrap_or(title);
        if changes.contains_key("Outcome") {
            break;
        }
    }
    assert_eq!(title, format!("{:?}", "two"));
}
