//! Everything of a session ends with it, however it hides, and also where the command itself is killed.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{
    place::{Place, until},
    program::{start, wait},
    support::{
        lives,
        looks::{self, Ordinary},
    },
};

/// Starts the probe; waits until so many processes have said who they are. They live.
fn begin(place: &Place, what: &str, count: usize) -> (Child, Vec<i32>) {
    let mut command = place.command(&["run", "--", &place.probe(), what]);
    // Open until the child is dropped: its end would be typed.
    let mut child = start(command.stdin(Stdio::piped()));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let pids: Vec<i32> = std::iter::from_fn(|| lines.next())
        .take(count)
        .map(|line| line.unwrap().trim().strip_prefix("pid ").unwrap().parse().unwrap())
        .collect();
    assert_eq!(pids.len(), count);
    assert!(pids.iter().all(|pid| lives(*pid)), "{pids:?}");
    // Read on: nobody would take its output otherwise.
    std::thread::spawn(move || lines.count());
    (child, pids)
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

/// In its own session, without its parents, ignoring every signal, stopped.
#[test]
fn what_a_tool_leaves_behind_ends_with_it() {
    let place = Place::new();
    let child = start(place.command(&["run", "--", &place.probe(), "escape"]).stdin(Stdio::null()));
    let command = pid(&child);
    let ran = wait(child);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let pids: Vec<i32> = ran
        .text()
        .lines()
        .map(|line| line.trim().strip_prefix("pid ").unwrap().parse().unwrap())
        .collect();
    assert_eq!(pids.len(), 4, "{}", ran.text());
    assert!(!pids.iter().any(|pid| lives(*pid)), "{pids:?}");
    place.nothing_is_left_of(command);
}

#[test]
fn a_signal_to_the_command_ends_everything() {
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        let place = Place::new();
        let (child, pids) = begin(&place, "escape-and-hold", 5);
        let command = pid(&child);
        kill(command, signal).unwrap();
        assert_eq!(wait(child).status, Some(128 + signal as i32));
        assert!(!pids.iter().any(|pid| lives(*pid)), "{pids:?}");
        place.nothing_is_left_of(command);
    }
}

/// The broker is in the command, and closes it; root's programs may do as they like.
#[test]
fn no_other_program_of_the_user_looks_into_a_command_that_has_a_broker() {
    let (place, ordinary) = (Place::new(), Ordinary::start());
    assert_eq!(looks::into(ordinary.pid()), looks::WAYS, "of an ordinary process");
    let (child, _) = begin(&place, "hold", 1);
    let open = looks::into(child.id());
    kill(pid(&child), Signal::SIGTERM).unwrap();
    wait(child);
    let expected = if nix::unistd::geteuid().is_root() { &looks::WAYS[..] } else { &[] };
    assert_eq!(open, expected);
}

#[test]
fn a_command_that_is_killed_leaves_no_process() {
    let place = Place::new();
    let (child, pids) = begin(&place, "escape-and-hold", 5);
    let command = pid(&child);
    kill(command, Signal::SIGKILL).unwrap();
    assert_eq!(wait(child).status, None);
    until("all five are dead", || !pids.iter().any(|pid| lives(*pid)));
    until("the supervisor is gone", || place.processes().is_empty());
    // Its directory is the one thing that is left, and goes with the next broker.
    assert_eq!(place.temporary().len(), 1);
    assert_eq!(place.run(&["run", "true"]).status, Some(0));
    place.nothing_is_left_of(command);
}

/// Processes that fork and end so fast that none is ever found by its number.
#[test]
fn a_comet_does_not_outlive_its_session() {
    let place = Place::new();
    let child = start(place.command(&["run", "--", &place.probe(), "comet"]).stdin(Stdio::null()));
    let command = pid(&child);
    assert_eq!(wait(child).status, Some(0));
    place.nothing_is_left_of(command);
}
