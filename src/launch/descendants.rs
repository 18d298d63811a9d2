//! Ending everything that descends from a process, where no cgroup says what belongs to it.
//!
//! A descendant cannot leave: when a parent dies its children pass to the nearest child subreaper
//! above, which is the one whose descendants are asked for (prctl(2), `PR_SET_CHILD_SUBREAPER`).
//! Only pidfds are signalled, after the parentage was read again behind the open pidfd, so that a
//! recycled process id never hits a stranger.

use std::{
    collections::BTreeMap,
    fs, io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

use nix::{sys::signal::Signal, unistd::Pid};

/// Longest chain of parents that is followed. Deeper descendants are found one round later, when
/// those above are gone.
const DEPTH_MAX: usize = 1 << 16;

/// What `/proc/PID/stat` says of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    parent: Pid,
    alive: bool,
}

/// Gives the living descendants of a process, itself not among them, the newest first: one that
/// forks and ends, over and over, is only met by who is quick.
///
/// The list is not a snapshot: what is forked meanwhile may be missing, so only an empty list that
/// stays empty while nobody is left who could fork says that there is none.
///
/// # Errors
/// Where `/proc` cannot be listed; that is not the same as no descendants.
pub fn descendants(of: Pid) -> io::Result<Vec<Pid>> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let pid = Pid::from_raw(pid);
        if let Some(stat) = stat(pid) {
            parents.insert(pid, stat);
        }
    }
    let descends = |pid: Pid| is_descendant(pid, of, |pid| parents.get(&pid).copied());
    let alive = parents.iter().rev().filter(|(_, stat)| stat.alive).map(|(pid, _)| *pid);
    Ok(alive.filter(|pid| descends(*pid)).collect())
}

/// One round of ending all living descendants: stops every one, so that none forks any more, then
/// kills every one. Gives how many were found still alive after that; call it again, and reap,
/// until none is.
///
/// # Errors
/// As [`descendants`].
pub fn kill_all(of: Pid) -> io::Result<u32> {
    for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
        for pid in descendants(of)? {
            signal_descendant(pid, of, signal);
        }
    }
    Ok(u32::try_from(descendants(of)?.len()).unwrap_or(u32::MAX))
}

/// Signals a process if it still descends from `of`. One that is gone or somebody else's by now is
/// no failure: the next list tells.
fn signal_descendant(pid: Pid, of: Pid, signal: Signal) {
    if let Ok(pidfd) = open_pidfd(pid)
        && is_descendant(pid, of, stat)
    {
        let (no_info, no_flags) = (std::ptr::null::<libc::siginfo_t>(), 0);
        let (pidfd, signal) = (pidfd.as_raw_fd(), signal as libc::c_int);
        // SAFETY: the pidfd is open; without information the call reads no memory of ours
        // (pidfd_send_signal(2)).
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd, signal, no_info, no_flags) };
    }
}

fn open_pidfd(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open(2) takes numbers by value.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
    match RawFd::try_from(fd) {
        // SAFETY: the kernel has just made this descriptor for us (close-on-exec); nobody else owns
        // it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Follows the parents of `pid` up to `of`.
fn is_descendant(pid: Pid, of: Pid, stat: impl Fn(Pid) -> Option<Stat>) -> bool {
    let parent = |pid: &Pid| stat(*pid).map(|stat| stat.parent);
    std::iter::successors(parent(&pid), parent).take(DEPTH_MAX).any(|ancestor| ancestor == of)
}

fn stat(pid: Pid) -> Option<Stat> {
    parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads the state (3), the parent (4) and the number of threads (20) of proc_pid_stat(5). The
/// second field is a name that the process chose, with whatever bytes it liked: the fields are
/// counted from its last parenthesis.
///
/// A leader that left its threads behind is a zombie, but alive.
fn parse(text: &[u8]) -> Option<Stat> {
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(text.get(end + 1..)?).ok()?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = Pid::from_raw(fields.next()?.parse().ok()?);
    let threads: u32 = fields.nth(15)?.parse().ok()?;
    Some(Stat { parent, alive: !matches!(state, "Z" | "X") || threads > 1 })
}

#[cfg(test)]
mod tests {
    use std::{
        io::Read,
        process::{Child, Command, Stdio},
        time::{Duration, Instant},
    };

    use super::*;

    fn line(name: &str, state: &str, threads: u32) -> Vec<u8> {
        let between = ["0"; 15].join(" ");
        format!("7 ({name}) {state} 5 {between} {threads} 0 0\n").into_bytes()
    }

    #[test]
    fn a_name_cannot_forge_the_fields_after_it() {
        for name in ["sh", "a b", ") Z 1 (", "x) R 99", ""] {
            let stat = parse(&line(name, "S", 1)).unwrap();
            assert_eq!(stat, Stat { parent: Pid::from_raw(5), alive: true }, "{name:?}");
        }
        assert_eq!(parse(b"7 (sh"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn a_zombie_is_dead_unless_threads_of_it_live() {
        assert!(!parse(&line("sh", "Z", 1)).unwrap().alive);
        assert!(parse(&line("sh", "Z", 2)).unwrap().alive);
        assert!(parse(&line("sh", "T", 1)).unwrap().alive);
    }

    #[test]
    fn parents_are_followed_only_as_far_as_they_are_known() {
        let parents = BTreeMap::from([(4, 3), (3, 2), (2, 1), (9, 9)]);
        let stat = |pid: Pid| {
            let parent = Pid::from_raw(*parents.get(&pid.as_raw())?);
            Some(Stat { parent, alive: true })
        };
        let descends = |pid, of| is_descendant(Pid::from_raw(pid), Pid::from_raw(of), stat);
        assert!(descends(4, 2));
        assert!(descends(4, 1));
        assert!(!descends(2, 4));
        assert!(!descends(4, 4));
        assert!(!descends(9, 1));
        assert!(!descends(8, 1));
    }

    /// A shell with two children in sessions of their own, one of which ignores what it can.
    struct Family(Child);

    impl Family {
        fn new() -> Self {
            let script = "setsid sleep 1000 & setsid sh -c 'trap \"\" HUP TERM INT; sleep 1000' & \
                          echo ready; wait";
            let mut shell = Command::new("sh");
            let mut family =
                Self(shell.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap());
            family.0.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
            family
        }

        fn pid(&self) -> Pid {
            Pid::from_raw(i32::try_from(self.0.id()).unwrap())
        }
    }

    impl Drop for Family {
        fn drop(&mut self) {
            let _ = kill_all(self.pid());
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn all_below_are_killed_and_nobody_else() {
        let (mut family, stranger) = (Family::new(), Family::new());
        assert!(!descendants(family.pid()).unwrap().is_empty());
        let before = descendants(stranger.pid()).unwrap().len();

        let deadline = Instant::now() + Duration::from_secs(10);
        while kill_all(family.pid()).unwrap() > 0 {
            assert!(Instant::now() < deadline, "descendants outlive SIGKILL");
        }
        assert!(family.0.wait().is_ok(), "the shell itself was left and saw its children end");
        assert!(descendants(stranger.pid()).unwrap().len() >= before);
        assert!(descendants(Pid::this()).unwrap().contains(&stranger.pid()));
    }
}
