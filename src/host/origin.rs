//! Whether a process belongs to one of our sessions, read from /proc (proc(5)).

use std::{fs, process};

/// Deepest ancestry followed; a process tree deeper than that is taken for one of ours.
const DEPTH: usize = 4096;

/// Whether a process runs inside one of our sessions: in a scope or cgroup of ours, or beneath a launcher of this
/// broker. A process that cannot be found is judged to, since nothing is known in its favour.
#[must_use]
pub fn is_inside(pid: u32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/cgroup")) {
        Ok(cgroups) => cgroups.lines().any(names_session) || descends_from_broker(pid),
        Err(_) => true,
    }
}

/// Whether a line of /proc/PID/cgroup has a session's scope, or a portable session's cgroup, in its path.
fn names_session(line: &str) -> bool {
    let path = line.splitn(3, ':').nth(2).unwrap_or_default();
    path.split('/').any(|part| {
        let scope = part.starts_with("app-st2tools-") && part.ends_with(".scope");
        scope || part.starts_with("st2tools-")
    })
}

/// The broker spawns nothing but launchers.
fn descends_from_broker(pid: u32) -> bool {
    let mut pid = pid;
    for _ in 0..DEPTH {
        match parent(pid) {
            Some(parent) if parent == process::id() => return true,
            Some(0 | 1) => return false,
            Some(parent) => pid = parent,
            None => return true,
        }
    }
    true
}

/// The fourth field of /proc/PID/stat; the second, the name, may hold anything but ends with the last parenthesis.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_is_inside_and_the_broker_itself_is_not() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let (own, its) = (is_inside(process::id()), is_inside(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!own && its);
        assert!(is_inside(u32::MAX), "a process that is not there");
    }

    #[test]
    fn a_scope_of_ours_is_known_by_its_name() {
        let line = |path: &str| names_session(&format!("0::{path}"));
        assert!(line(
            "/user.slice/user@1.service/app.slice/app-st2tools.slice/app-st2tools-sh-a1.scope"
        ));
        assert!(line("/st2tools-a1"));
        assert!(!line("/user.slice/user@1.service/app.slice/st2-tools.service"));
        assert!(!line("/user.slice/app-foot-1.scope"));
    }
}
