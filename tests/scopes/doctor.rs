//! `st2-tools doctor` beside a real user manager, with and without a broker.

use std::process::Command;

use serde_json::Value;

use crate::support::{Bus, Start, manager, program, running::UNIT};

fn doctor() -> Value {
    let mut command = Command::new(program("st2-tools"));
    let output = command.args(["doctor", "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn found<'d>(document: &'d Value, name: &str) -> [&'d str; 2] {
    let checks = document["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name).unwrap();
    ["verdict", "found"].map(|key| check[key].as_str().unwrap())
}

#[tokio::test]
async fn the_doctor_finds_the_broker_that_runs() {
    let broker = Start::default().unit().await;
    let client = broker.client().await;
    let (tier, version) =
        (client.manager.tier().await.unwrap(), client.manager.broker_version().await.unwrap());
    let document = doctor();
    assert_eq!(document["tier"], tier.as_str());
    let expected = format!("st2-tools {version}, backend systemd, tier {tier}");
    assert_eq!(found(&document, "broker"), ["good", &expected]);
    let systemd = format!("systemd {}", manager::systemctl(&["show", "--value", "-p", "Version"]));
    assert!(found(&document, "user-manager")[1].starts_with(&systemd), "{document}");

    // It is not started to be looked at.
    manager::systemctl(&["stop", UNIT]);
    let [verdict, said] = found(&doctor(), "broker").map(str::to_owned);
    assert_eq!((verdict.as_str(), said.contains("the bus starts it")), ("good", true), "{said}");
    assert_ne!(manager::property(UNIT, "ActiveState"), "active");

    drop(broker);
    let bus = Bus::shared().await;
    let connection = bus.connect().await;
    zbus::fdo::DBusProxy::new(&connection).await.unwrap().reload_config().await.unwrap();
    assert_eq!(found(&doctor(), "broker")[0], "missing");
}

#[tokio::test]
async fn the_doctor_says_when_a_broker_now_would_be_better() {
    let _broker = Start::default().env("ST2_TOOLS_MAX_TIER", "seccomp").unit().await;
    let mut command = Command::new(program("st2-tools"));
    // What is set for the command says nothing of the broker; here nothing is.
    let output = command.arg("doctor").env_remove("ST2_TOOLS_POLICY_PATH").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with("sessions here get the tier seccomp.\n"), "{text}");
    assert!(text.contains("a broker that is started now has the tier mounts"), "{text}");
}
