//! `run`: what reaches the bus, and what comes back as a status.

use std::process::Stdio;

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{
    bus::Bus,
    program::{World, command, finish, start, wait},
};

#[test]
fn the_command_line_reaches_open_as_it_is_meant() {
    let world = World::new();
    let here = world.bus.place().canonicalize().unwrap();
    let ran = world.run(&[
        "run",
        "--cwd",
        "src",
        "--env",
        "A=1",
        "--grace",
        "5s",
        "--timeout",
        "1m",
        "--label",
        "agent=a",
        "--bind-unit",
        "x.service",
        "--private",
        "--",
        "say",
        "--json",
        "0",
    ]);
    assert_eq!((ran.text(), ran.status, ran.stderr.as_str()), ("--json", Some(0), ""));
    let place = here.display();
    assert_eq!(
        world.fake.calls()[0],
        format!(
            "Open command argv=[say,--json,0] bind_unit=x.service cwd={place}/src env={{A:1}} \
             grace_ms=5000 labels={{agent:a}} private=true ring_bytes=65536 timeout_ms=60000 workspace={place}"
        )
    );
    assert_eq!(world.fake.calls()[1], "s1 Attach cursor=0 framing=raw mode=control");
}

#[test]
fn without_arguments_the_tool_is_a_shell_and_one_that_is_named_gets_them_all() {
    let world = World::new();
    assert_eq!(world.run_with(&["run"], b"").status, Some(0));
    assert!(world.fake.calls()[0].starts_with("Open shell ring_bytes=65536 workspace="));
    world.run_with(&["run", "--tool", "lazygit", "say", "x", "0"], b"");
    world.fake.wait_for(|call| call.starts_with("Open lazygit argv=[say,x,0]"));
}

#[test]
fn the_status_is_the_tool_s_own() {
    let world = World::new();
    let ran = world.run(&["run", "say", "bye", "3"]);
    assert_eq!((ran.text(), ran.status), ("bye", Some(3)));
    let ran = world.run(&["run", "die", "SIGKILL"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(137), ""));
    let ran = world.run(&["run", "timeout", "SIGTERM"]);
    assert_eq!(ran.status, Some(143));
    assert_eq!(ran.stderr, "st2-tools: the session ended: SIGTERM (timeout)\n");
}

#[test]
fn a_tool_that_never_ran_has_the_status_that_env_gives() {
    let world = World::new();
    for (play, status, message) in [
        ("missing", 127, "exec: missing: no such file or directory"),
        ("denied", 126, "exec: denied: permission denied"),
        ("unplaced", 125, "scope: refused"),
        (
            "nowhere",
            125,
            "\"/\" is the root directory (name another directory with --workspace or --cwd)",
        ),
    ] {
        let ran = world.run(&["run", play]);
        assert_eq!(ran.status, Some(status), "{play}");
        assert_eq!(ran.stderr, format!("st2-tools: {message}\n"));
    }
    let ran = world.run(&["run", "--tool", "nothing"]);
    assert_eq!(ran.status, Some(125));
    assert_eq!(ran.stderr, "st2-tools: no tool is named \"nothing\" (see st2-tools tools)\n");
}

#[test]
fn a_command_line_that_cannot_be_understood_opens_nothing() {
    let world = World::new();
    for arguments in [&["run", "--grace", "soon"][..], &["run", "--env", "A"], &["frobnicate"], &[]]
    {
        let ran = world.run(arguments);
        assert_eq!(ran.status, Some(2), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(world.fake.calls(), [""; 0]);
}

#[test]
fn a_session_that_ended_before_it_was_attached_is_shown_whole() {
    let world = World::new();
    let ran = world.run(&["run", "quick"]);
    assert_eq!((ran.text(), ran.status), ("quick", Some(7)));
}

#[test]
fn a_cut_stream_is_taken_up_where_it_was_cut_and_what_is_gone_is_counted() {
    let world = World::new();
    let ran = world.run(&["run", "cut"]);
    assert_eq!((ran.text(), ran.status), ("abcfgij", Some(0)));
    assert_eq!(
        ran.stderr, "st2-tools: 3 bytes of output came too fast and were skipped\n",
        "d, e before the read and h before the second stream"
    );
    world.fake.wait_for(|call| call.starts_with("s1 Attach cursor=7 "));
}

#[test]
fn what_comes_from_a_pipe_is_typed_and_its_end_is_ctrl_d() {
    let world = World::new();
    let ran = world.run_with(&["run", "cat"], b"two\nlines\n");
    assert_eq!((ran.text(), ran.status), ("two\nlines\n", Some(0)));
}

#[test]
fn a_broker_that_vanishes_is_one_line_and_125() {
    let world = World::new();
    let ran = world.run(&["run", "vanish"]);
    assert_eq!(ran.status, Some(125));
    assert!(
        ran.stderr.starts_with("st2-tools: session s1: the broker is gone: "),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

#[test]
fn a_signal_to_us_ends_the_session_at_once() {
    let world = World::new();
    for (signal, status) in [(Signal::SIGTERM, 143), (Signal::SIGHUP, 129), (Signal::SIGINT, 130)] {
        let child = start(world.command(&["run", "cat"]).stdin(Stdio::piped()));
        let session = format!("s{} ", status_index(signal));
        world.fake.wait_for(|call| call.starts_with(&format!("{session}Attach")));
        kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
        assert_eq!(wait(child).status, Some(status));
        world.fake.wait_for(|call| call.starts_with(&format!("{session}Close")));
    }
}

/// Sessions are counted from one, in the order of the test above.
fn status_index(signal: Signal) -> u32 {
    match signal {
        Signal::SIGTERM => 1,
        Signal::SIGHUP => 2,
        _ => 3,
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_session() {
    let world = World::new();
    let mut child = start(world.command(&["run", "cat"]).stdin(Stdio::piped()));
    drop(child.stdout.take());
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"echo\n").unwrap();
    let ran = wait(child);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(141), ""));
    world.fake.wait_for(|call| call.starts_with("s1 Close"));
}

#[test]
fn json_leaves_standard_output_to_the_tool() {
    let world = World::new();
    let ran = world.run(&["run", "--json", "say", "text", "2"]);
    assert_eq!((ran.text(), ran.status), ("text", Some(2)));
    let outcome: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!((&outcome["kind"], &outcome["code"]), (&"exited".into(), &2.into()));
}

#[test]
fn without_a_bus_or_a_broker_the_reason_is_told() {
    let bus = Bus::start(&[]);
    let ran = finish(command(&bus, &["list"]).stdin(Stdio::null()));
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.starts_with("st2-tools: no broker is running: "), "{}", ran.stderr);
    let absent = format!("unix:path={}/absent", bus.place().display());
    let mut none = command(&bus, &["list"]);
    let ran = finish(none.env("DBUS_SESSION_BUS_ADDRESS", absent).stdin(Stdio::null()));
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.contains("there is no user bus"), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

#[test]
fn a_broker_that_does_not_start_is_told_from_one_that_is_not_there() {
    let service = "[D-BUS Service]\nName=org.st2.Tools\nExec=/bin/false\n";
    let bus = Bus::start(&[("org.st2.Tools.service", service)]);
    let ran = finish(command(&bus, &["tools"]).stdin(Stdio::null()));
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.contains("the broker could not be started"), "{}", ran.stderr);
    assert!(ran.stderr.contains("journalctl --user -u st2-tools.service"), "{}", ran.stderr);
}

#[test]
fn on_pipes_each_output_is_copied_to_the_one_of_its_name() {
    let world = World::new();
    let ran = world.run_with(&["run", "--io", "pipe", "--", "apart"], b"typed");
    assert_eq!((ran.text(), ran.status), ("out", Some(3)));
    assert_eq!(ran.stderr, "errst2-tools: 5 bytes of output came too fast and were skipped\n");
    let calls = world.fake.calls();
    assert!(calls[0].starts_with("Open command argv=[apart] io=pipe ring_bytes=65536 stdin=open "));
    assert!(calls.iter().all(|call| !call.contains("Attach")), "{calls:?}");
    world.run(&["run", "--io", "pipe", "--stdin", "closed", "--", "apart"]);
    let second = world.fake.wait_for_nth(2, |call| call.starts_with("Open"));
    assert!(second.contains("stdin=closed"), "{second}");
}
