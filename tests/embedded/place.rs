//! Where one test runs the command, and what it may have left there.

use std::{
    env, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::unistd::Pid;
use tempfile::TempDir;

use crate::{
    program::{DEADLINE, Ran, finish},
    support,
};

/// A workspace, and the directory for temporary directories.
pub struct Place {
    workspace: TempDir,
    temp: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { workspace: support::workspace(), temp: tempfile::tempdir().unwrap() }
    }

    pub fn workspace(&self) -> &Path {
        self.workspace.path()
    }

    /// The command, its whole environment known: nothing in it leads to a bus or a manager.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(support::program("st2-tools"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap())
            .env("HOME", home())
            .env("TMPDIR", self.temp.path())
            .env("ST2_TOOLS_POLICY_PATH", support::policy())
            .current_dir(self.workspace());
        command
    }

    /// Runs it to its end, with nothing on standard input.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        finish(self.command(arguments).stdin(Stdio::null()))
    }

    /// The probe, where a tool may execute it.
    pub fn probe(&self) -> String {
        let copy = self.workspace().join("probe");
        if !copy.exists() {
            // Not by this program: what it starts meanwhile would hold the file open for writing, and nobody could
            // execute it.
            let copied =
                Command::new("cp").arg(support::program("st2-tools-probe")).arg(&copy).status();
            assert!(copied.unwrap().success());
        }
        copy.to_str().unwrap().to_owned()
    }

    /// Processes that run in this place, by their directory or their `TMPDIR`: those of its tools, and their supervisors.
    pub fn processes(&self) -> Vec<Pid> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.filter(|pid| self.holds(*pid)).map(Pid::from_raw).collect()
    }

    fn holds(&self, pid: i32) -> bool {
        let there = |path: PathBuf| path.starts_with(self.workspace());
        let directory = fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(there);
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let variable = format!("TMPDIR={}", self.temp.path().display());
        let ours = environment.split(|byte| *byte == 0);
        let mut ours = ours.filter(|one| one.starts_with(variable.as_bytes()));
        support::lives(pid) && (directory || ours.next().is_some())
    }

    /// Waits until no process, directory or control group of that command is left.
    pub fn nothing_is_left_of(&self, command: Pid) {
        until("every process is gone", || self.processes().is_empty());
        assert_eq!(self.temporary(), Vec::<PathBuf>::new());
        assert_eq!(groups(command), Vec::<PathBuf>::new());
    }

    /// What is in the directory for temporary directories.
    pub fn temporary(&self) -> Vec<PathBuf> {
        list(self.temp.path())
    }
}

/// The home directory of whoever runs the tests.
pub fn home() -> PathBuf {
    env::var_os("HOME").unwrap().into()
}

/// Waits until a condition holds that no event tells of.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {DEADLINE:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Our own control group, which is that of the commands we start.
fn own_group() -> PathBuf {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap();
    Path::new("/sys/fs/cgroup").join(own)
}

/// Control groups that this command made for its sessions.
fn groups(command: Pid) -> Vec<PathBuf> {
    let prefix = format!("st2tools-{command}-");
    let ours = |path: &PathBuf| {
        path.file_name().unwrap().to_str().is_some_and(|name| name.starts_with(&prefix))
    };
    list(&own_group()).into_iter().filter(ours).collect()
}

/// Whether whoever runs the tests may make control groups: root may, and who was given the group.
pub fn can_make_groups() -> bool {
    let user = nix::unistd::geteuid();
    user.is_root() || fs::metadata(own_group()).unwrap().uid() == user.as_raw()
}

fn list(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}
