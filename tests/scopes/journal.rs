//! What a person finds in the journal.

use std::{collections::BTreeMap, process::Command};

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
    let labels = [("task", "t1"), ("subtask", "s1"), ("agent", "a1"), ("host", "h1")];
    let given: BTreeMap<_, _> =
        labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let options = within(place.path()).with("argv", vec!["cat".to_owned()]).with("labels", given);
    let (session, info) = client.open("command", options).await.unwrap();
    session.write(Bytes::new(b"typed words\n"), &Dict::new()).await.unwrap();
    output_until(&session, "typed words\r\ntyped words").await;
    let share = session.share("control").await.unwrap();
    session.paste("pasted words", &Dict::new().with("token", share.clone())).await.unwrap();
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
        for (label, value) in labels {
            assert_eq!(entry[format!("ST2_{}", label.to_uppercase())], value, "{label}");
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
    let secret_of = |token: &str| token.rsplit('-').next().unwrap().to_owned();
    let secrets = [secret_of(token), secret_of(&share)];
    for secret in ["typed words", "pasted words", token, &share, &secrets[0], &secrets[1]] {
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
