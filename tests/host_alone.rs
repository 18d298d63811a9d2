//! The systemd host where a test must have the user manager to itself: what it does would end or stop
//! what other tests run. Needs a user manager and a user bus: `tests/run` provides both.

#![allow(clippy::unwrap_used)]

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use st2_tools::{
    broker::{name::UnitName, outcome::Ending},
    host::{
        EndedBy, Host, HostError, Place,
        child::Child,
        systemd::{SLICE, Systemd},
    },
};
use tokio::sync::Mutex;
use zbus::Connection;

use stopped::Stopped;
use support::{SOON, has_members, host, is_forgotten, placed, property, shell, spec, systemctl};

#[path = "support/stopped.rs"]
mod stopped;

#[path = "host/support.rs"]
#[allow(dead_code)]
mod support;

/// Held by the test that has the manager.
static MANAGER: Mutex<()> = Mutex::const_new(());

#[tokio::test]
async fn a_sweep_ends_what_is_ours_and_nothing_else() {
    let _alone = MANAGER.lock().await;
    let host = host().await;
    let start = |unit: &str, slice: &str, script: &str| {
        let mut command = Command::new("systemd-run");
        command.args(["--user", "--quiet", "--scope", "--unit", unit, "--slice", slice]);
        command.args(["-p", "TimeoutStopSec=1", "bash", "-c", script]).stdin(Stdio::null());
        Child::adopt(command.spawn().unwrap()).unwrap()
    };
    let deaf = "trap '' TERM HUP; while true; do sleep 1000; done";
    let units = [
        ("app-st2tools-left-a.scope", SLICE, deaf),
        ("app-st2tools-left-b.scope", SLICE, "exec sleep 1000"),
        ("app-st2tools-left-c.scope", "app-st2tools-1.slice", "exec sleep 1000"),
        ("app-st2tools-foreign-d.scope", "app.slice", "exec sleep 1000"),
        ("somebody-elses.scope", SLICE, "exec sleep 1000"),
    ];
    let mut children: Vec<Child> = units.iter().map(|(u, s, c)| start(u, s, c)).collect();
    for (unit, ..) in units {
        while property(&UnitName::foreign(unit), "ActiveState") != "active" {
            tokio::task::yield_now().await;
        }
    }
    systemctl(&["freeze", units[1].0]);
    assert!(host.sweep().await.unwrap() >= 3);
    for child in &mut children[..3] {
        tokio::time::timeout(SOON, child.exited()).await.unwrap().unwrap();
    }
    for (unit, ..) in &units[..3] {
        is_forgotten(&UnitName::foreign(*unit)).await;
    }
    for (child, (unit, ..)) in children[3..].iter().zip(&units[3..]) {
        assert!(!child.process().has_ended().unwrap(), "{unit}");
        assert_eq!(property(&UnitName::foreign(*unit), "ActiveState"), "active");
        systemctl(&["stop", unit]);
    }
    assert_eq!(host.sweep().await.unwrap(), 0);
}

#[tokio::test]
async fn a_manager_that_does_not_answer_is_a_typed_error_and_leaves_nothing() {
    let _alone = MANAGER.lock().await;
    let host = host().await;
    let spec = spec("silent");
    let (mut child, _gate) = shell("exec sleep 1000");
    let stopped = Stopped::manager(&Connection::session().await.unwrap()).await;
    let error = host.place(&spec, child.process()).await.unwrap_err();
    assert!(matches!(error, HostError::Silent { .. }), "{error}");
    assert_eq!(error.errno(), libc::ETIMEDOUT);
    let killed = Ending::Signaled { signal: libc::SIGKILL, core_dumped: false };
    assert_eq!(child.exited().await.unwrap().ending, killed);
    drop(stopped);
    is_forgotten(&spec.unit).await;
    // And it works again.
    let (scope, _child) = placed(&host, &spec, "exec sleep 1000").await;
    scope.kill().await.unwrap();
    assert_eq!(scope.emptied(SOON).await, 0);
    scope.retire().await;
}

#[tokio::test]
async fn a_manager_that_does_not_answer_delays_no_kill() {
    let _alone = MANAGER.lock().await;
    let host = host().await;
    let spec = spec("killsilent");
    let (scope, mut child) = placed(&host, &spec, "trap '' TERM HUP; sleep 1000 & wait").await;
    has_members(&scope, 2).await;
    let stopped = Stopped::manager(&Connection::session().await.unwrap()).await;
    scope.kill().await.unwrap();
    let emptied = tokio::time::timeout(Duration::from_secs(8), scope.emptied(SOON)).await;
    assert_eq!(emptied.unwrap(), 0);
    child.exited().await.unwrap();
    drop(stopped);
    scope.retire().await;
    is_forgotten(&spec.unit).await;
}

#[tokio::test]
async fn a_session_survives_a_new_start_of_the_manager() {
    let _alone = MANAGER.lock().await;
    let host = host().await;
    for command in ["daemon-reload", "daemon-reexec"] {
        let spec = spec(&command.replace('-', ""));
        let idle = "trap 'exit 0' TERM HUP; sleep 1000 & wait";
        let (scope, mut child) = placed(&host, &spec, idle).await;
        has_members(&scope, 2).await;
        systemctl(&[command]);
        assert_eq!(property(&spec.unit, "ActiveState"), "active");
        systemctl(&["stop", spec.unit.as_str()]);
        assert_eq!(child.exited().await.unwrap().ending, Ending::Exited(0));
        assert_eq!(scope.ended_by().await, EndedBy::Manager);
        scope.retire().await;
        is_forgotten(&spec.unit).await;
        let after = support::spec(&format!("after{}", command.replace('-', "")));
        let (scope, _child) = placed(&host, &after, "exec sleep 1000").await;
        scope.stop().await.unwrap();
        assert_eq!(scope.emptied(SOON).await, 0);
        scope.retire().await;
    }
}

#[tokio::test]
async fn a_lost_bus_is_a_typed_error() {
    let _alone = MANAGER.lock().await;
    let connection = Connection::session().await.unwrap();
    let own = host().await.own_unit().clone();
    let host = Systemd::bound_to(&connection, own).await.unwrap();
    let spec = spec("nobus");
    let (mut child, _gate) = shell("exec sleep 1000");
    connection.close().await.unwrap();
    let error = host.place(&spec, child.process()).await.unwrap_err();
    assert!(matches!(error, HostError::Manager { .. }), "{error}");
    child.exited().await.unwrap();
    is_forgotten(&spec.unit).await;
}

#[tokio::test]
async fn after_many_sessions_nothing_is_left() {
    let _alone = MANAGER.lock().await;
    let host = host().await;
    let mut descriptors = Vec::new();
    for round in 0..60 {
        let spec = spec(&format!("many{round}x"));
        let (scope, mut child) = placed(&host, &spec, "sleep 1000 & exit 0").await;
        child.exited().await.unwrap();
        scope.stop().await.unwrap();
        assert_eq!(scope.emptied(SOON).await, 0);
        let group = scope.group().path().to_owned();
        scope.usage().await;
        scope.retire().await;
        is_forgotten(&spec.unit).await;
        assert!(!group.exists(), "{}", group.display());
        descriptors.push(std::fs::read_dir("/proc/self/fd").unwrap().count());
    }
    assert_eq!(descriptors[59], descriptors[9], "{descriptors:?}");
    let scopes = ["list-units", "--all", "--plain", "--no-legend", "app-st2tools-*.scope"];
    assert_eq!(systemctl(&scopes), "");
}
