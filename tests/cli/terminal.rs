//! The terminal of whoever runs the command: raw while a session has it, and as it was after that.

use nix::sys::{
    signal::{Signal, kill},
    wait::{WaitPidFlag, WaitStatus, waitpid},
};

use crate::{fake::BRIEF, program::World, screen::Terminal};

/// The program on a terminal of its own.
fn run(world: &World, arguments: &[&str]) -> Terminal {
    Terminal::run(&world.command(arguments))
}

#[test]
fn a_session_has_the_terminal_raw_and_gives_it_back() {
    let world = World::new();
    let mut terminal = run(&world, &["run", "screen"]);
    terminal.screen.wait_for("drawn");
    assert!(terminal.is_raw());
    let open = world.fake.wait_for(|call| call.starts_with("Open"));
    assert!(open.contains("columns=100 ring_bytes=65536 rows=30 term=xterm-test"), "{open}");
    terminal.press(b"\x03\x1a\x1dd");
    world.fake.wait_for(|call| call == "s1 typed \"\\u{3}\\u{1a}\\u{1d}d\"");
    terminal.press(b"\x04");
    assert_eq!(terminal.end().exit_code(), 0);
    assert!(terminal.is_as_it_was());
    terminal.screen.wait_for("\x1b[?25h\x1b[?1049l");
}

#[test]
fn a_new_size_reaches_the_session() {
    let world = World::new();
    let mut terminal = run(&world, &["run", "screen"]);
    terminal.screen.wait_for("drawn");
    terminal.resize(132, 50);
    world.fake.wait_for(|call| call == "s1 Resize 132 50");
    terminal.press(b"\x04");
    assert_eq!(terminal.end().exit_code(), 0);
}

#[test]
fn the_terminal_is_given_back_on_every_signal_that_can_be_caught() {
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT] {
        let world = World::new();
        let mut terminal = run(&world, &["run", "screen"]);
        terminal.screen.wait_for("drawn");
        assert!(terminal.is_raw());
        kill(terminal.pid(), signal).unwrap();
        assert_eq!(terminal.end().exit_code(), 128 + signal as u32, "{signal}");
        assert!(terminal.is_as_it_was(), "{signal}");
        terminal.screen.wait_for("\x1b[?1049l");
    }
}

#[test]
fn the_terminal_is_given_back_when_the_broker_vanishes() {
    let world = World::new();
    let mut terminal = run(&world, &["run", "vanish"]);
    assert_eq!(terminal.end().exit_code(), 125);
    terminal.screen.wait_for("the broker is gone");
    assert!(terminal.is_as_it_was());
}

#[test]
fn a_stop_gives_the_terminal_back_and_going_on_takes_it_again() {
    let world = World::new();
    let mut terminal = run(&world, &["run", "screen"]);
    terminal.screen.wait_for("drawn");
    kill(terminal.pid(), Signal::SIGTSTP).unwrap();
    let stopped = waitpid(terminal.pid(), Some(WaitPidFlag::WUNTRACED)).unwrap();
    assert_eq!(stopped, WaitStatus::Stopped(terminal.pid(), Signal::SIGSTOP));
    assert!(!terminal.is_raw());
    terminal.screen.wait_for("\x1b[?25h\x1b[?1049l");
    kill(terminal.pid(), Signal::SIGCONT).unwrap();
    world.fake.wait_for(|call| call == "s1 Signal SIGWINCH");
    assert!(terminal.is_raw());
    terminal.screen.wait_for("\x1b[?25l\x1b[?1049h");
    terminal.press(b"\x04");
    assert_eq!(terminal.end().exit_code(), 0);
    assert!(terminal.is_as_it_was());
}

#[test]
fn the_detach_keys_leave_a_session_running_whole_or_in_pieces() {
    for pieces in [&[&b"x\x1dd"[..]][..], &[b"x\x1d", b"d"]] {
        let world = World::new();
        assert_eq!(world.run(&["open", "screen"]).status, Some(0));
        let mut terminal = run(&world, &["attach", "s1"]);
        terminal.screen.wait_for("drawn");
        terminal.screen.wait_for("Ctrl-] d leaves it");
        world.fake.wait_for(|call| call == "s1 Resize 100 30");
        for piece in pieces {
            terminal.press(piece);
            world.fake.wait_for(|call| call == "s1 typed \"x\"");
        }
        assert_eq!(terminal.end().exit_code(), 0);
        assert!(!terminal.is_raw());
        world.fake.wait_for(|call| call == "s1 detached");
        assert!(!world.fake.calls().iter().any(|call| call.contains("Close")));
    }
}

#[test]
fn a_lease_is_renewed_for_as_long_as_its_session_is_attached() {
    let world = World::new();
    assert_eq!(world.run(&["open", "screen"]).status, Some(0));
    let mut terminal = run(&world, &["attach", "s1", "--token", BRIEF]);
    let renewal = format!("RenewLease {BRIEF}");
    world.fake.wait_for_nth(3, |call| call == renewal);
    terminal.press(b"\x1dd");
    assert_eq!(terminal.end().exit_code(), 0);
}

#[test]
fn a_stranger_is_told_whose_session_it_is_and_has_the_terminal_back() {
    let world = World::new();
    assert_eq!(world.run(&["open", "other"]).status, Some(0));
    let mut terminal = run(&world, &["attach", "s1"]);
    terminal.screen.wait_for("give its --token, or end it with: systemctl --user stop");
    assert_eq!(terminal.end().exit_code(), 125);
    assert!(!terminal.is_raw());
}

#[test]
fn an_observer_types_nothing_sizes_nothing_and_leaves_with_ctrl_c() {
    let world = World::new();
    assert_eq!(world.run(&["open", "screen"]).status, Some(0));
    let mut terminal = run(&world, &["attach", "s1", "--observe"]);
    terminal.screen.wait_for("drawn");
    world.fake.wait_for(|call| call == "s1 Attach framing=raw mode=observe");
    terminal.press(b"rm\x03");
    assert_eq!(terminal.end().exit_code(), 0);
    world.fake.wait_for(|call| call == "s1 detached");
    let calls = world.fake.calls();
    assert!(
        !calls.iter().any(|call| call.contains("typed") || call.contains("Resize")),
        "{calls:?}"
    );
}

#[test]
fn a_session_that_ends_while_attached_gives_its_status() {
    let world = World::new();
    assert_eq!(world.run(&["open", "screen"]).status, Some(0));
    let mut terminal = run(&world, &["attach", "s1"]);
    terminal.screen.wait_for("drawn");
    assert_eq!(world.run(&["kill", "s1"]).status, Some(0));
    assert_eq!(terminal.end().exit_code(), 137);
    assert!(!terminal.is_raw());
}
