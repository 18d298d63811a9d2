//! The subcommands that open, name and end sessions.

use std::{fs, process::Stdio};

use serde_json::json;

use crate::{
    fake::{TOKEN, UNIT},
    program::{World, wait},
};

/// A world with one session of this play, opened by the command.
fn opened(argv: &[&str]) -> World {
    let world = World::new();
    let ran = world.run(&[&["open", "--"], argv].concat());
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    world
}

fn token_file(world: &World) -> std::path::PathBuf {
    world.bus.place().join("st2-tools/tokens/s1")
}

#[test]
fn open_prints_what_is_needed_to_go_on_and_keeps_the_token() {
    let world = World::new();
    let ran = world.run(&["open", "--ttl", "90s", "--columns", "132", "cat"]);
    assert_eq!(
        ran.text(),
        format!("id     s1\nunit   {UNIT}\npath   /org/st2/Tools/session/s1\ntoken  {TOKEN}\n")
    );
    let call = world.fake.wait_for(|call| call.starts_with("Open"));
    assert!(call.contains("columns=132 lease=token lease_ttl_ms=90000 rows=24"), "{call}");
    assert_eq!(fs::read_to_string(token_file(&world)).unwrap(), format!("{TOKEN}\n"));
}

#[test]
fn open_as_json_has_the_keys_of_the_bus() {
    let world = World::new();
    let ran = world.run(&["--json", "open", "cat"]);
    assert_eq!(
        ran.json(),
        json!({
            "id": "s1",
            "io": "pty",
            "path": "/org/st2/Tools/session/s1",
            "pid": 4242,
            "reused": false,
            "token": TOKEN,
            "unit": UNIT,
        })
    );
}

#[test]
fn control_uses_the_kept_token_and_the_end_drops_it() {
    let world = opened(&["cat"]);
    assert_eq!(world.run(&["write", "s1", "ls", "--enter"]).status, Some(0));
    let ran = world.run(&["close", "s1", "--timeout", "250ms"]);
    assert_eq!((ran.text(), ran.status), ("SIGHUP\n", Some(0)));
    let calls = world.fake.calls();
    let control: Vec<_> = calls
        .iter()
        .filter(|call| !call.starts_with("Open") && !call.starts_with("List"))
        .collect();
    let renew = format!("RenewLease {TOKEN}");
    assert_eq!(
        control,
        [
            &renew,
            "s1 Write \"ls\"",
            "s1 Submit",
            "s1 Write \"\"",
            &renew,
            "s1 Close timeout_ms=250"
        ]
    );
    assert!(!token_file(&world).exists());
}

#[test]
fn a_token_that_is_given_must_be_right_and_one_that_was_kept_may_be_stale() {
    let world = opened(&["cat"]);
    let ran = world.run(&["kill", "s1", "--token", "wrong"]);
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.contains("the token is unknown or expired"), "{}", ran.stderr);
    assert!(!world.fake.calls().contains(&"s1 Kill".to_owned()));
    fs::write(token_file(&world), "stale\n").unwrap();
    let ran = world.run(&["--json", "kill", "s1"]);
    assert_eq!((&ran.json()["signal"], ran.status), (&json!("SIGKILL"), Some(0)));
    assert!(!token_file(&world).exists());
}

#[test]
fn whoever_is_not_the_owner_is_told_what_to_do() {
    let world = opened(&["other"]);
    for arguments in [&["write", "s1", "x"][..], &["close", "s1"], &["kill", "s1"]] {
        let ran = world.run(arguments);
        assert_eq!(ran.status, Some(1));
        assert_eq!(
            ran.stderr,
            format!(
                "st2-tools: session s1: the owner is :1.99 (give its --token, or end it with: \
                 systemctl --user stop '{UNIT}')\n"
            )
        );
    }
}

#[test]
fn ending_what_is_over_tells_how_it_ended() {
    let world = opened(&["over"]);
    for verb in ["close", "kill"] {
        let ran = world.run(&[verb, "s1"]);
        assert_eq!((ran.text(), ran.status, ran.stderr.as_str()), ("exit 4\n", Some(0), ""));
    }
}

#[test]
fn what_standard_input_holds_is_written_in_pieces_that_fit() {
    let world = opened(&["cat"]);
    let input = vec![b'x'; 100_000];
    let ran = world.run_with(&["write", "s1", "--json"], &input);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let pieces: Vec<usize> = world
        .fake
        .calls()
        .iter()
        .filter_map(|call| call.strip_prefix("s1 Write ").map(|text| text.len() - 2))
        .collect();
    assert!(pieces.iter().all(|piece| *piece <= 64 * 1024), "{pieces:?}");
    assert_eq!(pieces.iter().sum::<usize>(), input.len());
}

#[test]
fn read_gives_bytes_as_they_are() {
    let world = opened(&["text"]);
    let ran = world.run(&["read", "s1"]);
    assert_eq!((ran.text(), ran.status), ("begin end", Some(0)));
    let ran = world.run(&["read", "s1", "--max", "3"]);
    assert_eq!(ran.status, Some(0));
    world.fake.wait_for(|call| call == "s1 Read 0 3 ");
    let ran = world.run(&["read", "s1", "--json"]);
    let whole =
        json!({ "begin": 0, "next": 9, "eof": true, "encoding": "utf-8", "data": "begin end" });
    assert_eq!(ran.json(), whole);
}

#[test]
fn read_is_honest_about_gaps_and_about_what_is_not_text() {
    let world = opened(&["gap"]);
    let ran = world.run(&["read", "s1"]);
    assert_eq!(ran.text(), "rest");
    assert_eq!(ran.stderr, "st2-tools: 100 bytes are no longer retained\n");
    world.run(&["open", "bytes"]);
    assert_eq!(world.run(&["read", "s2"]).stdout, [0xff, 0xfe]);
    let document = world.run(&["read", "s2", "--json"]).json();
    assert_eq!((&document["encoding"], &document["data"]), (&json!("base64"), &json!("//4=")));
}

#[test]
fn list_and_show_are_for_people_and_exact_for_programs() {
    let world = opened(&["cat", "a b"]);
    let ran = world.run(&["list"]);
    assert!(ran.text().starts_with("ID  TOOL     PHASE    OWNER  OPENED"), "{}", ran.text());
    assert!(ran.text().lines().nth(1).unwrap().starts_with("s1  command  running  token"));
    let rows = world.run(&["list", "--json", "--label", "agent=a", "--tool", "command"]).json();
    assert_eq!(rows[0]["BytesOut"], json!(u64::MAX));
    world.fake.wait_for(|call| call == "ListSessions label.agent=a tool=command");
    let ran = world.run(&["show", "s1"]);
    assert!(ran.text().contains("Command   cat 'a b'\n"), "{}", ran.text());
    assert_eq!(world.run(&["show", "/org/st2/Tools/session/s1", "--json"]).json()["Id"], "s1");
}

#[test]
fn a_session_that_is_not_there_is_said_so() {
    let world = World::new();
    for arguments in [&["show", "zz"][..], &["read", "zz"], &["close", "zz"], &["attach", "zz"]] {
        let ran = world.run(arguments);
        assert_ne!(ran.status, Some(0));
        assert_eq!(
            ran.stderr, "st2-tools: session zz: no session has this id (see st2-tools list)\n",
            "{arguments:?}"
        );
    }
    assert_eq!(world.run(&["write", "zz"]).status, Some(1), "also with nothing to write");
    assert_eq!(world.run(&["show", "../etc"]).status, Some(2));
}

#[test]
fn only_run_and_attach_have_the_statuses_of_a_tool() {
    let world = World::new();
    assert_eq!(world.run(&["open", "missing"]).status, Some(1));
    assert_eq!(world.run(&["attach", "zz"]).status, Some(125));
}

#[test]
fn tools_and_explain_say_what_is_there_and_what_is_not() {
    let world = World::new();
    let ran = world.run(&["tools"]);
    assert!(ran.text().contains("git-add  A tool  git add"), "{}", ran.text());
    let last = "disabled: broken: broken.toml: line 3: unknown key \"x\"\n";
    assert!(ran.text().ends_with(last), "{}", ran.text());
    let ran = world.run(&["explain", "git-add", "-p"]);
    assert_eq!(ran.text(), "runs\n  command     git add -p\n\nwithin\n  memory_max  1 GiB\n");
    world.fake.wait_for(|call| call.starts_with("Explain git-add argv=[-p] workspace="));
    assert_eq!(world.run(&["explain", "git-add", "--json"]).json()["memory_max"], json!(1 << 30));
}

#[test]
fn a_reader_of_a_list_may_go_away() {
    let world = World::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = world.command(&["completions", "bash"]);
    let child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let ran = wait(child);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(141), ""));
}

#[test]
fn a_session_on_pipes_is_read_by_stream_and_written_to_its_end() {
    let world = World::new();
    world.run(&["open", "--io", "pipe", "--stdin", "open", "--io-fallback", "--", "apart"]);
    let opened = world.fake.wait_for(|call| call.starts_with("Open"));
    assert!(
        opened.contains("io=pipe io_fallback=true") && opened.contains("stdin=open"),
        "{opened}"
    );
    assert_eq!(world.run(&["write", "s1", "ls", "--enter", "--eof"]).status, Some(0));
    for call in ["s1 Write \"ls\"", "s1 Submit", "s1 Write \"\" eof=true"] {
        world.fake.wait_for(|made| made == call);
    }
    assert_eq!(world.run(&["read", "s1", "--stream", "output"]).text(), "out");
    world.fake.wait_for(|call| call.contains("Read 0") && call.ends_with("stream=output"));
    let ran = world.run(&["read", "s1", "--stream", "stderr"]);
    assert_eq!(
        (ran.text(), ran.stderr.as_str()),
        ("err", "st2-tools: 5 bytes are no longer retained\n")
    );
    let wrong = world.run(&["read", "s1", "--stream", "both"]);
    assert!(wrong.stderr.contains("possible values: output, stderr"), "{}", wrong.stderr);
}
