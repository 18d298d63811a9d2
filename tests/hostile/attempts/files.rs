//! Files outside of the grants: read, written, executed, by whatever name or descriptor.

use std::{fs, path::Path};

use crate::hostile::{
    attempt::{Attempt, words},
    scene::{LEAK, Scene},
    victims::{TREASURE, Victim},
};

pub fn attempts() -> Vec<Attempt> {
    [written(), named(), linked(), by_descriptor(), read(), executed()]
        .into_iter()
        .flatten()
        .collect()
}

fn written() -> Vec<Attempt> {
    vec![
        Attempt::new("write a new file", |s| words!["write", s.out("new")])
            .trace(|s| s.is_there("new")),
        Attempt::new("append to a file", |s| words!["append", s.file("longer")])
            .trace(|s| s.is_changed("longer")),
        Attempt::new("truncate a file", |s| words!["truncate", s.file("shorter")])
            .trace(|s| s.is_changed("shorter")),
        Attempt::new("remove a file", |s| words!["remove", s.file("removed")])
            .trace(|s| !s.is_there("removed")),
        Attempt::new("make a directory", |s| words!["make-directory", s.out("made")])
            .trace(|s| s.is_there("made")),
        Attempt::new("remove a directory", |s| words!["remove-directory", s.directory("bare")])
            .trace(|s| !s.is_there("bare")),
        Attempt::new("make a symlink", |s| words!["make-symlink", s.out("symlink")])
            .trace(|s| s.is_there("symlink")),
        Attempt::new("make a fifo", |s| words!["make-fifo", s.out("fifo")])
            .trace(|s| s.is_there("fifo")),
        Attempt::new("dump core outside", |s| words!["dump-core", s.directory("core")])
            .trace(|s| fs::read_dir(s.out("core")).unwrap().count() > 0),
        Attempt::new("dump core into the workspace", |s| words!["dump-core", s.inside("")])
            .gap(&["disk-space"]),
        Attempt::new("fill the disk", |s| words!["fill", s.inside("large")]).gap(&["disk-space"]),
    ]
}

fn named() -> Vec<Attempt> {
    vec![
        Attempt::new("write by ..", |s| words!["write", by_dots(s)])
            .trace(|s| s.is_there("by-dots")),
        Attempt::new("write through a symlink of its own", |s| {
            words!["through-symlink", s.inside("symlink"), s.file("by-symlink")]
        })
        .trace(|s| s.is_changed("by-symlink")),
        Attempt::new("write by /proc/self/root", |s| {
            words!["write", format!("/proc/self/root{}", s.out("by-own-root"))]
        })
        .trace(|s| s.is_there("by-own-root")),
        Attempt::new("write by /proc/PID/root of another", |s| {
            let pid = keeper(s);
            words!["write", format!("/proc/{pid}/root{}", s.out("by-root"))]
        })
        .trace(|s| s.is_there("by-root")),
        Attempt::new("write by /proc/PID/cwd of another", |s| {
            words!["write", format!("/proc/{}/cwd/by-directory", keeper(s))]
        })
        .trace(|s| s.is_there("by-directory")),
        Attempt::new("write by /proc/PID/fd of another", |s| {
            words!["append", format!("/proc/{}/fd/9", keeper(s))]
        })
        .trace(|s| s.is_changed("kept")),
    ]
}

/// A path by way of the workspace's parent.
fn by_dots(scene: &Scene) -> String {
    let outside = scene.out("by-dots");
    let rest = Path::new(&outside).strip_prefix(scene.repository().parent().unwrap()).unwrap();
    scene.inside("..") + "/" + rest.to_str().unwrap()
}

/// A process that is outside, with a file open.
fn keeper(scene: &Scene) -> i32 {
    let new = || {
        let kept = scene.file("kept");
        Victim::keeper(Path::new(&kept).parent().unwrap(), "kept")
    };
    scene.victim("keeper", new).pid()
}

fn linked() -> Vec<Attempt> {
    let inside = |scene: &Scene, name: &str| {
        let path = scene.inside(name);
        fs::write(&path, "mine").unwrap();
        path
    };
    vec![
        Attempt::new("hard-link a file in", |s| {
            words!["hard-link", s.file("linked-in"), s.inside("linked-in")]
        })
        .trace(|s| Path::new(&s.inside("linked-in")).exists()),
        Attempt::new("hard-link a file out", move |s| {
            words!["hard-link", inside(s, "linked-out"), s.out("linked-out")]
        })
        .trace(|s| s.is_there("linked-out")),
        Attempt::new("move a file in", |s| {
            words!["rename", s.file("moved-in"), s.inside("moved-in")]
        })
        .trace(|s| !s.is_there("moved-in")),
        Attempt::new("move a file out", move |s| {
            words!["rename", inside(s, "moved-out"), s.out("moved-out")]
        })
        .trace(|s| s.is_there("moved-out")),
        Attempt::new("exchange a file for its own", move |s| {
            words!["exchange", inside(s, "exchanged"), s.file("exchanged")]
        })
        .trace(|s| s.is_changed("exchanged")),
        Attempt::new("name an unnamed file made outside", |s| {
            words!["unnamed", s.directory("unnamed"), s.out("unnamed/named")]
        })
        .trace(|s| s.is_there("unnamed/named")),
        Attempt::new("name an unnamed file outside", |s| {
            words!["unnamed", s.inside(""), s.out("named")]
        })
        .trace(|s| s.is_there("named")),
    ]
}

fn by_descriptor() -> Vec<Attempt> {
    vec![
        Attempt::new("reopen an O_PATH descriptor", |s| words!["reopen", s.file("reopened")])
            .trace(|s| s.is_changed("reopened")),
        Attempt::new("take a descriptor of another (pidfd_getfd)", |s| {
            let new = || {
                let taken = s.file("taken");
                Victim::keeper(Path::new(&taken).parent().unwrap(), "taken")
            };
            words!["take-descriptor", s.victim("taken", new).pid(), 9]
        })
        .trace(|s| s.is_changed("taken")),
        Attempt::new("receive a descriptor from a peer", |s| {
            let (socket, file) = (s.out("peer"), s.file("passed"));
            s.pass(&socket, &file);
            words!["receive-descriptor", socket]
        })
        .trace(|s| s.is_changed("passed")),
        Attempt::new("use a descriptor that was left open", |s| {
            words!["inherited-descriptor", s.out(LEAK)]
        })
        .trace(|s| s.is_changed(LEAK)),
    ]
}

fn read() -> Vec<Attempt> {
    let attacked =
        |s: &Scene, file: &str| format!("{}/{file}", s.sessions["attacked"].tmpdir.display());
    vec![
        Attempt::new("read a file", |s| words!["read-has", s.file("read"), TREASURE]),
        Attempt::new("list a directory", |s| words!["list", s.out("")]),
        Attempt::new("read a key in ~/.ssh", |s| {
            words!["read-has", s.plant_treasure("~/.ssh", "id_*"), TREASURE]
        }),
        Attempt::new("list ~/.ssh", |s| {
            s.plant_treasure("~/.ssh", "listed_*");
            let home = crate::support::keys::variable("HOME");
            words!["list", home.join(".ssh").display()]
        }),
        Attempt::new("read a stored password", |s| {
            words!["read-has", s.plant_treasure("~/.config/git", "credentials-*"), TREASURE]
        }),
        Attempt::new("read TMPDIR of another session", move |s| {
            words!["read-has", attacked(s, "file"), TREASURE]
        }),
        Attempt::new("list TMPDIR of another session", move |s| words!["list", attacked(s, "")]),
        Attempt::shell("find another session in the directory of all TMPDIRs", |s| {
            let others = format!("ls {} | grep -v \"^${{TMPDIR##*/}}$\"", s.tmpdirs.display());
            format!("{others} || {{ echo No such file >&2; exit 1; }}")
        }),
        Attempt::new("write into TMPDIR of another session", move |s| {
            words!["write", attacked(s, "by-tool")]
        })
        .trace(|s| s.sessions["attacked"].tmpdir.join("by-tool").exists()),
        Attempt::new("read the workspace of another session", |s| {
            let workspace = s.sessions["attacked"].workspace();
            words!["read-has", workspace.join("file").display(), TREASURE]
        }),
        Attempt::new("write into the workspace of another session", |s| {
            words!["write", s.sessions["attacked"].workspace().join("by-tool").display()]
        })
        .trace(|s| s.sessions["attacked"].workspace().join("by-tool").exists()),
    ]
}

fn executed() -> Vec<Attempt> {
    let program = |s: &Scene, name: &str| {
        fs::copy("/usr/bin/true", s.out(name)).unwrap();
        s.out(name)
    };
    vec![
        Attempt::new("execute a program", move |s| words!["execute", program(s, "program")]),
        Attempt::shell("execute a program by the loader", move |s| {
            format!(
                "exec $(ls /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.* 2>/dev/null | head -1) {}",
                program(s, "loaded")
            )
        }),
    ]
}
