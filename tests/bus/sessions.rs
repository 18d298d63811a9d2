//! What can be done with a session.

use std::time::Instant;

use futures_util::StreamExt;
use serde_bytes::Bytes;
use st2_tools::client::Dict;

use crate::support::{
    Broker, all_output, error_of, outcome, output_until, short, soon, within, workspace,
};

fn nothing() -> Dict {
    Dict::new()
}

#[tokio::test]
async fn every_byte_is_readable_before_closed() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    for round in 0..20 {
        let script = format!("seq 1 5000; printf last-{round}");
        let session = client.run(place.path(), &["sh", "-c", &script]).await;
        let outcome = outcome(&session).await;
        let (bytes, begin, next, eof) = session.read(0, 262_144, &nothing()).await.unwrap();
        assert!(bytes.ends_with(format!("last-{round}").as_bytes()));
        assert_eq!((begin, eof), (0, true));
        assert_eq!(Some(next), outcome.number("bytes_out"));
        assert_eq!(outcome.number("bytes_dropped"), Some(0));
    }
}

#[tokio::test]
async fn what_was_dropped_is_counted() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let options = within(place.path())
        .with("argv", ["sh", "-c", "seq 1 20000"].map(str::to_owned).to_vec())
        .with("ring_bytes", 4096u64);
    let (session, _) = client.open("command", options).await.unwrap();
    let outcome = outcome(&session).await;
    let (bytes, begin, next, _) = session.read(0, 262_144, &nothing()).await.unwrap();
    assert_eq!(
        (begin, next - begin),
        (outcome.number("bytes_dropped").unwrap(), bytes.len() as u64)
    );
    assert!(bytes.ends_with(b"19999\r\n20000\r\n") && bytes.len() <= 4096);
    let (name, text) = error_of(session.read(next + 1, 10, &nothing()).await);
    assert_eq!(short(&name), "BadCursor", "{text}");
}

#[tokio::test]
async fn a_normal_exit_is_final() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let mut closed = client.manager.receive_session_closed().await.unwrap();
    let session = client.run(place.path(), &["sh", "-c", "exit 7"]).await;
    let outcome = outcome(&session).await;
    assert_eq!(outcome.text("kind"), Some("exited"));
    assert_eq!(outcome.signed("code"), Some(7));
    assert_eq!(outcome.text("reason"), Some("exit"));
    assert_eq!(outcome.text("requester"), Some(""));
    let signal = soon("SessionClosed", closed.next()).await.unwrap();
    assert_eq!(signal.args().unwrap().session.as_str(), session.inner().path().as_str());
    assert_eq!(
        client.manager.list_sessions(&nothing()).await.unwrap().len(),
        1,
        "none is relaunched"
    );
}

#[tokio::test]
async fn an_answer_comes_before_what_is_said_of_its_session() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let mut messages = zbus::MessageStream::from(&client.connection);
    let rule = zbus::MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .sender("org.st2.Tools")
        .build()
        .unwrap();
    let dbus = zbus::fdo::DBusProxy::new(&client.connection).await.unwrap();
    dbus.add_match_rule(rule).await.unwrap();
    for _ in 0..30 {
        let session = client.run(place.path(), &["true"]).await;
        let path = session.inner().path().to_string();
        let mut answered = false;
        soon("Closed", async {
            loop {
                let message = messages.next().await.unwrap().unwrap();
                let header = message.header();
                let is_answer = message.message_type() == zbus::message::Type::MethodReturn
                    && message
                        .body()
                        .deserialize::<(zbus::OwnedObjectPath, Dict)>()
                        .is_ok_and(|(opened, _)| opened.as_str() == path);
                answered |= is_answer;
                let member = header.member().map(|member| member.to_string()).unwrap_or_default();
                let ours = header.path().is_some_and(|of| of.as_str() == path);
                if ours && member == "Closed" {
                    break;
                }
                assert!(answered || !ours, "{member} came before the answer");
            }
        })
        .await;
        assert!(answered, "Closed came before the answer");
    }
}

#[tokio::test]
async fn close_is_idempotent_and_reads_change_nothing() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let session = client.run(place.path(), &["sh", "-c", "echo hello; exec cat"]).await;
    output_until(&session, "hello").await;
    let first = session.read(0, 100, &nothing()).await.unwrap();
    let again = session.read(0, 100, &nothing()).await.unwrap();
    assert_eq!((&first.0, first.1, first.2), (&again.0, again.1, again.2));
    let outcome = soon("Close", session.close(&nothing())).await.unwrap();
    assert_eq!(outcome.text("reason"), Some("closed-by-owner"));
    assert_eq!(outcome.text("requester"), Some(client.name().as_str()));
    assert_eq!(session.close(&nothing()).await.unwrap(), outcome);
    assert_eq!(session.kill().await.unwrap(), outcome);
    let (closed, waited) = session.wait(0).await.unwrap();
    assert!(closed);
    assert_eq!(waited, outcome);
    assert_eq!(session.outcome().await.unwrap(), outcome);
    for (name, text) in [
        error_of(session.write(Bytes::new(b"x"), &nothing()).await),
        error_of(session.signal("TERM").await),
        error_of(session.interrupt().await),
        error_of(session.pause().await),
    ] {
        assert_eq!(short(&name), "Closed", "{text}");
        assert!(text.contains("closed-by-owner"), "{text}");
    }
    session.resize(100, 30, &nothing()).await.unwrap();
    assert_eq!(session.read(0, 100, &nothing()).await.unwrap().0, first.0, "its output stays");
    session.forget().await.unwrap();
    let gone = session.read(0, 100, &nothing()).await;
    assert!(gone.is_err(), "{gone:?}");
    assert!(client.manager.list_sessions(&nothing()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_size_reaches_the_tool_and_the_same_size_does_not() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let script =
        "trap 'n=$((n+1)); echo size $n $(stty size)' WINCH; echo ready; while :; do read x; done";
    let session = client.run(place.path(), &["sh", "-c", script]).await;
    output_until(&session, "ready").await;
    let (name, text) = error_of(session.resize(0, 24, &nothing()).await);
    assert!(name.ends_with("InvalidArgs") && text.contains("columns 0"), "{text}");
    for (columns, rows, told) in
        [(80, 24, ""), (100, 30, "size 1 30 100"), (100, 30, ""), (120, 40, "size 2 40 120")]
    {
        session.resize(columns, rows, &nothing()).await.unwrap();
        // The shell runs its trap when its read is over.
        session.write(Bytes::new(b"\n"), &nothing()).await.unwrap();
        output_until(&session, told).await;
    }
    assert_eq!(session.columns().await.unwrap(), 120);
}

#[tokio::test]
async fn an_interrupt_is_what_ctrl_c_would_be() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    // A shell with job control: the signal goes to the foreground job, not to the shell.
    let (shell, _) = client.open("shell", within(place.path())).await.unwrap();
    shell.write(Bytes::new(b"sleep 1003\n"), &nothing()).await.unwrap();
    soon("the interrupt", async {
        let foreground = |command: &str| command.contains("1003");
        while !children_of(&broker).iter().any(|command| foreground(command)) {}
        shell.interrupt().await.unwrap();
    })
    .await;
    shell.write(Bytes::new(b"echo interrupted with $?\n"), &nothing()).await.unwrap();
    output_until(&shell, "interrupted with 130").await;
    // In raw mode it is the character.
    let raw = client
        .run(
            place.path(),
            &["sh", "-c", "stty raw; echo ready; dd bs=1 count=1 2>/dev/null | od -c"],
        )
        .await;
    output_until(&raw, "ready").await;
    raw.interrupt().await.unwrap();
    output_until(&raw, "003").await;
}

/// The command lines of all processes.
fn children_of(_: &Broker) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("cmdline")).ok())
        .collect()
}

#[tokio::test]
async fn a_long_read_wakes_on_output_and_close_does_not_wait_for_it() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let session = client.run(place.path(), &["cat"]).await;
    let wait = nothing().with("wait_ms", 60_000u64);
    let reader = {
        let session = session.clone();
        tokio::spawn(async move { session.read(0, 100, &wait).await })
    };
    let waiter = {
        let session = session.clone();
        tokio::spawn(async move { session.wait(60_000).await })
    };
    session.write(Bytes::new(b"hello\n"), &nothing()).await.unwrap();
    let (bytes, ..) = soon("the read", reader).await.unwrap().unwrap();
    assert!(!bytes.is_empty());
    let begin = Instant::now();
    soon("Close", session.close(&nothing())).await.unwrap();
    assert!(begin.elapsed().as_secs() < 10, "Close waited behind Wait");
    assert!(soon("Wait", waiter).await.unwrap().unwrap().0);
    let (name, _) = error_of(session.read(0, 1, &nothing().with("wait_ms", 120_001u64)).await);
    assert!(name.ends_with("InvalidArgs"));
}

#[tokio::test]
async fn the_end_of_input_is_a_character_of_the_terminal() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let session = client.run(place.path(), &["cat"]).await;
    let eof = nothing().with("eof", true);
    assert_eq!(session.write(Bytes::new(b"line\n"), &eof).await.unwrap(), 6);
    assert_eq!(outcome(&session).await.signed("code"), Some(0));
    let raw = client.run(place.path(), &["sh", "-c", "stty raw; echo ready; exec cat"]).await;
    output_until(&raw, "ready").await;
    let (name, text) = error_of(raw.write(Bytes::new(b""), &eof).await);
    assert_eq!(short(&name), "NotPermitted", "{text}");
}

#[tokio::test]
async fn a_timeout_ends_a_session() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let options = within(place.path())
        .with("argv", ["sleep", "100"].map(str::to_owned).to_vec())
        .with("timeout_ms", 300u64);
    let (session, _) = client.open("command", options).await.unwrap();
    let outcome = outcome(&session).await;
    assert_eq!(outcome.text("reason"), Some("timeout"));
    assert_eq!(outcome.text("kind"), Some("signaled"));
    assert_eq!(all_output(&session).await, "");
}

#[tokio::test]
async fn a_dry_run_opens_nothing_and_says_what_open_would() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let options = within(place.path()).with("columns", 100u16);
    let explained = client.manager.explain("shell", &options).await.unwrap();
    assert!(client.manager.list_sessions(&nothing()).await.unwrap().is_empty());
    assert!(broker.tmpdirs().is_empty());
    let (session, info) = client.open("shell", options).await.unwrap();
    let confinement = info.dict("confinement").unwrap();
    assert_eq!(explained.texts("argv"), session.command().await.unwrap());
    assert_eq!(explained.text("network"), confinement.text("network"));
    assert_eq!(explained.text("tier"), confinement.text("tier"));
    assert_eq!(explained.number("landlock_abi"), confinement.number("landlock_abi"));
    assert_eq!(explained.texts("gaps"), confinement.texts("gaps"));
    assert!(explained.texts("gaps").contains(&"no-scope"), "there is no manager");
    assert_eq!(explained.number("columns"), Some(100));
    assert!(explained.text("refusal").is_none());
    let refused = client.manager.explain("shell", &nothing()).await.unwrap();
    assert!(refused.text("refusal").unwrap().ends_with("InvalidWorkspace"));
}
