//! The launcher that stays: it tells how the tool ended, and ends everything that the tool left.

use std::{fs, path::PathBuf};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use st2_tools::launch::spec::{FromLauncher, Step, Supervise};

use crate::{
    pidfd::{open_pidfd, wait_for_end},
    session::{Place, Session, supervised},
};

/// Starts a supervised probe; gives it and the leader's id.
fn start(place: &Place, arguments: &[&str]) -> (Session, Pid) {
    let mut session = Session::open(place, supervised(place.spec(arguments)));
    session.ready();
    session.release();
    session.confined();
    match session.message() {
        Some(FromLauncher::Started { pid }) => (session, Pid::from_raw(pid)),
        other => panic!("expected the start, got {other:?}"),
    }
}

fn exited(session: &mut Session) -> i32 {
    match session.message() {
        Some(FromLauncher::Exited { status, memory_peak, .. }) => {
            assert!(memory_peak > 0);
            status
        }
        other => panic!("expected the end, got {other:?}"),
    }
}

/// Reads announced processes.
fn announced(session: &mut Session, count: usize) -> Vec<Pid> {
    let pids = session.lines(count, |line| line.strip_prefix("pid ")?.parse().ok());
    pids.into_iter().map(Pid::from_raw).collect()
}

/// Waits for the end of processes. One that is gone already has ended.
fn all_end(pids: &[Pid]) {
    pids.iter().filter_map(|pid| open_pidfd(*pid)).for_each(|pidfd| wait_for_end(&pidfd));
}

#[test]
fn an_exit_is_told_with_its_code_and_the_supervisor_follows() {
    let place = Place::new();
    let (mut session, leader) = start(&place, &["exit", "7"]);
    assert_ne!(leader, session.pid());
    assert_eq!(exited(&mut session), 7 << 8);
    assert_eq!(session.message(), None);
    assert!(session.wait().success());
}

#[test]
fn an_end_by_a_signal_is_told_as_one() {
    let place = Place::new();
    let (mut session, _) = start(&place, &["die", "9"]);
    assert_eq!(exited(&mut session), 9);
    assert_eq!(session.message(), None);
}

#[test]
fn the_tool_leads_its_session_and_inherits_nothing_of_its_supervisor() {
    let place = Place::new();
    let (mut session, leader) = start(&place, &["facts"]);
    exited(&mut session);
    let facts: serde_json::Value = serde_json::from_str(session.all_output().trim()).unwrap();
    for fact in ["pid", "sid", "pgid", "foreground"] {
        assert_eq!(facts[fact], leader.as_raw(), "{fact}");
    }
    assert_eq!(facts["descriptors"].as_object().unwrap().len(), 3);
    assert_eq!(facts["status"]["SigBlk"], "0000000000000000");
    assert_eq!(facts["status"]["SigIgn"], "0000000000001000");
}

#[test]
fn a_tool_that_cannot_be_executed_is_a_failure_and_leaves_nothing() {
    let place = Place::new();
    let mut spec = supervised(place.spec(&[""]));
    spec.argv = vec!["/usr/bin/no-such-program".into()];
    let mut session = Session::open(&place, spec);
    session.ready();
    session.release();
    session.confined();
    let failure = session.failure();
    assert_eq!((failure.step, failure.errno), (Step::Exec, libc::ENOENT));
    assert_eq!(session.message(), None);
    assert!(session.wait().success());
}

/// The control of the two below: nobody else ends them. (The stopped one shares the leader's
/// session, so the kernel hangs it up.)
#[test]
fn whatever_hides_outlives_an_unsupervised_leader() {
    let mut session = Session::unconfined(&["escape"]);
    let escaped = announced(&mut session, 4);
    assert!(session.wait().success());
    let alive: Vec<Pid> =
        escaped.into_iter().filter(|pid| kill(*pid, Signal::SIGKILL).is_ok()).collect();
    assert!(alive.len() >= 3, "{alive:?}");
}

#[test]
fn whatever_hides_is_dead_after_the_leaders_end() {
    let place = Place::new();
    let (mut session, _) = start(&place, &["escape"]);
    let escaped = announced(&mut session, 4);
    assert_eq!(exited(&mut session), 0);
    all_end(&escaped);
    assert_eq!(session.message(), None);
    assert!(session.wait().success());
}

#[test]
fn whatever_hides_is_dead_after_the_broker_is_gone() {
    let place = Place::new();
    let (mut session, leader) = start(&place, &["escape-and-hold"]);
    let escaped = announced(&mut session, 5);
    session.vanish();
    all_end(&escaped);
    all_end(&[leader]);
    assert!(session.wait().success());
}

#[test]
fn what_forks_and_ends_without_rest_is_met() {
    let place = Place::new();
    let (mut session, _) = start(&place, &["comet"]);
    assert_eq!(exited(&mut session), 0);
    assert_eq!(session.message(), None, "the supervisor ends once there is nothing left");
    assert!(session.wait().success());
}

#[test]
fn the_broker_gone_at_the_gate_leaves_nothing() {
    let place = Place::new();
    let mut session = Session::open(&place, supervised(place.spec(&["hold"])));
    session.ready();
    session.vanish();
    assert!(session.wait().success());
    assert_eq!(session.all_output(), "", "the tool never ran");
}

#[test]
fn signals_do_not_end_the_supervisor() {
    let place = Place::new();
    let (mut session, leader) = start(&place, &["hold"]);
    for signal in [Signal::SIGHUP, Signal::SIGTERM, Signal::SIGINT, Signal::SIGTSTP] {
        kill(session.pid(), signal).unwrap();
    }
    kill(leader, Signal::SIGKILL).unwrap();
    assert_eq!(exited(&mut session), libc::SIGKILL);
    assert_eq!(session.message(), None);
    assert!(session.wait().success());
}

/// A cgroup of the test's own, beneath the one that the test runs in.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new() -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 ")).expect("cgroup2");
        let mount = PathBuf::from(mount.split(' ').nth(4).unwrap());
        let own = fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap().to_owned();
        let name = format!("st2-tools-launcher-test-{}", std::process::id());
        let path = mount.join(own).join(name);
        fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(path)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Gone already, where the supervisor was left alone with it.
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn the_tool_joins_the_sessions_cgroup_and_the_supervisor_does_not() {
    let (place, cgroup) = (Place::new(), Cgroup::new());
    let mut spec = place.spec(&["escape-and-hold"]);
    spec.supervise = Some(Supervise { cgroup: Some(cgroup.0.clone()) });
    let mut session = Session::open(&place, spec);
    session.ready();
    session.release();
    session.confined();
    let escaped = announced(&mut session, 5);
    let members = fs::read_to_string(cgroup.0.join("cgroup.procs")).unwrap();
    let is_member = |pid: Pid| members.lines().any(|member| member == pid.to_string());
    assert!(escaped.iter().all(|pid| is_member(*pid)), "{members}");
    assert!(!is_member(session.pid()));
    session.vanish();
    all_end(&escaped);
    assert!(session.wait().success());
    assert!(!cgroup.0.exists(), "an empty cgroup that nobody else would remove");
}
