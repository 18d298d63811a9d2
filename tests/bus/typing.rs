//! Keys, pastes and Enter over the bus.

use serde_bytes::Bytes;
use st2_tools::client::{Dict, session::SessionProxy};

use crate::support::{Broker, Client, error_of, outcome, output_until, short, workspace};

fn nothing() -> Dict {
    Dict::new()
}

/// A program in raw mode that has set these modes, and shows what it reads, byte by byte.
async fn raw(client: &Client, place: &std::path::Path, modes: &str) -> SessionProxy<'static> {
    let script = format!(
        "stty raw -echo; printf '{modes}'; printf 'ready'; exec od -An -c -v -w1 </dev/tty"
    );
    let session = client.run(place, &["sh", "-c", &script]).await;
    output_until(&session, "ready").await;
    session
}

/// Waits until the program has shown so many bytes after the last of `marker`, and gives them.
async fn shown(session: &SessionProxy<'_>, wanted: &[&str]) {
    let lines: String = wanted.iter().map(|byte| format!("{byte:>4}\n")).collect();
    output_until(session, &lines).await;
}

#[tokio::test]
async fn an_unknown_key_is_an_error_and_nothing_is_sent() {
    let (broker, place) = (Broker::private().await, workspace());
    let session = raw(&broker.client().await, place.path(), "").await;
    for (keys, named) in [
        (&["a", "entr"][..], "\"entr\""),
        (&["C-enter", "a"], "\"C-enter\""),
        (&["enter\n"], "\"enter\\n\""),
    ] {
        let (name, text) = error_of(session.send_keys(keys, &nothing()).await);
        assert!(name.ends_with("InvalidArgs") && text.contains(named), "{name}: {text}");
    }
    let many = vec!["a"; 1025];
    let (name, text) = error_of(session.send_keys(&many, &nothing()).await);
    assert_eq!((short(&name), text.as_str()), ("LimitReached", "1025 keys are more than 1024"));
    assert_eq!(session.bytes_in().await.unwrap(), 0);
    session.send_keys(&many[..1024], &nothing()).await.unwrap();
    assert_eq!(session.bytes_in().await.unwrap(), 1024);
}

#[tokio::test]
async fn keys_are_those_of_the_tools_terminal() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let normal = raw(&client, place.path(), "").await;
    normal.send_keys(&["Up", "C-c", "M-x"], &nothing()).await.unwrap();
    shown(&normal, &["033", "[", "A", "003", "033", "x"]).await;
    let application = raw(&client, place.path(), "\\033[?1h").await;
    application.send_keys(&["Up", "S-Up"], &nothing()).await.unwrap();
    shown(&application, &["033", "O", "A", "033", "[", "1", ";", "2", "A"]).await;
}

#[tokio::test]
async fn a_paste_is_marked_where_the_tool_has_asked_for_it() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let asked = raw(&client, place.path(), "\\033[?2004h").await;
    asked.paste("x", &nothing()).await.unwrap();
    asked.submit().await.unwrap();
    let marked = ["033", "[", "2", "0", "0", "~", "x", "033", "[", "2", "0", "1", "~", "\\r"];
    shown(&asked, &marked).await;
    asked.paste("y", &nothing().with("bracketed", "off")).await.unwrap();
    shown(&asked, &["\\r", "y"]).await;
    let not_asked = raw(&client, place.path(), "").await;
    not_asked.paste("z", &nothing()).await.unwrap();
    shown(&not_asked, &["z"]).await;
    not_asked.paste("", &nothing().with("bracketed", "on")).await.unwrap();
    shown(&not_asked, &["z", "033", "[", "2", "0", "0", "~"]).await;
    let taken = not_asked.bytes_in().await.unwrap();
    for refused in ["\x1b[201~", "a\u{9b}201~b"] {
        let (name, text) = error_of(not_asked.paste(refused, &nothing()).await);
        assert!(name.ends_with("InvalidArgs") && text.contains("ends a paste"), "{text}");
    }
    let wrong = nothing().with("bracketed", "maybe");
    assert!(error_of(not_asked.paste("x", &wrong).await).0.ends_with("InvalidArgs"));
    assert_eq!(not_asked.bytes_in().await.unwrap(), taken);
}

#[tokio::test]
async fn a_line_is_submitted_after_what_was_written_and_typing_ends_with_the_session() {
    let (broker, place) = (Broker::private().await, workspace());
    let (client, other) = (broker.client().await, broker.client().await);
    let session = client.run(place.path(), &["sh", "-c", "read -r line; echo got $line"]).await;
    let others = other.session(session.inner().path().as_str()).await;
    for refused in [
        error_of(others.send_keys(&["a"], &nothing()).await),
        error_of(others.paste("a", &nothing()).await),
        error_of(others.submit().await),
    ] {
        assert_eq!(short(&refused.0), "NotOwner", "{}", refused.1);
    }
    session.write(Bytes::new(b"one "), &nothing()).await.unwrap();
    session.paste("two", &nothing()).await.unwrap();
    session.submit().await.unwrap();
    output_until(&session, "got one two").await;
    outcome(&session).await;
    for (name, text) in [
        error_of(session.send_keys(&["a"], &nothing()).await),
        error_of(session.paste("a", &nothing()).await),
        error_of(session.submit().await),
    ] {
        assert_eq!(short(&name), "Closed", "{text}");
        assert!(text.contains("exited with 0"), "{text}");
    }
}
