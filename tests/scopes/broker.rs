//! What becomes of sessions when their broker goes, and what a new one makes of what it finds.

use std::{
    fs,
    os::unix::net::UnixListener,
    process::{Command, Stdio},
    thread,
};

use futures_util::StreamExt;
use nix::sys::signal::Signal;
use st2_tools::client::Dict;
use zbus::{MatchRule, MessageStream, fdo::DBusProxy, message::Type};

use super::ending::Nasty;
use crate::support::{
    Broker, Bus, Client, Start,
    client::bridge,
    error_of, lives,
    manager::{self, Foreign},
    outcome, short, soon, until, within, workspace,
};

#[tokio::test]
async fn broker_killed_leaves_no_session() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let plain = client.run(place.path(), &["cat"]).await;
    let plain = manager::group(&plain.unit().await.unwrap());
    let nasty = Nasty::open(&client, place.path(), Dict::new()).await;
    let changes = NameChanges::watch(&client).await;
    broker.signal(Signal::SIGKILL);
    nasty.is_gone().await;
    until("the end of the other", || manager::is_empty(&plain)).await;
    // The unit comes back, with nothing of what was.
    changes.new_broker().await;
    let sessions = soon("ListSessions", client.manager.list_sessions(&Dict::new())).await.unwrap();
    assert!(sessions.is_empty(), "{sessions:?}");
    until("no unit", || manager::session_units().is_empty()).await;
    assert!(broker.tmpdirs().is_empty(), "{:?}", broker.tmpdirs());
    let session = client.run(place.path(), &["true"]).await;
    assert_eq!(outcome(&session).await.text("reason"), Some("exit"));
}

/// The changes of who has the broker's name.
struct NameChanges(zbus::fdo::NameOwnerChangedStream);

impl NameChanges {
    async fn watch(client: &Client) -> Self {
        let dbus = DBusProxy::new(&client.connection).await.unwrap();
        let name = [(0, "org.st2.Tools")];
        Self(dbus.receive_name_owner_changed_with_args(&name).await.unwrap())
    }

    /// Waits until a broker has the name that had it not.
    async fn new_broker(mut self) {
        let new =
            async { while self.0.next().await.unwrap().args().unwrap().new_owner().is_none() {} };
        soon("a new broker", new).await;
    }
}

#[tokio::test]
async fn a_hand_started_broker_killed_leaves_no_session() {
    let (mut broker, place) = (Broker::shared().await, workspace());
    let client = broker.client().await;
    let own = format!("st2-toolsd-{}.scope", broker.pid());
    assert!(manager::group_of(broker.pid().as_raw()).ends_with(&own));
    let nasty = Nasty::open(&client, place.path(), Dict::new()).await;
    assert_eq!(manager::property(&nasty.unit, "BindsTo"), own);
    broker.signal(Signal::SIGKILL);
    broker.exited().await;
    nasty.is_gone().await;
    until("no unit of the broker", || manager::units(&own).is_empty()).await;
}

/// Without a bus there are no owners, and no manager to ask. To a broker that is connected by a bridge the bus is gone
/// when the bridge is killed; the others keep theirs.
#[tokio::test]
async fn a_broker_without_a_bus_leaves_no_session() {
    let bus = Bus::shared().await;
    let bench = workspace();
    let socket = bench.path().join("bus");
    let listener = UnixListener::bind(&socket).unwrap();
    let address = bus.address().to_owned();
    let bridge = thread::spawn(move || bridge(listener.accept().unwrap().0, &address));
    let bridged = format!("unix:path={}", socket.display());
    let mut broker = Start::default().env("DBUS_SESSION_BUS_ADDRESS", bridged).on(bus).await;
    let mut bridge = bridge.join().unwrap();
    let (client, place) = (broker.client().await, workspace());
    let plain = client.run(place.path(), &["cat"]).await;
    let plain = manager::group(&plain.unit().await.unwrap());
    let nasty = Nasty::open(&client, place.path(), Dict::new()).await;
    bridge.kill().unwrap();
    bridge.wait().unwrap();
    let status = soon("the broker's end", broker.exited()).await;
    assert!(!status.success(), "{status}");
    nasty.is_gone_now();
    assert!(manager::is_empty(&plain));
    assert!(broker.tmpdirs().is_empty(), "{:?}", broker.tmpdirs());
    until("no unit", || manager::session_units().is_empty()).await;
}

#[tokio::test]
async fn a_broker_that_is_asked_to_end_tells_every_outcome_before_it_goes() {
    for as_unit in [false, true] {
        let place = workspace();
        let broker = if as_unit { Broker::unit().await } else { Broker::shared().await };
        let client = broker.client().await;
        let mut story = Story::listen(&client).await;
        let nasty = Nasty::open(&client, place.path(), Dict::new()).await;
        let polite = client.run(place.path(), &["cat"]).await;
        let paths = [&nasty.session, &polite].map(|session| session.inner().path().to_string());
        let stop = as_unit.then(|| {
            let mut systemctl = Command::new("systemctl");
            systemctl.args(["--user", "stop", "st2-tools.service"]).spawn().unwrap()
        });
        if !as_unit {
            broker.signal(Signal::SIGTERM);
        }
        let mut told = story.until_the_name_is_free().await;
        nasty.is_gone_now();
        told.sort();
        let mut expected = paths.map(|path| (path, "broker-shutdown".to_owned()));
        expected.sort();
        assert_eq!(told, expected, "as a unit: {as_unit}");
        if let Some(mut stop) = stop {
            assert!(stop.wait().unwrap().success());
            assert_eq!(manager::property("st2-tools.service", "Result"), "success");
        }
        until("no unit", || manager::session_units().is_empty()).await;
        assert!(broker.tmpdirs().is_empty());
    }
}

/// What the bus says of the broker, in order.
struct Story(MessageStream);

impl Story {
    async fn listen(client: &Client) -> Self {
        let messages = MessageStream::from(&client.connection);
        let dbus = DBusProxy::new(&client.connection).await.unwrap();
        let closed = MatchRule::builder()
            .msg_type(Type::Signal)
            .interface("org.st2.Tools.Manager1")
            .member("SessionClosed")
            .build()
            .unwrap();
        let name = MatchRule::builder()
            .msg_type(Type::Signal)
            .member("NameOwnerChanged")
            .add_arg("org.st2.Tools")
            .build()
            .unwrap();
        dbus.add_match_rule(closed).await.unwrap();
        dbus.add_match_rule(name).await.unwrap();
        Self(messages)
    }

    /// The sessions that were closed, and why, before nobody had the name any more.
    async fn until_the_name_is_free(&mut self) -> Vec<(String, String)> {
        let mut told = Vec::new();
        soon("the broker's end", async {
            loop {
                let message = self.0.next().await.unwrap().unwrap();
                let header = message.header();
                match header.member().map(|member| member.as_str()) {
                    Some("SessionClosed") => {
                        let body = message.body();
                        let (path, outcome): (zbus::OwnedObjectPath, Dict) =
                            body.deserialize().unwrap();
                        let reason = outcome.text("reason").unwrap().to_owned();
                        told.push((path.to_string(), reason));
                    }
                    Some("NameOwnerChanged") => {
                        let (_, _, new): (String, String, String) =
                            message.body().deserialize().unwrap();
                        if new.is_empty() {
                            break;
                        }
                    }
                    _ => {}
                }
            }
        })
        .await;
        told
    }
}

#[tokio::test]
async fn foreign_scopes_are_never_touched() {
    let bus = Bus::shared().await;
    let sleep = "exec sleep 1000";
    let foreign = [
        Foreign::start("app-st2tools.scope", &["--scope"], sleep),
        Foreign::start("app-st2toolsx-command-abc.scope", &["--scope"], sleep),
        // A name as ours, elsewhere.
        Foreign::start("app-st2tools-command-abc.scope", &["--scope", "--slice=app.slice"], sleep),
        // Our place, a name as nobody's of ours.
        Foreign::start(
            "other-command-abc.scope",
            &["--scope", "--slice=app-st2tools.slice"],
            sleep,
        ),
        Foreign::start("app-st2tools-command-abc.service", &["--slice=app-st2tools.slice"], sleep),
        Foreign::start("st2-toolsd-1.scope", &["--scope"], sleep),
    ];
    let mut groups = Vec::new();
    for other in &foreign {
        until("a foreign unit", || manager::property(&other.unit, "ActiveState") == "active").await;
        groups.push(manager::group(&other.unit));
    }
    let members: Vec<_> = groups.iter().map(|group| manager::members(group)).collect();
    assert!(members.iter().all(|members| members.len() == 1), "{members:?}");
    let untouched = |when: &str| {
        for ((other, group), before) in foreign.iter().zip(&groups).zip(&members) {
            assert_eq!(&manager::members(group), before, "{} {when}", other.unit);
            assert!(lives(before[0]), "{} {when}", other.unit);
            assert_eq!(manager::property(&other.unit, "ActiveState"), "active", "{when}");
        }
    };

    let mut broker = Start::default().on(bus).await;
    let (client, place) = (broker.client().await, workspace());
    untouched("after a sweep");
    for argv in [&["true"][..], &["cat"]] {
        let session = client.run(place.path(), argv).await;
        session.close(&Dict::new()).await.unwrap();
    }
    client.run(place.path(), &["cat"]).await.kill().await.unwrap();
    let nasty = Nasty::open(&client, place.path(), Dict::new().with("grace_ms", 0u64)).await;
    client.vanish().await;
    nasty.is_gone().await;
    untouched("after sessions have ended");
    let client = broker.client().await;
    let _last = client.run(place.path(), &["cat"]).await;
    broker.signal(Signal::SIGTERM);
    broker.exited().await;
    untouched("after the broker has ended");
}

/// Leftovers that BindsTo= does not reach: of a broker that was not bound to, in a slice that is ours.
#[tokio::test]
async fn what_an_earlier_broker_left_is_swept_before_anything_opens() {
    let bus = Bus::shared().await;
    let deaf = "trap '' TERM HUP; while :; do sleep 1000; done";
    let options = ["--scope", "--slice=app-st2tools.slice", "-p", "TimeoutStopSec=300ms"];
    let left = [
        Foreign::start("app-st2tools-command-left1.scope", &options, "exec sleep 1000"),
        Foreign::start("app-st2tools-git\\x2dadd-left2.scope", &options, deaf),
    ];
    let mut groups = Vec::new();
    for other in &left {
        until("a left scope", || manager::property(&other.unit, "ActiveState") == "active").await;
        groups.push(manager::group(&other.unit));
    }
    let members: Vec<_> = groups.iter().flat_map(|group| manager::members(group)).collect();
    assert!(members.len() >= 2, "{members:?}");

    let broker = Start::default().on(bus).await;
    let (client, place) = (broker.client().await, workspace());
    // Answered at once, but not before the sweep.
    let session = client.run(place.path(), &["cat"]).await;
    assert!(
        groups.iter().all(|group| manager::is_empty(group)),
        "opened before the sweep was over"
    );
    assert!(members.iter().all(|pid| !lives(*pid)));
    let own = session.unit().await.unwrap();
    until("no unit but the session's", || manager::session_units() == [own.as_str()]).await;
}

#[tokio::test]
async fn directories_of_a_dead_broker_are_swept_and_those_of_a_living_one_are_not() {
    let bus = Bus::shared().await;
    let shared = workspace();
    let temp_dir = shared.path().to_str().unwrap();
    let names = || -> Vec<_> {
        let entries = fs::read_dir(shared.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let mut first = Start::default().env("TMPDIR", temp_dir).on(bus).await;
    let place = workspace();
    let client = first.client().await;
    let _session = client.run(place.path(), &["sh", "-c", "echo >$TMPDIR/left; exec cat"]).await;
    let of_first = names();
    assert_eq!(of_first.len(), 1);
    // Beside a living one, on another bus.
    let second = Start::default().env("TMPDIR", temp_dir).private().await;
    assert_eq!(names().len(), 2);
    assert!(names().contains(&of_first[0]));
    drop(second);
    first.signal(Signal::SIGKILL);
    first.exited().await;
    assert_eq!(names(), of_first, "nobody is there to remove it");
    let third = Start::default().env("TMPDIR", temp_dir).private().await;
    assert!(!names().contains(&of_first[0]) && names().len() == 1, "{:?}", names());
    drop(third);
    assert_eq!(names(), Vec::<String>::new());
    until("no unit", || manager::session_units().is_empty()).await;
}

#[tokio::test]
async fn a_second_broker_leaves_the_first_alone() {
    let (broker, place) = (Broker::shared().await, workspace());
    let client = broker.client().await;
    let session = client.run(place.path(), &["cat"]).await;
    let output = Command::new(crate::support::program("st2-toolsd"))
        .env("DBUS_SESSION_BUS_ADDRESS", broker.bus.address())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("a broker runs already"), "{said}");
    assert_eq!(session.phase().await.unwrap(), "running");
    let (name, _) = error_of(client.open("no-such-tool", within(place.path())).await);
    assert_eq!(short(&name), "NoSuchTool");
}
