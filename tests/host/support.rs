//! What the tests of the systemd host share.
#![allow(clippy::unwrap_used)]

use std::{
    io::Write,
    path::Path,
    process::{ChildStdin, Command, Stdio},
    time::{Duration, Instant},
};

use st2_tools::{
    broker::name::{SessionId, ToolName, UnitName},
    host::{
        Host, ScopeSpec,
        child::Child,
        systemd::{Systemd, place::Scope},
    },
};
use tokio::sync::OnceCell;
use zbus::Connection;

/// Within this, everything that is waited for happens, or the test fails.
pub const SOON: Duration = Duration::from_secs(10);

pub async fn host() -> Systemd {
    let connection = Connection::session().await.expect("a user bus: run this by tests/run");
    // A broker is started once; the tests of this file are one process.
    static OWN: OnceCell<UnitName> = OnceCell::const_new();
    let own = OWN.get_or_init(|| async {
        let host = Systemd::connect(&connection).await;
        host.expect("a user manager: run this by tests/run").own_unit().clone()
    });
    Systemd::bound_to(&connection, own.await.clone()).await.unwrap()
}

/// A scope's specification, named for its test.
pub fn spec(test: &str) -> ScopeSpec {
    let id = SessionId::new(format!("{test}{}", std::process::id())).unwrap();
    let unit = UnitName::scope(&ToolName::new("probe").unwrap(), &id);
    ScopeSpec {
        id,
        unit,
        description: format!("test {test}"),
        stop_timeout: Duration::from_secs(2),
        runtime_max: None,
        memory_max: None,
        tasks_max: None,
        bind_unit: None,
    }
}

/// A stand-in for the launcher: a shell at a gate, its standard input.
pub fn shell(script: &str) -> (Child, ChildStdin) {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("read -r _; {script}")]).stdin(Stdio::piped());
    let mut spawned = command.spawn().unwrap();
    let gate = spawned.stdin.take().unwrap();
    (Child::adopt(spawned).unwrap(), gate)
}

/// Places a shell and opens its gate.
pub async fn placed(host: &Systemd, spec: &ScopeSpec, script: &str) -> (Scope, Child) {
    let (child, gate) = shell(script);
    let scope = host.place(spec, child.process()).await.unwrap();
    release(gate);
    (scope, child)
}

pub fn release(mut gate: ChildStdin) {
    gate.write_all(b"go\n").unwrap();
}

/// Waits until so many processes are in a scope: the last that a script starts is in place.
pub async fn has_members(scope: &Scope, count: usize) {
    let until = Instant::now() + SOON;
    while scope.group().members().unwrap().len() < count {
        assert!(Instant::now() < until, "{scope:?} does not get {count} members");
        tokio::task::yield_now().await;
    }
}

/// Waits until a path is there.
pub async fn appears(path: &Path) {
    let until = Instant::now() + SOON;
    while !path.exists() {
        assert!(Instant::now() < until, "{} does not appear", path.display());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub fn systemctl(arguments: &[&str]) -> String {
    let output = Command::new("systemctl").arg("--user").args(arguments).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub fn property(unit: &UnitName, name: &str) -> String {
    systemctl(&["show", "--value", "-p", name, unit.as_str()])
}

/// Whether the manager has forgotten a unit.
pub async fn is_forgotten(unit: &UnitName) {
    let until = Instant::now() + SOON;
    while !systemctl(&["list-units", "--all", "--plain", "--no-legend", unit.as_str()]).is_empty() {
        assert!(Instant::now() < until, "{unit} is still loaded");
        tokio::task::yield_now().await;
    }
}

/// Starts a service that does nothing; gives its name.
pub fn service(test: &str) -> UnitName {
    let unit = format!("{test}-{}.service", std::process::id());
    let mut command = Command::new("systemd-run");
    command.args(["--user", "--quiet", "--collect", "--unit", &unit, "sleep", "1000"]);
    assert!(command.status().unwrap().success());
    UnitName::foreign(unit)
}
