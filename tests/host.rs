//! The systemd host against a real user manager. Needs one, and a user bus: `tests/run` provides both.

use std::{
    os::unix::process::CommandExt,
    path::Path,
    process::Command,
    task::Poll,
    time::{Duration, Instant},
};

use st2_tools::{
    broker::{name::UnitName, outcome::Ending},
    host::{
        EndedBy, Host, HostError, Place,
        cgroup::{Cgroup, name_of},
        systemd::{SLICE, SLICE_MAX, Systemd},
    },
};
use zbus::Connection;

use support::{
    SOON, appears, has_members, host, is_forgotten, placed, property, release, service, shell,
    spec, systemctl,
};

#[path = "host/support.rs"]
mod support;

#[tokio::test]
async fn a_launcher_is_placed_with_exactly_these_properties() {
    let host = host().await;
    let mut spec = spec("placed");
    spec.memory_max = Some(64 << 20);
    spec.tasks_max = Some(33);
    spec.runtime_max = Some(Duration::from_secs(3600));
    let (scope, mut child) = placed(&host, &spec, "exit 3").await;
    let own = host.own_unit().as_str();
    for (name, value) in [
        ("Slice", SLICE),
        ("SendSIGHUP", "yes"),
        ("KillMode", "control-group"),
        ("CollectMode", "inactive-or-failed"),
        ("TimeoutStopUSec", "2s"),
        ("RuntimeMaxUSec", "1h"),
        ("MemoryMax", "67108864"),
        ("TasksMax", "33"),
        ("OOMPolicy", "continue"),
        ("BindsTo", own),
        ("Description", "test placed"),
    ] {
        assert_eq!(property(&spec.unit, name), value, "{name}");
    }
    assert!(property(&spec.unit, "After").split(' ').any(|unit| unit == own));
    assert_eq!(child.exited().await.unwrap().ending, Ending::Exited(3));
    assert_eq!(scope.emptied(SOON).await, 0);
    assert_eq!(scope.ended_by().await, EndedBy::Itself);
    scope.retire().await;
    is_forgotten(&spec.unit).await;
}

#[tokio::test]
async fn what_one_slice_does_not_take_is_in_another_beneath_it() {
    let host = host().await;
    let mut scopes = Vec::new();
    for number in 0..=SLICE_MAX {
        scopes.push(placed(&host, &spec(&format!("many{number}")), "exec sleep 1000").await);
    }
    let last = &spec(&format!("many{SLICE_MAX}")).unit;
    assert_eq!(property(&spec("many0").unit, "Slice"), SLICE);
    assert_eq!(property(last, "Slice"), "app-st2tools-1.slice");
    let beneath = Path::new("app.slice").join(SLICE).join("app-st2tools-1.slice");
    let (scope, _) = scopes.last().unwrap();
    assert!(scope.group().name().ends_with(beneath.join(last.as_str())), "{scope:?}");
    for (scope, child) in &mut scopes {
        scope.kill().await.unwrap();
        child.exited().await.unwrap();
        assert_eq!(scope.emptied(SOON).await, 0);
        scope.retire().await;
    }
    drop(scopes);
    let again = spec("manyagain");
    let (scope, mut child) = placed(&host, &again, "exit").await;
    assert_eq!(property(&again.unit, "Slice"), SLICE, "there is room again");
    child.exited().await.unwrap();
    scope.retire().await;
}

#[tokio::test]
async fn a_stubborn_tree_is_dead_after_its_stop_timeout() {
    let host = host().await;
    let spec = spec("stubborn");
    let place = tempfile::tempdir().unwrap();
    let marks = place.path().display();
    // Deaf, in sessions of their own, orphaned, and one of them stopped.
    let script = format!(
        "trap '' TERM HUP INT; \
         (setsid bash -c 'touch {marks}/a; while true; do sleep 1000; done' & ) ; \
         (setsid bash -c '(sleep 1000 & ) ; touch {marks}/b; kill -STOP $$' & ) ; \
         touch {marks}/c; while true; do sleep 1000; done"
    );
    let (scope, mut child) = placed(&host, &spec, &script).await;
    for mark in ["a", "b", "c"] {
        appears(&place.path().join(mark)).await;
    }
    let began = Instant::now();
    scope.stop().await.unwrap();
    assert_eq!(scope.emptied(SOON).await, 0);
    let took = began.elapsed();
    assert!(took > Duration::from_millis(1900) && took < Duration::from_secs(10), "{took:?}");
    let killed = Ending::Signaled { signal: libc::SIGKILL, core_dumped: false };
    assert_eq!(child.exited().await.unwrap().ending, killed);
    scope.retire().await;
    is_forgotten(&spec.unit).await;
}

#[tokio::test]
async fn a_kill_ends_all_at_once_frozen_or_not() {
    let host = host().await;
    for (test, frozen) in [("kill", false), ("killfrozen", true)] {
        let spec = spec(test);
        let script = "trap '' TERM HUP; for i in {1..20}; do setsid sleep 1000 & done; wait";
        let (scope, mut child) = placed(&host, &spec, script).await;
        has_members(&scope, 21).await;
        if frozen {
            scope.freeze(true).await.unwrap();
        }
        let began = Instant::now();
        scope.kill().await.unwrap();
        assert_eq!(scope.emptied(SOON).await, 0);
        assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
        child.exited().await.unwrap();
        assert_eq!(scope.ended_by().await, EndedBy::Itself);
        scope.retire().await;
        is_forgotten(&spec.unit).await;
    }
}

#[tokio::test]
async fn what_is_frozen_stands_still_and_ends_gently_all_the_same() {
    let host = host().await;
    let spec = spec("frozen");
    let place = tempfile::tempdir().unwrap();
    let mark = place.path().join("mark");
    let script = format!("trap ': > {}; exit 0' TERM HUP; sleep 1000 & wait", mark.display());
    let (scope, mut child) = placed(&host, &spec, &script).await;
    has_members(&scope, 2).await;
    scope.freeze(true).await.unwrap();
    let events = std::fs::read_to_string(scope.group().path().join("cgroup.events")).unwrap();
    assert!(events.contains("frozen 1"), "{events}");
    scope.freeze(false).await.unwrap();
    scope.freeze(true).await.unwrap();
    scope.stop().await.unwrap();
    assert_eq!(child.exited().await.unwrap().ending, Ending::Exited(0));
    assert!(mark.exists());
    assert_eq!(scope.emptied(SOON).await, 0);
    scope.retire().await;
}

#[tokio::test]
async fn a_dead_launcher_is_not_placed_and_leaves_nothing() {
    let host = host().await;
    for (test, reaped) in [("zombie", false), ("reaped", true)] {
        let spec = spec(test);
        let (mut child, gate) = shell("exit 0");
        release(gate);
        child.process().ended().await.unwrap();
        if reaped {
            child.exited().await.unwrap();
        }
        let error = host.place(&spec, child.process()).await.unwrap_err();
        assert!(matches!(error, HostError::Ended), "{error}");
        is_forgotten(&spec.unit).await;
    }
}

#[tokio::test]
async fn an_attempt_given_up_half_way_leaves_nothing() {
    let host = host().await;
    // Given up after ever more polls: before the call is sent, before its answer, before the job's end.
    let mut completed = 0;
    for polls in 0..12 {
        let spec = spec(&format!("halfway{polls}x"));
        let (mut child, _gate) = shell("exec sleep 1000");
        if let Some(placed) = poll_at_most(polls, host.place(&spec, child.process())).await {
            let scope = placed.unwrap();
            scope.kill().await.unwrap();
            assert_eq!(scope.emptied(SOON).await, 0);
            scope.retire().await;
            completed += 1;
        }
        is_forgotten(&spec.unit).await;
        let _ = child.process().kill();
        child.exited().await.unwrap();
    }
    // The first two are given up before anything can have come back.
    assert!(completed <= 10, "{completed} of 12 were not given up");
}

/// Drops a future that is not done after so many polls.
async fn poll_at_most<F: Future>(polls: u32, future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    let mut left = polls;
    std::future::poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

#[tokio::test]
async fn an_inactive_unit_is_not_bound_to_and_not_started() {
    let host = host().await;
    let name = UnitName::foreign(format!("bound-inactive-{}.service", std::process::id()));
    let directory = Path::new(&std::env::var("XDG_RUNTIME_DIR").unwrap()).join("systemd/user");
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join(name.as_str());
    std::fs::write(&file, "[Service]\nExecStart=sleep 1000\n").unwrap();
    systemctl(&["daemon-reload"]);
    for unit in [name.clone(), UnitName::foreign("no-such-unit.service")] {
        let mut spec = spec("boundinactive");
        spec.bind_unit = Some(unit.clone());
        let (child, _gate) = shell("exec sleep 1000");
        let error = host.place(&spec, child.process()).await.unwrap_err();
        assert!(
            matches!(&error, HostError::BoundUnit { state, .. } if state == "inactive"),
            "{error}"
        );
        assert_eq!(property(&unit, "ActiveState"), "inactive");
        is_forgotten(&spec.unit).await;
    }
    std::fs::remove_file(file).unwrap();
    systemctl(&["daemon-reload"]);
}

/// Ends when it is asked to.
const IDLE: &str = "trap 'exit 0' TERM HUP; sleep 1000 & wait";

#[tokio::test]
async fn the_record_tells_what_no_unit_ended() {
    let host = host().await;
    let by_person = spec("byperson");
    let (scope, mut child) = placed(&host, &by_person, IDLE).await;
    has_members(&scope, 2).await;
    systemctl(&["stop", by_person.unit.as_str()]);
    child.exited().await.unwrap();
    assert_eq!(scope.ended_by().await, EndedBy::Manager);
    scope.retire().await;

    let mut by_time = spec("bytime");
    by_time.runtime_max = Some(Duration::from_secs(3));
    let (scope, mut child) = placed(&host, &by_time, IDLE).await;
    child.exited().await.unwrap();
    assert_eq!(scope.ended_by().await, EndedBy::Timeout);
    assert_eq!(scope.emptied(SOON).await, 0);
    scope.retire().await;
    is_forgotten(&by_time.unit).await;

    let by_signal = spec("bysignal");
    let (scope, mut child) = placed(&host, &by_signal, "kill -KILL $$").await;
    child.exited().await.unwrap();
    assert_eq!(scope.ended_by().await, EndedBy::Itself);
    scope.retire().await;
}

#[tokio::test]
async fn the_record_tells_which_unit_ended_a_session() {
    let host = host().await;

    let mut by_bound = spec("bybound");
    let bound = service("bound-stopped");
    by_bound.bind_unit = Some(bound.clone());
    let (scope, mut child) = placed(&host, &by_bound, IDLE).await;
    systemctl(&["stop", bound.as_str()]);
    child.exited().await.unwrap();
    assert_eq!(scope.ended_by().await, EndedBy::BoundUnit);
    scope.retire().await;

    let mut by_crash = spec("bycrash");
    let bound = service("bound-killed");
    by_crash.bind_unit = Some(bound.clone());
    let (scope, mut child) = placed(&host, &by_crash, IDLE).await;
    systemctl(&["kill", "--signal=KILL", bound.as_str()]);
    child.exited().await.unwrap();
    assert_eq!(scope.ended_by().await, EndedBy::BoundUnit);
    scope.retire().await;
}

#[tokio::test]
async fn a_stubborn_stop_by_a_person_is_no_timeout() {
    let host = host().await;
    let mut spec = spec("personstubborn");
    spec.runtime_max = Some(Duration::from_secs(3600));
    spec.stop_timeout = Duration::from_millis(200);
    let (scope, mut child) =
        placed(&host, &spec, "trap '' TERM HUP; sleep 1000 & wait; wait").await;
    has_members(&scope, 2).await;
    systemctl(&["stop", spec.unit.as_str()]);
    child.exited().await.unwrap();
    assert_eq!(property(&spec.unit, "Result"), "timeout");
    assert_eq!(scope.ended_by().await, EndedBy::Manager);
    scope.retire().await;
    is_forgotten(&spec.unit).await;
}

#[tokio::test]
async fn sessions_end_with_the_brokers_unit_however_it_ends() {
    let connection = Connection::session().await.unwrap();
    for (test, how) in [("brokerkilled", "KILL"), ("brokerstopped", "")] {
        let own = service(test);
        let host = Systemd::bound_to(&connection, own.clone()).await.unwrap();
        let spec = spec(test);
        let (scope, mut child) = placed(&host, &spec, "trap '' HUP; sleep 1000 & wait").await;
        if how.is_empty() {
            systemctl(&["stop", own.as_str()]);
        } else {
            systemctl(&["kill", "--signal", how, own.as_str()]);
        }
        assert_eq!(scope.emptied(SOON).await, 0);
        child.exited().await.unwrap();
        assert_eq!(scope.ended_by().await, EndedBy::Broker);
        scope.retire().await;
        is_forgotten(&spec.unit).await;
    }
}

#[tokio::test]
async fn a_hand_started_broker_gets_a_unit_of_its_own() {
    let host = host().await;
    let scope = host.own_unit().as_str();
    assert_eq!(scope, format!("st2-toolsd-{}.scope", std::process::id()));
    let name = name_of(std::process::id().cast_signed()).unwrap();
    assert_eq!(name.file_name().unwrap(), scope);
    // Found again, not made again.
    let again = Systemd::connect(&Connection::session().await.unwrap()).await.unwrap();
    assert_eq!(again.own_unit(), host.own_unit());
}

#[tokio::test]
async fn a_group_is_signalled_inside_the_place_only() {
    let host = host().await;
    let spec = spec("group");
    let place = tempfile::tempdir().unwrap();
    let marks = place.path().display();
    let script = format!(
        "set -m; bash -c 'trap \"touch {marks}/usr; exit\" USR1; echo $$ > {marks}/pid.new; \
         mv {marks}/pid.new {marks}/pid; sleep 1000 & wait' & wait"
    );
    let (scope, _child) = placed(&host, &spec, &script).await;
    appears(&place.path().join("pid")).await;
    let pid = std::fs::read_to_string(place.path().join("pid")).unwrap();
    let group: i32 = pid.trim().parse().unwrap();
    assert!(scope.signal_group(group, libc::SIGUSR1).unwrap() >= 1);
    appears(&place.path().join("usr")).await;
    let mut outside = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
    let group = outside.id().cast_signed();
    assert_eq!(scope.signal_group(group, libc::SIGKILL).unwrap(), 0);
    assert_eq!(outside.try_wait().unwrap(), None);
    outside.kill().unwrap();
    outside.wait().unwrap();
    scope.kill().await.unwrap();
    assert_eq!(scope.emptied(SOON).await, 0);
    scope.retire().await;
}

#[tokio::test]
async fn what_was_used_is_known_after_the_end() {
    let host = host().await;
    let spec = spec("usage");
    let script = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done";
    let (scope, mut child) = placed(&host, &spec, script).await;
    child.exited().await.unwrap();
    assert_eq!(scope.emptied(SOON).await, 0);
    let group = Cgroup::open(scope.group().name().to_owned());
    let usage = scope.usage().await;
    assert!(usage.cpu_usec > 1000, "{usage:?} {group:?}");
    scope.retire().await;
}

#[tokio::test]
async fn an_unknown_manager_is_no_host() {
    let connection = Connection::session().await.unwrap();
    connection.close().await.unwrap();
    let closed = Connection::session().await.unwrap();
    closed.clone().close().await.unwrap();
    assert!(Systemd::connect(&closed).await.is_err());
}
