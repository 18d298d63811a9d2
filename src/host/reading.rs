//! Whether a program waits for what is typed into its terminal, as `/proc` shows it.
//!
//! The system call that a thread sleeps in, with its arguments, is in `/proc/PID/task/TID/syscall` (proc(5)): a read(2) of
//! the terminal is certain. One that waits for several descriptors counts where the terminal is among them: as epoll
//! tells, or, since the sets of poll(2) and select(2) are in the program's memory, where it is open for more than output.
//! Where the kernel shows no system call (it may be built without, or Yama forbids it) a sleeping program counts.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use nix::libc;

use super::cgroup::Cgroup;

/// Descriptors and threads of one process that are looked at.
const MOST: usize = 1024;

/// Calls that read one descriptor, the first argument.
const READS: [libc::c_long; 2] = [libc::SYS_read, libc::SYS_readv];

/// Calls that wait for the descriptors of the first argument, an epoll(7) instance.
const EPOLL_WAITS: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
];

/// Calls that wait for descriptors in the program's memory.
const POLLS: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
];

/// Whether a process of this process group reads its controlling terminal. Takes a look at each process of the group's
/// session; at every process, where the group has lost its leader.
#[must_use]
pub fn group_reads(group: i32) -> bool {
    beside(group)
        .unwrap_or_else(everybody)
        .into_iter()
        .filter_map(Process::of)
        .any(|process| process.group == group && process.terminal != 0 && process.reads())
}

/// The processes of the control group that a group's leader is in, which no tool leaves.
fn beside(group: i32) -> Option<Vec<PathBuf>> {
    let members = Cgroup::of(group).and_then(|cgroup| cgroup.members()).ok()?;
    let members = members.into_iter().map(|pid| Path::new("/proc").join(pid.to_string()));
    Some(members.collect()).filter(|members: &Vec<_>| !members.is_empty())
}

fn everybody() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let is_number = |name: &OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    let processes = entries.flatten().filter(|entry| is_number(&entry.file_name()));
    processes.map(|entry| entry.path()).collect()
}

/// What is known of a process.
struct Process {
    directory: PathBuf,
    group: i32,
    /// Its controlling terminal's device; 0 where there is none.
    terminal: u64,
    sleeps: bool,
}

/// What a thread does.
enum Doing {
    /// A system call, with its first argument.
    Call(libc::c_long, u64),
    /// Something else than to wait in one.
    Else,
    /// The kernel does not tell.
    Unknown,
}

impl Process {
    fn of(directory: PathBuf) -> Option<Self> {
        let stat = fs::read_to_string(directory.join("stat")).ok()?;
        // The name, in brackets, may hold anything.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let sleeps = fields.next()? == "S";
        let group = fields.nth(1)?.parse().ok()?;
        let terminal = fields.nth(1)?.parse().ok().map(device)?;
        Some(Self { directory, group, terminal, sleeps })
    }

    fn reads(&self) -> bool {
        let Ok(threads) = fs::read_dir(self.directory.join("task")) else { return false };
        threads.flatten().take(MOST).any(|thread| match doing(&thread.path()) {
            Doing::Call(call, fd) if READS.contains(&call) => self.is_terminal(fd),
            Doing::Call(call, fd) if EPOLL_WAITS.contains(&call) => self.polls_terminal(fd),
            Doing::Call(call, _) if POLLS.contains(&call) => self.has_terminal_for_input(),
            Doing::Call(..) | Doing::Else => false,
            Doing::Unknown => self.sleeps,
        })
    }

    fn is_terminal(&self, fd: u64) -> bool {
        /// `/dev/tty`: the controlling terminal by another name.
        const TTY: (u32, u32) = (5, 0);
        let found = fs::metadata(self.directory.join(format!("fd/{fd}")));
        found
            .is_ok_and(|found| [self.terminal, libc::makedev(TTY.0, TTY.1)].contains(&found.rdev()))
    }

    /// Whether the terminal is among the descriptors of an epoll instance (proc_pid_fdinfo(5), `tfd`).
    fn polls_terminal(&self, epoll: u64) -> bool {
        let info = fs::read_to_string(self.directory.join(format!("fdinfo/{epoll}")));
        let info = info.unwrap_or_default();
        let watched = info.lines().filter_map(|line| line.strip_prefix("tfd:"));
        let numbers = watched.filter_map(|rest| rest.split_ascii_whitespace().next()?.parse().ok());
        numbers.take(MOST).any(|fd| self.is_terminal(fd))
    }

    /// Whether the terminal is open as another than standard output and error.
    fn has_terminal_for_input(&self) -> bool {
        let Ok(open) = fs::read_dir(self.directory.join("fd")) else { return false };
        let numbers = open.flatten().filter_map(|fd| fd.file_name().to_str()?.parse().ok());
        numbers.take(MOST).any(|fd: u64| ![1, 2].contains(&fd) && self.is_terminal(fd))
    }
}

fn doing(thread: &Path) -> Doing {
    let Ok(text) = fs::read_to_string(thread.join("syscall")) else { return Doing::Unknown };
    let mut fields = text.split_ascii_whitespace();
    let call = fields.next().and_then(|number| number.parse().ok());
    let hexadecimal = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    match (call, fields.next().and_then(hexadecimal)) {
        (Some(call), Some(argument)) if call >= 0 => Doing::Call(call, argument),
        _ => Doing::Else,
    }
}

/// A device's number as stat(2) gives it, of one as proc_pid_stat(5) does (`tty_nr`).
fn device(number: i32) -> u64 {
    let number = number.cast_unsigned();
    libc::makedev((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xf_ff00))
}

#[cfg(test)]
mod tests {
    use std::{
        os::fd::{AsFd, OwnedFd},
        process::{Child, Command, Stdio},
        time::{Duration, Instant},
    };

    use super::*;
    use crate::host::pty::{self, Pty, Size};

    /// A script on a terminal of its own, in the foreground.
    struct Tool {
        pty: Pty,
        child: Child,
    }

    impl Tool {
        fn run(script: &str) -> Self {
            let pty = Pty::open(Size::new(80, 24)).unwrap();
            let end = || Stdio::from(pty.user.try_clone().unwrap());
            let mut setsid = Command::new("setsid");
            setsid.args(["--ctty", "bash", "-c", script]);
            let child = setsid.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
            Self { pty, child }
        }

        fn is_reading(&self) -> bool {
            let controller: &OwnedFd = &self.pty.controller.try_clone().unwrap();
            pty::foreground(controller.as_fd()).unwrap().is_some_and(group_reads)
        }

        fn comes_to(&self, reading: bool) -> bool {
            let deadline = Instant::now() + Duration::from_secs(20);
            while self.is_reading() != reading && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            self.is_reading() == reading
        }
    }

    impl Drop for Tool {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    #[test]
    fn who_waits_for_input_is_seen_whatever_it_waits_with() {
        for script in [
            "exec cat",
            "read -r line",
            "cat | sort",
            // The first of the two leads the group, and is gone.
            "set -m; true | cat /dev/tty",
            "exec cat /dev/tty </dev/null",
            "exec python3 -c 'import select; select.select([0], [], [])'",
            "exec python3 -c 'import select; p = select.poll(); p.register(0, 1); p.poll()'",
            "exec python3 -c 'import select; p = select.epoll(); p.register(0, 1); p.poll()'",
        ] {
            let tool = Tool::run(script);
            assert!(tool.comes_to(true), "{script}");
        }
    }

    #[test]
    fn who_waits_for_something_else_is_not() {
        for script in [
            "echo up; exec sleep 100",
            "sleep 100; true",
            "while :; do :; done",
            "exec sleep 100 | cat",
            "exec python3 -c 'import select, os; p = select.epoll(); p.register(os.pipe()[0]); p.poll()'",
            "exec python3 -c 'import select, os; select.select([os.pipe()[0]], [], [])' </dev/null",
        ] {
            let tool = Tool::run(script);
            // What comes before it may read: a shell its script, an interpreter its modules.
            assert!(tool.comes_to(false), "{script}");
            let settled = Instant::now() + Duration::from_millis(300);
            while Instant::now() < settled {
                assert!(!tool.is_reading(), "{script}");
            }
        }
    }

    #[test]
    fn a_device_number_is_the_same_in_both_spellings() {
        assert_eq!(device(34_817), libc::makedev(136, 1));
        assert_eq!(device(0x0010_8801), libc::makedev(136, 257));
    }
}
