//! Processes of the same user, to be attacked.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};

use crate::support::{lives, program, wait_for};

/// What is worth stealing.
pub const TREASURE: &str = "treasure";

/// A process that runs until it is dropped, if nobody ends it.
pub struct Victim {
    child: Child,
    /// Where its treasure lies in its memory, if it has one.
    pub address: usize,
}

impl Victim {
    /// One that does nothing, with a treasure in its environment.
    pub fn sleeper() -> Self {
        Self::script("exec sleep 1000", &[])
    }

    /// One that works in a directory, and has a file of it open as descriptor 9.
    pub fn keeper(directory: &Path, file: &str) -> Self {
        Self::script(&format!("cd \"$1\"; exec 9>>{file} sleep 1000"), &[directory])
    }

    /// One that is in a user namespace of its own.
    pub fn namespaced() -> Self {
        Self::script("exec unshare --user sleep 1000", &[])
    }

    /// One that leaves a mark when it hears SIGURG, and another one when it hears SIGUSR1.
    pub fn alert(mark: &Path, settled: &Path) -> Self {
        let script = "trap 'touch \"$1\"' URG; trap 'touch \"$2\"' USR1; \
                      while :; do sleep 1000 & wait; done";
        Self::script(script, &[mark, settled])
    }

    /// One with a treasure in its memory.
    pub fn treasurer() -> Self {
        let mut command = Command::new(program("st2-tools-probe"));
        command.arg("treasure").stdout(Stdio::piped());
        let mut victim = Self::spawn(command);
        let mut output = BufReader::new(victim.child.stdout.take().unwrap());
        victim.address = number(&mut output, "address ");
        // That it waits is said last.
        number(&mut output, "pid ");
        victim
    }

    fn script(script: &str, arguments: &[&Path]) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).args(arguments).env("SECRET", TREASURE);
        let victim = Self::spawn(command);
        // Its last program is there once the shell has done all else.
        let pid = victim.pid();
        let sleeps = || {
            let children = format!("/proc/{pid}/task/{pid}/children");
            let children = fs::read_to_string(children).unwrap_or_default();
            let all = children.split_whitespace().map(str::to_owned).chain([pid.to_string()]);
            all.into_iter().any(|pid| {
                fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n")
            })
        };
        wait_for("a victim", sleeps);
        victim
    }

    fn spawn(mut command: Command) -> Self {
        let child = command.process_group(0).stdin(Stdio::null()).spawn().unwrap();
        Self { child, address: 0 }
    }

    /// Its number.
    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Whether somebody ended it.
    pub fn is_dead(&self) -> bool {
        !lives(self.pid())
    }

    /// A line of one of its files in /proc that begins with this.
    pub fn shows(&self, file: &str, beginning: &str) -> String {
        let text = fs::read_to_string(format!("/proc/{}/{file}", self.pid())).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(beginning));
        line.unwrap_or_default().to_owned()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        nix::sys::signal::kill(Pid::from_raw(self.pid()), signal).unwrap();
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = killpg(Pid::from_raw(self.pid()), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// The number after a beginning, in the first line that has it.
fn number(output: &mut BufReader<ChildStdout>, beginning: &str) -> usize {
    let line = output.lines().map(Result::unwrap).find(|line| line.starts_with(beginning));
    line.expect("it says so").trim_start_matches(beginning).parse().unwrap()
}
