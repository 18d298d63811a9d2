//! A program run to its end, with what it left.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::{
    process::{Child, Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// How long anything of it may take.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// What a run left.
#[derive(Debug)]
pub struct Ran {
    pub status: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Ran {
    /// Standard output as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    /// Standard output as the one JSON document it must be.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Starts it with its output captured.
pub fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs it to its end.
pub fn finish(command: &mut Command) -> Ran {
    wait(start(command))
}

/// Waits for its end, at most the deadline; then ends it and the test.
pub fn wait(child: Child) -> Ran {
    let pid = Pid::from_raw(child.id().try_into().unwrap());
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(DEADLINE) {
        Ok(output) => ran(output.unwrap()),
        Err(_) => {
            kill(pid, Signal::SIGKILL).unwrap();
            let output = receiver.recv().unwrap().unwrap();
            panic!("it did not end: {:?}", ran(output));
        }
    }
}

fn ran(output: Output) -> Ran {
    Ran {
        status: output.status.code(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
