//! Processes that stay, as hard to end as an unprivileged program can be.

use std::{
    io::{Read, Write},
    time::Duration,
};

use nix::{
    sys::signal::{SigHandler, Signal, kill, signal},
    unistd::{ForkResult, fork, getpid, pipe, setsid},
};

/// Leaves a comet behind.
pub fn leave_comet() {
    leave(|| comet());
}

/// Announces itself and waits for its end.
pub fn hold() -> ! {
    announce();
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Says where in its memory something lies, and waits for its end.
pub fn treasure() -> ! {
    let treasure = *b"treasure";
    println!("address {}", std::hint::black_box(&raw const treasure).addr());
    hold()
}

/// Leaves four behind, and ends once all four are in place: one in its own session, one whose
/// parents are gone, one that ignores every signal that can be ignored, one that is stopped.
pub fn escape() {
    for what in [own_session, orphan, deaf, stopped] {
        leave(|| what());
    }
}

/// Leaves one behind, and waits for its end.
pub fn leave_and_hold(kind: &str) -> ! {
    let what = match kind {
        "own-session" => own_session,
        "orphan" => orphan,
        "deaf" => deaf,
        "stopped" => stopped,
        "comet" => comet,
        "connected" => connected,
        _ => panic!("unknown kind {kind}"),
    };
    leave(|| what());
    hold()
}

fn own_session() -> ! {
    setsid().expect("setsid");
    hold()
}

fn orphan() -> ! {
    setsid().expect("setsid");
    match fork_or_panic() {
        ForkResult::Child => hold(),
        ForkResult::Parent { .. } => std::process::exit(0),
    }
}

/// Keeps a connection to the socket that the environment names, granted as it was.
fn connected() -> ! {
    setsid().expect("setsid");
    let socket = std::env::var_os("SSH_AUTH_SOCK").expect("a socket");
    let _connection = std::os::unix::net::UnixStream::connect(socket).expect("a connection");
    hold()
}

fn deaf() -> ! {
    setsid().expect("setsid");
    for number in 1..32 {
        if let Ok(number) = Signal::try_from(number) {
            // SAFETY: ignoring installs no handler.
            let _ = unsafe { signal(number, SigHandler::SigIgn) };
        }
    }
    hold()
}

fn stopped() -> ! {
    setsid().expect("setsid");
    announce();
    kill(getpid(), Signal::SIGSTOP).expect("stop");
    hold()
}

/// Forks and ends, over and over, in sessions of its own: no process of it lives for long.
pub fn comet() -> ! {
    // Not to end with the session that it comes from.
    setsid().expect("setsid");
    announce();
    loop {
        if let ForkResult::Parent { .. } = fork_or_panic() {
            std::process::exit(0);
        }
        setsid().expect("setsid");
    }
}

/// Ends itself by a signal.
pub fn die(number: i32) -> ! {
    kill(getpid(), Signal::try_from(number).expect("a signal")).expect("kill");
    hold()
}

/// Runs `what` in a child and comes back once it (or whoever it left) has announced itself.
fn leave(what: impl FnOnce()) {
    let (reader, writer) = pipe().expect("pipe");
    match fork_or_panic() {
        ForkResult::Child => {
            drop(reader);
            READY.set(writer.into()).expect("set once");
            what();
            std::process::exit(0)
        }
        ForkResult::Parent { .. } => {
            drop(writer);
            std::fs::File::from(reader).read_exact(&mut [0]).expect("the child is in place");
        }
    }
}

static READY: std::sync::OnceLock<std::fs::File> = std::sync::OnceLock::new();

fn announce() {
    println!("pid {}", getpid());
    if let Some(mut ready) = READY.get() {
        ready.write_all(&[0]).expect("the parent waits");
    }
}

fn fork_or_panic() -> ForkResult {
    // SAFETY: the probe has one thread.
    unsafe { fork() }.expect("fork")
}
