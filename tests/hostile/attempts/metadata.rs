//! What can be done to a file outside without opening it. No tier but `mounts` closes it: Landlock does not know of it.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt},
    process::Command,
};

use crate::hostile::{
    attempt::{Attempt, words},
    scene::Scene,
};

const GAP: &str = "metadata-outside";

pub fn attempts() -> Vec<Attempt> {
    let mode = |s: &Scene, name: &str| fs::metadata(s.out(name)).unwrap().mode() & 0o7777;
    let all = vec![
        Attempt::new("change a mode", |s| words!["change-mode", s.file("mode")])
            .trace(move |s| mode(s, "mode") == 0o4777),
        Attempt::new("change a mode by an O_PATH descriptor", |s| {
            words!["change-mode-by-descriptor", s.file("mode-2")]
        })
        .trace(move |s| mode(s, "mode-2") == 0o4777),
        Attempt::new("change a group, which takes the setuid bit", |s| {
            let file = s.file("group");
            fs::set_permissions(&file, Permissions::from_mode(0o4755)).unwrap();
            words!["change-group", file]
        })
        .trace(move |s| mode(s, "group") == 0o755),
        Attempt::new("change times", |s| words!["change-times", s.file("times")])
            .trace(|s| fs::metadata(s.out("times")).unwrap().mtime() == 1_000_000_000),
        Attempt::new("set an attribute", |s| words!["set-attribute", s.file("set")])
            .trace(|s| attribute(s, "set")),
        Attempt::new("remove an attribute", |s| words!["remove-attribute", marked(s, "unmarked")])
            .trace(|s| !attribute(s, "unmarked")),
        Attempt::new("read an attribute", |s| words!["get-attribute", marked(s, "marked")]),
        Attempt::new("see a file's size and times", |s| words!["see", s.file("looked-at")]),
        Attempt::new("read where a symlink leads", |s| {
            std::os::unix::fs::symlink("a-secret", s.out("leads")).unwrap();
            words!["read-link", s.out("leads")]
        }),
        Attempt::new("watch what happens to a file", |s| words!["watch", s.file("watched")]),
    ];
    let mut all: Vec<_> = all.into_iter().map(|attempt| attempt.gap(&[GAP])).collect();
    all.push(Attempt::new("watch what happens in a directory (fanotify)", |s| {
        words!["watch-all", s.directory("watched-directory")]
    }));
    all
}

fn probe(scene: &Scene, word: &str, name: &str) -> bool {
    let output = Command::new(&scene.probe).args(["try", word, &scene.out(name)]).output().unwrap();
    output.stdout == b"ok\n"
}

/// Whether a file has the attribute.
fn attribute(scene: &Scene, name: &str) -> bool {
    probe(scene, "get-attribute", name)
}

/// A file that has it.
fn marked(scene: &Scene, name: &str) -> String {
    let file = scene.file(name);
    assert!(probe(scene, "set-attribute", name));
    file
}
