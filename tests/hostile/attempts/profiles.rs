//! Beyond the profiles for builds, for coding agents, and for reading only.

use std::path::Path;

use super::sockets::by_path;
use crate::{
    hostile::{
        attempt::{Attempt, words},
        from::From,
        scene::{Scene, text},
        victims::TREASURE,
    },
    support::listeners::Listener,
};

pub fn attempts() -> Vec<Attempt> {
    let from = |attempts: Vec<Attempt>, from| attempts.into_iter().map(move |a| a.from(from));
    from(builds(), From::Builder)
        .chain(from(coders(), From::Coder))
        .chain(from(readers(), From::Reader))
        .collect()
}

fn written(name: &'static str, directory: &'static str, file: &'static str) -> Attempt {
    Attempt::new(name, move |s| words!["write", s.plant(directory, file)])
        .trace(move |s| s.is_planted(directory, file))
}

fn read(name: &'static str, directory: &'static str, file: &'static str) -> Attempt {
    Attempt::new(name, move |s| words!["read-has", s.plant_treasure(directory, file), TREASURE])
}

fn builds() -> Vec<Attempt> {
    vec![
        written("build: program of cargo", "~/.cargo/bin", "by-build-*"),
        written("build: configuration of cargo", "~/.cargo", "config.toml"),
        read("build: token of cargo", "~/.cargo", "credentials.toml"),
        written("build: toolchain", "~/.rustup/toolchains/any/bin", "by-build-*"),
        written("build: program of go", "~/go/bin", "by-build-*"),
        written("build: configuration of npm", "~/", ".npmrc"),
        read("build: token of npm", "~/", ".npmrc-*"),
        read("build: password of pip", "~/.config/pip", "pip-*.conf"),
        read("build: a file in the home directory", "~/", "build-*"),
        written("build: package in a cache", "~/.cargo/registry", "by-build-*")
            .gap(&["outside-code"]),
        by_path("build: the user bus by its path", "by-path-of-build"),
    ]
}

fn coders() -> Vec<Attempt> {
    vec![
        written("agent: its own directory", "~/.coder", "by-coder-*").gap(&["outside-code"]),
        read("agent: token of another agent", "~/.claude", ".credentials-*.json"),
        read("agent: token of yet another agent", "~/.codex", "auth-*.json"),
        written("agent: settings of another agent", "~/.claude", "settings-*.json"),
        written("agent: message in the parent's store", "~/.local/state/st2/messages", "coder-*"),
        written(
            "agent: tool of the broker's policy",
            "~/.config/st2-tools/tools.d",
            "coder-*.toml",
        ),
        read("agent: key in ~/.ssh", "~/.ssh", "coder_*"),
        Attempt::new("agent: TCP to a port that is not granted", |s| {
            let (listener, address) = Listener::tcp("127.0.0.1:0");
            s.listen("coder-tcp", listener);
            words!["send-tcp", address]
        })
        .trace(|s| s.heard("coder-tcp")),
        Attempt::new("agent: UDP", |s| {
            let (listener, address) = Listener::udp("127.0.0.1:0");
            s.listen("coder-udp", listener);
            words!["send-udp", address]
        })
        .trace(|s| s.heard("coder-udp"))
        .gap(&["udp-open"]),
        Attempt::new("agent: a TCP listener of its own", |_| words!["listen-everywhere"]),
        by_path("agent: the user bus by its path", "by-path-of-coder"),
    ]
}

fn readers() -> Vec<Attempt> {
    let path = |s: &Scene, name: &str| text(&s.place(From::Reader).join(name));
    let file = move |s: &Scene, name: &str| {
        std::fs::write(path(s, name), TREASURE).unwrap();
        path(s, name)
    };
    let changed = move |s: &Scene, name: &str| {
        std::fs::read_to_string(path(s, name)).map_or(true, |text| text != TREASURE)
    };
    vec![
        Attempt::new("reader: write a new file in the workspace", move |s| {
            words!["write", path(s, "new")]
        })
        .trace(move |s| Path::new(&path(s, "new")).exists()),
        Attempt::new("reader: append to a file of the workspace", move |s| {
            words!["append", file(s, "longer")]
        })
        .trace(move |s| changed(s, "longer")),
        Attempt::new("reader: truncate a file of the workspace", move |s| {
            words!["truncate", file(s, "shorter")]
        })
        .trace(move |s| changed(s, "shorter")),
        Attempt::new("reader: remove a file of the workspace", move |s| {
            words!["remove", file(s, "removed")]
        })
        .trace(move |s| changed(s, "removed")),
        Attempt::new("reader: plant a repository in the workspace", move |s| {
            words!["plant-repository", s.place(From::Reader).display()]
        })
        .trace(move |s| Path::new(&path(s, ".git/config")).exists()),
        Attempt::new("reader: change a mode in the workspace", move |s| {
            words!["change-mode", file(s, "mode")]
        })
        .trace(move |s| {
            use std::os::unix::fs::PermissionsExt;
            std::fs::metadata(path(s, "mode")).unwrap().permissions().mode() & 0o7777 == 0o4777
        })
        .gap(&["metadata-outside"]),
    ]
}
