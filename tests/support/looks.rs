//! What a program of the same user may do to another by the kernel's leave.

use std::process::{Child, Command};

use super::program;

/// Tries to look into a process: those ways that succeed.
pub fn into(pid: u32) -> Vec<&'static str> {
    let file = |name: &str| format!("/proc/{pid}/{name}");
    let ways = [
        ("environment", vec!["read".to_owned(), file("environ")]),
        ("memory", vec!["read-some".to_owned(), file("mem")]),
        ("map of the memory", vec!["read-some".to_owned(), file("maps")]),
        ("list of descriptors", vec!["list".to_owned(), file("fd")]),
        ("place of a descriptor", vec!["read-link".to_owned(), file("fd/0")]),
        ("copy of a descriptor", vec!["take-descriptor".to_owned(), pid.to_string(), "0".into()]),
        ("trace", vec!["seize".to_owned(), pid.to_string()]),
    ];
    ways.into_iter().filter(|(_, words)| succeeds(words)).map(|(way, _)| way).collect()
}

/// All of them.
pub const WAYS: [&str; 7] = [
    "environment",
    "memory",
    "map of the memory",
    "list of descriptors",
    "place of a descriptor",
    "copy of a descriptor",
    "trace",
];

fn succeeds(words: &[String]) -> bool {
    let said = Command::new(program("st2-tools-probe")).arg("try").args(words).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    match said.trim() {
        // EBADF: it was taken, and is not to be written to.
        "ok" | "errno 9" => true,
        "errno 1" | "errno 13" => false,
        other => panic!("{words:?}: {other}"),
    }
}

/// A process like any other of the user's, until it is dropped.
#[derive(Debug)]
pub struct Ordinary(Child);

impl Ordinary {
    pub fn start() -> Self {
        Self(Command::new("sleep").arg("1000").spawn().unwrap())
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Ordinary {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
