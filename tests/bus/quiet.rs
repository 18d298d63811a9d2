//! Silence: busy and idle, and the no-output watchdog.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use serde_bytes::Bytes;
use st2_tools::client::{Dict, session::SessionProxy};
use zbus::{
    Variant,
    fdo::{PropertiesChangedStream, PropertiesProxy},
};

use crate::support::{
    Broker, Client, Start, error_of, outcome, output_until, short, soon, tools, within, workspace,
};

async fn open(client: &Client, place: &Path, script: &str, silence: u64) -> SessionProxy<'static> {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    let options = within(place).with("argv", argv).with("silence_timeout_ms", silence);
    client.open("command", options).await.unwrap().0
}

#[tokio::test]
async fn a_silent_session_is_ended_and_each_byte_puts_it_off() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let begin = Instant::now();
    let silent = open(&client, place.path(), "echo up; exec sleep 100", 400).await;
    let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf .; sleep 0.25; done; exit 3";
    let writes = open(&client, place.path(), script, 2000).await;
    let ended = outcome(&silent).await;
    assert_eq!(
        (ended.text("reason"), ended.text("requester")),
        (Some("silence-timeout"), Some(""))
    );
    assert_eq!(ended.text("kind"), Some("signaled"));
    assert!(begin.elapsed() >= Duration::from_millis(400));
    let ended = outcome(&writes).await;
    assert_eq!((ended.text("reason"), ended.signed("code")), (Some("exit"), Some(3)));
    assert_eq!(ended.number("bytes_out"), Some(12));
}

#[tokio::test]
async fn a_tool_that_closes_its_outputs_is_silent_from_then_on() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    for io in ["pty", "pipe"] {
        let argv = ["sh", "-c", "exec <&- >&- 2>&-; exec sleep 100"].map(str::to_owned).to_vec();
        let options = within(place.path()).with("argv", argv).with("io", io);
        let options = options.with("silence_timeout_ms", 600u64);
        let (session, _) = client.open("command", options).await.unwrap();
        assert_eq!(outcome(&session).await.text("reason"), Some("silence-timeout"), "{io}");
    }
}

#[tokio::test]
async fn the_first_forced_reason_wins_over_silence() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    // It takes no HUP and no TERM, and is killed at last.
    let session =
        open(&client, place.path(), "trap '' HUP TERM; echo up; while :; do sleep 9; done", 3000)
            .await;
    output_until(&session, "up").await;
    soon("the watchdog", async { while session.phase().await.unwrap() == "running" {} }).await;
    session.kill().await.unwrap();
    assert_eq!(outcome(&session).await.text("reason"), Some("silence-timeout"));
}

#[tokio::test]
async fn a_request_only_shortens_what_the_tool_declares() {
    let text = "title = \"Silent\"\ncommand = [\"sleep\", \"100\"]\nsilence_timeout_ms = 1000\n";
    let (policy, place) = (tools::policy_with(&[("silent", text)]), workspace());
    let broker = Start::default().policy(policy.path()).private().await;
    let client = broker.client().await;
    for (asked, says) in [
        (1001_u64, "silence_timeout_ms 1001 is above the tool's silence_timeout_ms = 1000"),
        (0, "silence_timeout_ms 0 (none) is wider than the tool's silence_timeout_ms = 1000"),
    ] {
        let options = within(place.path()).with("silence_timeout_ms", asked);
        let (name, text) = error_of(client.open("silent", options).await);
        assert_eq!((short(&name), text.as_str()), ("NotPermitted", says));
    }
    let explained = client.manager.explain("silent", &within(place.path())).await.unwrap();
    assert_eq!(explained.number("silence_timeout_ms"), Some(1000));
    let (session, _) = client.open("silent", within(place.path())).await.unwrap();
    assert_eq!(outcome(&session).await.text("reason"), Some("silence-timeout"));
}

/// What is announced of a session's activity, from now on.
struct Activity(PropertiesChangedStream);

impl Activity {
    async fn of(client: &Client, session: &SessionProxy<'static>) -> Self {
        let properties = PropertiesProxy::builder(&client.connection)
            .destination("org.st2.Tools")
            .path(session.inner().path().to_owned())
            .build()
            .await
            .unwrap();
        Self(properties.receive_properties_changed().await.unwrap())
    }

    /// The next that is announced.
    async fn next(&mut self) -> String {
        loop {
            let changed = self.0.next().await.unwrap();
            let args = changed.args().unwrap();
            if let Some(Variant::Str(activity)) = args.changed_properties().get("Activity") {
                return activity.as_str().to_owned();
            }
        }
    }

    /// Waits until this is announced, and nothing else.
    async fn becomes(&mut self, activity: &str) {
        assert_eq!(soon(activity, self.next()).await, activity);
    }
}

/// Waits until a session is idle for the first time.
async fn settled(session: &SessionProxy<'static>) {
    soon("idle", async { while session.activity().await.unwrap() != "idle" {} }).await;
}

#[tokio::test]
async fn a_session_is_busy_while_it_writes_and_idle_soon_after() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let session = client.run(place.path(), &["cat"]).await;
    settled(&session).await;
    let mut activity = Activity::of(&client, &session).await;
    for _ in 0..3 {
        session.write(Bytes::new(b"x\n"), &Dict::new()).await.unwrap();
        activity.becomes("busy").await;
        activity.becomes("idle").await;
    }
    let listed = client.manager.list_sessions(&Dict::new()).await.unwrap();
    assert_eq!(listed[0].text("Activity"), Some("idle"));
    assert!(!session.waiting_for_input().await.unwrap(), "it has not been quiet for long");
}

#[tokio::test]
async fn a_flood_is_one_change_and_an_end_is_idle() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let session = client.run(place.path(), &["sh", "-c", "read -r go; timeout 2 yes"]).await;
    settled(&session).await;
    let mut activity = Activity::of(&client, &session).await;
    session.write(Bytes::new(b"go\n"), &Dict::new()).await.unwrap();
    outcome(&session).await;
    assert!(session.bytes_out().await.unwrap() > 1 << 20);
    activity.becomes("busy").await;
    activity.becomes("idle").await;
    assert_eq!(session.activity().await.unwrap(), "idle");
}
