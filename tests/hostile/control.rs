//! The other half of every attempt: a plain program of the same user, in the same place, on a terminal of its own.

use std::{
    fs::File,
    io::Read,
    os::fd::AsFd,
    path::Path,
    process::{Child, Command},
    sync::atomic::{AtomicU32, Ordering},
};

use nix::pty::openpty;

use crate::support::manager::{is_empty, property, systemctl};

/// A program that is not confined. It is in a scope, by which all of it is ended when this is dropped.
pub struct Control {
    unit: String,
    child: Child,
    terminal: File,
}

impl Control {
    /// Starts one in a directory; the file is open in it as descriptor 9.
    pub fn start(place: &Path, leak: &Path, argv: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let unit = format!("control-{}-{number}.scope", std::process::id());
        let pty = openpty(None, None).unwrap();
        let mut command = Command::new("sh");
        command
            .args(["-c", "exec 9>>\"$0\" systemd-run --user --scope --quiet --collect \"$@\""])
            .arg(leak)
            .arg(format!("--unit={unit}"))
            .args(["--", "setsid", "--ctty", "--wait"])
            .args(argv)
            .current_dir(place)
            .stdin(pty.slave.try_clone().unwrap())
            .stdout(pty.slave.try_clone().unwrap())
            .stderr(pty.slave.as_fd().try_clone_to_owned().unwrap());
        let child = command.spawn().unwrap();
        Self { unit, child, terminal: pty.master.into() }
    }

    /// All that it prints until it has ended.
    pub fn output(&mut self) -> String {
        let mut output = Vec::new();
        // The end of a terminal is an error (tty_ioctl(4)).
        let _ = self.terminal.read_to_end(&mut output);
        String::from_utf8_lossy(&output).into_owned()
    }

    /// What it prints until a word comes.
    pub fn output_until(&mut self, word: &str) -> String {
        let mut output = String::new();
        let mut piece = [0; 4096];
        while !output.contains(word) {
            let count = self.terminal.read(&mut piece).unwrap();
            output += &String::from_utf8_lossy(&piece[..count]);
        }
        output
    }

    /// Ends the program that was started, and no other.
    pub fn end_leader(&mut self) {
        // systemd-run(1) and setsid(1) have become it.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Whether anything of it lives.
    pub fn lives(&self) -> bool {
        let group = property(&self.unit, "ControlGroup");
        !group.is_empty() && !is_empty(&Path::new("/sys/fs/cgroup").join(&group[1..]))
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        systemctl(&["kill", "--signal=KILL", "--", &self.unit]);
        systemctl(&["stop", "--", &self.unit]);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
