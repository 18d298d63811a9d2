//! What comes back: the tool's status, its output to the last byte, its outcome.

use std::{fs, io::Write, process::Stdio};

use nix::unistd::Pid;

use crate::{
    place::{Place, can_make_groups},
    program::{start, wait},
};

#[test]
fn the_status_is_the_tool_s_own() {
    let place = Place::new();
    let probe = place.probe();
    for (argv, status) in [
        (&["true"][..], 0),
        (&["sh", "-c", "exit 7"], 7),
        (&[&probe, "exit", "255"], 255),
        (&[&probe, "die", "9"], 128 + 9),
        (&[&probe, "die", "15"], 128 + 15),
    ] {
        let ran = place.run(&[&["run", "--"], argv].concat());
        assert_eq!((ran.status, ran.stderr.as_str()), (Some(status), ""), "{argv:?}");
    }
}

#[test]
fn what_never_ran_has_a_status_and_one_line_of_why() {
    let place = Place::new();
    fs::write(place.workspace().join("text"), "x").unwrap();
    for (arguments, status, why) in [
        (&["run", "absent"][..], 127, "No such file or directory"),
        (&["run", "./text"], 126, "Permission denied"),
        (&["run", "--workspace", "/", "true"], 125, "name another directory with --workspace"),
        (&["run", "--tool", "absent"], 125, "no tool \"absent\" is declared"),
        (&["run", "--cwd", "..", "true"], 125, "st2-tools: "),
    ] {
        let ran = place.run(arguments);
        assert_eq!(ran.status, Some(status), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(why), "{arguments:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
    assert_eq!(place.temporary().len(), 0);
}

/// Every byte there is, in no order: the terminal's own changes are switched off by the tool.
#[test]
fn a_megabyte_of_output_is_exact() {
    let place = Place::new();
    let mut bytes = vec![0; 1 << 20];
    getrandom::fill(&mut bytes).unwrap();
    fs::write(place.workspace().join("bytes"), &bytes).unwrap();
    let ran = place.run(&["run", "--", "sh", "-c", "stty raw -echo; cat bytes"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.stdout == bytes, "{} bytes came, or others", ran.stdout.len());
}

#[test]
fn a_pipe_is_typed_and_its_end_is_the_end_of_input() {
    let place = Place::new();
    let arguments = ["run", "--", "sh", "-c", "cat >typed; echo all read"];
    let mut child = start(place.command(&arguments).stdin(Stdio::piped()));
    child.stdin.take().unwrap().write_all(b"two\nlines\n").unwrap();
    let ran = wait(child);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.text().ends_with("all read\r\n"), "{:?}", ran.text());
    assert_eq!(fs::read(place.workspace().join("typed")).unwrap(), b"two\nlines\n");
}

/// Every byte both ways, and each output by itself.
#[test]
fn on_pipes_a_megabyte_in_is_the_same_out_and_errors_stay_apart() {
    let place = Place::new();
    let mut bytes = vec![0; 1 << 20];
    getrandom::fill(&mut bytes).unwrap();
    let script = "cat; echo note >&2; exit 7";
    let mut child = start(
        place.command(&["run", "--io", "pipe", "--", "sh", "-c", script]).stdin(Stdio::piped()),
    );
    let mut stdin = child.stdin.take().unwrap();
    let input = bytes.clone();
    let typed = std::thread::spawn(move || stdin.write_all(&input));
    let ran = wait(child);
    typed.join().unwrap().unwrap();
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(7), "note\n"));
    assert!(ran.stdout == bytes, "{} bytes came, or others", ran.stdout.len());

    let ran = place.run(&["run", "--io", "pipe", "--stdin", "closed", "--", "cat"]);
    assert_eq!((ran.status, ran.text(), ran.stderr.as_str()), (Some(0), "", ""));
    let head =
        place.run(&["run", "--io", "pipe", "--", "sh", "-c", "exec <&-; sleep 0.1; echo done"]);
    assert_eq!((head.status, head.text()), (Some(0), "done\n"), "a tool that reads nothing");
}

#[test]
fn the_outcome_is_one_document_and_output_stays_the_tool_s() {
    let place = Place::new();
    let ran = place.run(&["run", "--json", "--", "sh", "-c", "echo said; exit 3"]);
    assert_eq!((ran.text(), ran.status), ("said\r\n", Some(3)));
    let outcome: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    let field = |name: &str| outcome[name].clone();
    assert_eq!((field("kind"), field("code")), ("exited".into(), 3.into()));
    assert_eq!((field("reason"), field("survivors")), ("exit".into(), 0.into()));
    assert_eq!(field("bytes_out"), serde_json::json!(6));
}

/// Without asking: nothing. Asked: which broker, and what it cannot promise here.
#[test]
fn the_backend_and_its_gaps_are_told_when_asked() {
    let place = Place::new();
    let ran = place.run(&["run", "-v", "true"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let [broker, confinement] = ran.stderr.lines().collect::<Vec<_>>()[..] else {
        panic!("not two lines: {}", ran.stderr);
    };
    assert!(broker.starts_with("st2-tools: using an embedded broker: no broker"), "{broker}");
    let (backend, gaps) = confinement.split_once(", gaps: ").unwrap();
    assert!(backend.contains("backend portable, tier mounts, Landlock ABI "), "{confinement}");
    let gaps: Vec<_> = gaps.split(", ").collect();
    for gap in ["no-scope", "no-resource-limits", "git-hooks", "workspace-code", "disk-space"] {
        assert!(gaps.contains(&gap), "{gap} is not in {gaps:?}");
    }
    assert_eq!(gaps.contains(&"no-cgroup"), !can_make_groups(), "{gaps:?}");
}

#[test]
fn questions_are_answered_without_a_bus_and_what_needs_one_says_so() {
    let place = Place::new();
    let tools = place.run(&["tools", "--json"]);
    assert_eq!(tools.status, Some(0), "{}", tools.stderr);
    let names: Vec<_> =
        tools.json().as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(
        names,
        [
            "claude", "codex", "command", "gemini", "git-add", "lazygit", "log-tail", "opencode",
            "pi", "shell"
        ]
    );
    let explained = place.run(&["explain", "command", "--json", "--", "true"]);
    assert_eq!(explained.status, Some(0), "{}", explained.stderr);
    assert_eq!(explained.json()["argv"], serde_json::json!(["true"]));
    let refused = place.run(&["explain", "command", "--workspace", "/", "--", "true"]);
    assert_eq!(refused.status, Some(1), "{}", refused.stderr);
    for arguments in [&["open", "true"][..], &["list"], &["show", "a"]] {
        let ran = place.run(arguments);
        assert_eq!(ran.status, Some(1), "{arguments:?}");
        assert!(ran.stderr.contains("there is no user bus"), "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
    assert_eq!(place.temporary().len(), 0);
}

#[test]
fn nothing_is_left_of_a_run() {
    let place = Place::new();
    let child = start(
        place.command(&["run", "--", "sh", "-c", "touch \"$TMPDIR/x\""]).stdin(Stdio::null()),
    );
    let pid = Pid::from_raw(child.id().cast_signed());
    assert_eq!(wait(child).status, Some(0));
    place.nothing_is_left_of(pid);
}
