//! The user manager and the control groups of the bed, as systemctl(1) and the kernel show them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
};

/// Asks the user manager; gives what it prints.
pub fn systemctl(arguments: &[&str]) -> String {
    let output = Command::new("systemctl").arg("--user").args(arguments).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A property of a unit, as systemctl prints it.
pub fn property(unit: &str, name: &str) -> String {
    systemctl(&["show", "--value", "-p", name, "--", unit])
}

/// The names of all units, in whatever state, that match a pattern.
pub fn units(pattern: &str) -> Vec<String> {
    let listed = systemctl(&["list-units", "--all", "--plain", "--no-legend", pattern]);
    listed.lines().filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
}

/// The units of sessions.
pub fn session_units() -> Vec<String> {
    units("app-st2tools-*")
}

/// The directory of the control group of a process.
pub fn group_of(pid: i32) -> PathBuf {
    let table = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let name = table.lines().find_map(|line| line.strip_prefix("0::/")).unwrap();
    Path::new("/sys/fs/cgroup").join(name)
}

/// The directory of the control group of a unit that is active.
pub fn group(unit: &str) -> PathBuf {
    let name = property(unit, "ControlGroup");
    assert!(!name.is_empty(), "{unit} has no control group");
    Path::new("/sys/fs/cgroup").join(name.trim_start_matches('/'))
}

/// The processes in a control group.
pub fn members(group: &Path) -> Vec<i32> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().map(|pid| pid.parse().unwrap()).collect()
}

/// Whether a control group is gone, or nothing lives in it.
pub fn is_empty(group: &Path) -> bool {
    fs::read_to_string(group.join("cgroup.events"))
        .map_or(true, |events| events.contains("populated 0"))
}

/// A unit of somebody else's, which runs until it is dropped.
#[derive(Debug)]
pub struct Foreign {
    /// Its name.
    pub unit: String,
    /// systemd-run, which becomes the program of a scope.
    starter: Child,
}

impl Foreign {
    /// Starts one that runs a shell script; `options` are those of systemd-run(1).
    pub fn start(unit: &str, options: &[&str], script: &str) -> Self {
        let mut command = Command::new("systemd-run");
        command.args(["--user", "--quiet", "--collect", &format!("--unit={unit}")]);
        command.args(options).args(["--", "sh", "-c", script]);
        let mut starter = command.spawn().unwrap();
        if !options.contains(&"--scope") {
            assert!(starter.wait().unwrap().success(), "{unit} does not start");
        }
        Self { unit: unit.to_owned(), starter }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        systemctl(&["kill", "--signal=KILL", "--", &self.unit]);
        systemctl(&["stop", "--", &self.unit]);
        let _ = self.starter.wait();
    }
}
