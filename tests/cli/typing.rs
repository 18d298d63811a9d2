//! The subcommands that type, share, and follow what happens.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::json;

use crate::program::World;

/// A world with one session of this play, opened by the command.
fn opened(play: &str) -> World {
    let world = World::new();
    let ran = world.run(&["open", "--", play]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    world
}

/// The calls that type, in order.
fn typed(world: &World) -> Vec<String> {
    let verbs = ["SendKeys", "Paste", "Submit", "Write", "Share"];
    let is_one = |call: &String| verbs.iter().any(|verb| call.starts_with(&format!("s1 {verb}")));
    world.fake.calls().into_iter().filter(is_one).collect()
}

#[test]
fn keys_are_pressed_by_name_once_there_is_room() {
    let world = opened("full");
    let ran = world.run(&["keys", "s1", "--json", "C-c", "-", "Enter"]);
    assert_eq!((ran.json(), ran.status), (json!({ "keys": 3 }), Some(0)));
    assert_eq!(typed(&world), ["s1 SendKeys C-c,-,Enter ", "s1 SendKeys C-c,-,Enter "]);
}

#[test]
fn an_unknown_key_is_named() {
    let world = opened("cat");
    let ran = world.run(&["keys", "s1", "nosuchkey"]);
    assert_eq!(ran.status, Some(1));
    let said = "st2-tools: session s1: key \"nosuchkey\" is no name of a key";
    assert!(ran.stderr.starts_with(said), "{}", ran.stderr);
    assert_eq!(world.run(&["keys", "s1"]).status, Some(2), "no key is no command");
}

#[test]
fn a_text_is_pasted_whole_and_entered_by_itself() {
    let world = opened("cat");
    let ran = world.run_with(&["paste", "s1", "--enter"], "a\nb".as_bytes());
    assert_eq!((ran.text(), ran.status), ("", Some(0)), "{}", ran.stderr);
    let ran = world.run(&["paste", "s1", "--bracketed", "off", "--json", "ü"]);
    assert_eq!(ran.json(), json!({ "pasted": 2 }));
    let calls = ["s1 Paste \"a\\nb\" bracketed=auto", "s1 Submit", "s1 Paste \"ü\" bracketed=off"];
    assert_eq!(typed(&world), calls);
    let ran = world.run_with(&["paste", "s1"], &[0xff]);
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.contains("UTF-8"), "{}", ran.stderr);
}

#[test]
fn a_share_is_printed_and_shown_with_each_call() {
    let world = opened("cat");
    assert_eq!(world.run(&["share", "s1"]).text(), "share-s1-observe\n");
    let ran = world.run(&["share", "s1", "--control", "--json"]);
    assert_eq!(ran.json(), json!({ "token": "share-s1-control" }));
    let renewals = world.fake.calls().iter().filter(|call| call.starts_with("Renew")).count();
    let ran = world.run(&["write", "s1", "ls", "--enter", "--token", "share-s1-control"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    world.run(&["read", "s1", "--token", "share-s1-observe"]);
    let calls = world.fake.calls();
    assert_eq!(calls.iter().filter(|call| call.starts_with("Renew")).count(), renewals);
    assert_eq!(
        typed(&world)[2..],
        [
            "s1 Write \"ls\" token=share-s1-control",
            "s1 SendKeys enter token=share-s1-control",
            "s1 Write \"\" token=share-s1-control",
        ]
    );
    world
        .fake
        .wait_for(|call| call.starts_with("s1 Read 0 ") && call.ends_with("share-s1-observe"));
}

#[test]
fn on_pipes_a_share_ends_the_line() {
    let world = opened("apart");
    let ran = world.run(&["write", "s1", "--enter", "--token", "share-s1-control", "ls"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let calls = [
        "s1 Write \"ls\" token=share-s1-control",
        "s1 SendKeys enter token=share-s1-control",
        "s1 Write \"\\n\" token=share-s1-control",
        "s1 Write \"\" token=share-s1-control",
    ];
    assert_eq!(typed(&world), calls);
}

#[test]
fn events_are_listed_from_a_number_on() {
    let world = World::new();
    let ran = world.run(&["events"]);
    let lines: Vec<_> = ran.text().lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].starts_with("2  ") && lines[0].ends_with("session-idle  s1  command  task=t1")
    );
    let ran = world.run(&["events", "--after", "9"]);
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.starts_with("st2-tools: no event 9 was yet"), "{}", ran.stderr);
}

#[test]
fn events_are_followed_as_they_happen_one_document_a_line() {
    let world = World::new();
    let mut command = world.command(&["events", "--json", "--follow", "--after", "2"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for seq in [3, 4] {
        let event: serde_json::Value =
            serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!((&event["seq"], &event["labels"]["task"]), (&json!(seq), &json!("t1")));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
