//! The contract: what is shipped is what is served, and every method without a descriptor can be called by busctl(1).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use support::{Broker, soon, workspace};
use zbus::fdo::IntrospectableProxy;

/// The interfaces of ours in an introspection, each as its text.
fn interfaces(xml: &str) -> Vec<String> {
    let begin = "<interface name=\"org.st2.Tools.";
    xml.match_indices(begin)
        .map(|(at, _)| {
            let rest = &xml[at..];
            let end = rest.find("</interface>").expect("an interface ends") + "</interface>".len();
            // Introspection is indented by where an object is in the tree.
            let indent = xml[..at].rsplit('\n').next().unwrap_or_default().len();
            let strip = |line: &str| line.get(indent..).unwrap_or_default().to_owned();
            let lines: Vec<_> = rest[..end].lines().collect();
            let mut text = lines[0].to_owned();
            for line in &lines[1..] {
                text.push('\n');
                text.push_str(strip(line).trim_end());
            }
            text
        })
        .collect()
}

fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/dbus/org.st2.Tools.xml")
}

async fn live_xml(broker: &Broker) -> String {
    let client = broker.client().await;
    let workspace = workspace();
    let session = client.run(workspace.path(), &["sleep", "100"]).await;
    let introspect = async |path: &str| -> String {
        let proxy = IntrospectableProxy::builder(&client.connection)
            .destination("org.st2.Tools")
            .path(path.to_owned())
            .build()
            .await
            .unwrap();
        proxy.introspect().await.unwrap()
    };
    let manager = introspect("/org/st2/Tools").await;
    let session = introspect(session.inner().path().as_str()).await;
    // The introspection of an object holds that of the objects beneath it.
    let ours = [interfaces(&manager)[0].clone(), interfaces(&session)[0].clone()];
    let doctype = "<!DOCTYPE node PUBLIC \"-//freedesktop//DTD D-BUS Object Introspection 1.0//EN\"\n \
                   \"http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd\">";
    format!("{doctype}\n<node>\n{}\n</node>\n", ours.join("\n"))
}

/// With `ST2_UPDATE_XML=1` the file is written instead.
#[tokio::test]
async fn introspection_equals_the_shipped_xml() {
    let file = shipped();
    let live = live_xml(&Broker::private().await).await;
    if std::env::var_os("ST2_UPDATE_XML").is_some() {
        fs::write(&file, &live).unwrap();
    }
    let shipped = fs::read_to_string(file).unwrap();
    for (number, (live, shipped)) in live.lines().zip(shipped.lines()).enumerate() {
        assert_eq!(live, shipped, "line {}", number + 1);
    }
    assert_eq!(live.lines().count(), shipped.lines().count());
}

struct Busctl<'a>(&'a Broker);

impl Busctl<'_> {
    async fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("busctl");
        command.arg(format!("--address={}", self.0.bus.address())).args(arguments);
        let output = tokio::task::spawn_blocking(move || command.output());
        soon("busctl", output).await.unwrap().expect("busctl is installed")
    }

    async fn call(
        &self,
        path: &str,
        interface: &str,
        arguments: &[&str],
    ) -> Result<String, String> {
        let interface = format!("org.st2.Tools.{interface}");
        let all = [&["call", "org.st2.Tools", path, &interface], arguments].concat();
        let output = self.run(&all).await;
        if output.status.success() {
            Ok(String::from_utf8(output.stdout).unwrap().trim().to_owned())
        } else {
            Err(String::from_utf8(output.stderr).unwrap().trim().to_owned())
        }
    }

    async fn manager(&self, arguments: &[&str]) -> Result<String, String> {
        self.call("/org/st2/Tools", "Manager1", arguments).await
    }
}

/// The quoted words of busctl's output.
fn words(output: &str) -> Vec<&str> {
    output.split('"').skip(1).step_by(2).collect()
}

/// The value after a key of an `a{sv}` in busctl's output.
fn value<'a>(output: &'a str, key: &str) -> &'a str {
    let words = words(output);
    let at = words.iter().position(|word| *word == key).expect("the key is there");
    words[at + 1]
}

#[tokio::test]
async fn every_method_without_a_descriptor_is_callable_by_busctl() {
    let broker = Broker::private().await;
    let busctl = Busctl(&broker);
    let workspace = workspace();
    let place = workspace.path().to_str().unwrap();
    let open = [
        "Open",
        "sa{sv}",
        "command",
        "3",
        "workspace",
        "s",
        place,
        "lease",
        "s",
        "token",
        "argv",
        "as",
        "1",
        "cat",
    ];
    let opened = busctl.manager(&open).await.unwrap();
    let (path, token) = (words(&opened)[0].to_owned(), value(&opened, "token").to_owned());

    // It lives on although the connection that opened it is gone.
    let session = async |arguments: &[&str]| busctl.call(&path, "Session1", arguments).await;
    let with_token = ["1", "token", "s", &token];
    let written =
        session(&[&["Write", "aya{sv}", "3", "104", "105", "10"][..], &with_token].concat()).await;
    assert_eq!(written.unwrap(), "t 3");
    let read = ["Read", "tua{sv}", "0", "100", "1", "wait_ms", "t", "5000"];
    assert!(session(&read).await.unwrap().starts_with("ayttb "));
    let screen = session(&["Screen", "a{sv}", "1", "formatted", "b", "true"]).await.unwrap();
    for key in ["rows", "cursor", "columns", "rows_count", "title", "alternate", "formatted"] {
        assert!(screen.contains(&format!("\"{key}\"")), "{key} is not in {screen}");
    }
    let resize = [&["Resize", "qqa{sv}", "100", "30"][..], &with_token].concat();
    assert_eq!(session(&resize).await.unwrap(), "");
    assert_eq!(session(&["Wait", "t", "0"]).await.unwrap(), "ba{sv} false 0");

    let keys = [&["SendKeys", "asa{sv}", "2", "y", "Enter"][..], &with_token].concat();
    assert_eq!(session(&keys).await.unwrap(), "");
    let paste = [&["Paste", "sa{sv}", "pasted"][..], &with_token].concat();
    assert_eq!(session(&paste).await.unwrap(), "");

    // What has no options has no token either: the call arrives, and is refused.
    for refused in [
        &["Signal", "s", "TERM"][..],
        &["Interrupt"],
        &["Kill"],
        &["Pause"],
        &["Resume"],
        &["Forget"],
        &["Submit"],
        &["Share", "s", "observe"],
    ] {
        let error = session(refused).await.unwrap_err();
        assert!(error.contains("belongs to a token lease"), "{refused:?}: {error}");
    }

    let list = busctl.manager(&["ListSessions", "a{sv}", "1", "tool", "s", "command"]).await;
    assert!(list.unwrap().contains(&path));
    let events = busctl.manager(&["ListEvents", "tu", "0", "9"]).await.unwrap();
    assert!(words(&events).contains(&"session-started"), "{events}");
    assert!(busctl.manager(&["ListTools"]).await.unwrap().contains("\"lazygit\""));
    let explain = ["Explain", "sa{sv}", "shell", "1", "workspace", "s", place];
    assert!(busctl.manager(&explain).await.unwrap().contains("\"bash\""));
    assert!(busctl.manager(&["RenewLease", "s", &token]).await.unwrap().starts_with("t 1"));
    let claimed = busctl.manager(&["ClaimLease", "s", &token]).await.unwrap();
    assert_eq!(words(&claimed)[1], path);

    let close = [&["Close", "a{sv}"][..], &["1", "token", "s", words(&claimed)[0]]].concat();
    assert_eq!(value(&session(&close).await.unwrap(), "reason"), "closed-by-owner");
    assert_eq!(busctl.manager(&["CloseSessions", "a{sv}", "0"]).await.unwrap(), "u 0");
    let interface = "org.st2.Tools.Session1";
    let outcome = busctl.run(&["get-property", "org.st2.Tools", &path, interface, "Outcome"]).await;
    assert!(String::from_utf8(outcome.stdout).unwrap().contains("closed-by-owner"));
}

/// The previous test names every method: a new one must be added to it.
#[test]
fn the_busctl_test_names_every_method() {
    let xml = fs::read_to_string(shipped()).unwrap();
    let test = include_str!("contract.rs");
    let methods: BTreeSet<_> = xml
        .split("<method name=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap_or_default())
        .filter(|method| *method != "Attach")
        .collect();
    assert!(methods.len() >= 22);
    for method in methods {
        assert!(test.contains(&format!("\"{method}\"")), "{method} is not called by busctl");
    }
}
