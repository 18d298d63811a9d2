//! What a person finds in the journal.

use std::process::Command;

use serde_bytes::Bytes;
use serde_json::Value;
use st2_tools::client::Dict;

use crate::support::{Broker, manager, output_until, running, until, within, workspace};

/// The entries of the journal that match.
fn journal(matches: &[&str]) -> Vec<Value> {
    let mut command = Command::new("journalctl");
    command.args(["--user", "--output=json", "--no-pager", "--quiet"]).args(matches);
    let output = command.output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_session_is_found_in_the_journal_by_its_fields() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let options = within(place.path()).with("argv", vec!["cat".to_owned()]);
    let (session, info) = client.open("command", options).await.unwrap();
    session.write(Bytes::new(b"typed words\n"), &Dict::new()).await.unwrap();
    output_until(&session, "typed words\r\ntyped words").await;
    session.close(&Dict::new()).await.unwrap();
    let id = session.id().await.unwrap();
    let field = format!("ST2_SESSION={id}");
    until("both entries", || journal(&[&field]).len() >= 2).await;
    let entries = journal(&[&field]);
    let messages: Vec<_> = entries.iter().map(|entry| entry["MESSAGE"].as_str().unwrap()).collect();
    let message = |what: &str| format!("session {what}: command {id}");
    assert_eq!(messages, [message("opened"), message("closed")]);
    for entry in &entries {
        for (name, value) in [
            ("ST2_TOOL", "command"),
            ("ST2_OWNER", &client.name()),
            ("ST2_UNIT", &session.unit().await.unwrap()),
            ("_SYSTEMD_USER_UNIT", running::UNIT),
        ] {
            assert_eq!(entry[name], value, "{name}");
        }
    }
    assert_eq!(entries[1]["REASON"], "closed-by-owner");

    // All that it has logged, and no word of the terminal or of a token.
    drop(broker);
    let unit = format!("_SYSTEMD_USER_UNIT={}", running::UNIT);
    until("the last word", || {
        journal(&[&unit]).iter().any(|entry| entry["MESSAGE"] == "broker stopped")
    })
    .await;
    let token = info.text("token").unwrap();
    let all = journal(&[&unit]).iter().map(Value::to_string).collect::<String>();
    for secret in ["typed words", token, token.split('-').next_back().unwrap()] {
        assert!(!all.contains(secret), "{secret:?} is in the journal");
    }
}

#[tokio::test]
async fn the_manager_names_the_sessions_units_for_people() {
    let (broker, place) = (Broker::unit().await, workspace());
    let session = broker.client().await.run(place.path(), &["cat"]).await;
    let unit = session.unit().await.unwrap();
    let status = manager::systemctl(&["status", "--no-pager", &unit]);
    assert!(status.contains(&format!("command in {}", place.path().display())), "{status}");
    assert!(status.contains("cat"), "{status}");
}
