//! Namespaces, other entries to the kernel, terminals, what is inherited.

use crate::hostile::{
    attempt::{Attempt, words},
    scene::Scene,
    side::NEVER,
};

pub fn attempts() -> Vec<Attempt> {
    [namespaces(), entries(), terminals(), inherited()].into_iter().flatten().collect()
}

fn namespaces() -> Vec<Attempt> {
    let clone = |flags: i32| words!["call", libc::SYS_clone, flags | libc::SIGCHLD];
    vec![
        Attempt::new("a user namespace", |_| words!["new-user-namespace"]),
        Attempt::new("a user namespace by clone", move |_| clone(libc::CLONE_NEWUSER)),
        Attempt::new("a mount in a namespace of its own", |s| {
            words!["remount", s.directory("remounted"), s.plain().display()]
        })
        .trace(|s| s.is_there("remounted/by-remount")),
    ]
}

fn entries() -> Vec<Attempt> {
    let mut attempts = vec![
        Attempt::new("io_uring", |_| words!["io-uring"]),
        Attempt::new("userfaultfd", |_| words!["call", libc::SYS_userfaultfd, 1]),
        Attempt::new("another execution domain", |_| words!["change-execution-domain"]),
        Attempt::new("a program that runs as its owner, root", |_| words!["gain-user"]),
    ];
    if cfg!(target_arch = "x86_64") {
        attempts.push(Attempt::new("the 32-bit entry", |_| words!["int80"]));
        attempts.push(Attempt::new("the x32 entry", |_| words!["x32"]).excuse(libc::ENOSYS));
    }
    attempts
}

fn terminals() -> Vec<Attempt> {
    vec![
        Attempt::new("type into its own terminal", |_| words!["tiocsti"]),
        Attempt::new("type, with bits above the request", |_| words!["tiocsti-wide"]),
        Attempt::new("change its terminal's line discipline (TIOCSETD)", |_| {
            words!["set-line-discipline"]
        }),
        Attempt::new("type into a terminal that is nobody's", |s| {
            words!["type-elsewhere", terminal(s)]
        }),
        Attempt::new("write on the terminal it was started from", |s| {
            words!["put", terminal(s), "defaced"]
        }),
        Attempt::new("make a terminal", |_| words!["open-terminal", "/dev/ptmx"]),
    ]
}

/// A terminal of the test's own; gives its path.
pub fn terminal(scene: &Scene) -> String {
    let pty = nix::pty::openpty(None, None).unwrap();
    let path = nix::unistd::ttyname(&pty.slave).unwrap();
    scene.keep_terminal(pty);
    path.to_str().unwrap().to_owned()
}

fn inherited() -> Vec<Attempt> {
    let mut words = words!["find-variable", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"];
    words.extend(NEVER.map(str::to_owned));
    vec![Attempt::new("a variable of the parent's", move |_| words.clone())]
}
