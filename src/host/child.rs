//! A program that the broker spawned: waited for exactly once, and dead before it is forgotten.

use std::{io, os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration};

use nix::errno::Errno;
use tokio::runtime::Handle;

use super::pidfd::PidFd;
use crate::broker::outcome::{Ending, Usage};

/// How a program ended and what it had used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// How.
    pub ending: Ending,
    /// CPU time of it and of those it waited for; peak resident size of the largest of them.
    pub usage: Usage,
}

/// A spawned program. Dropped while it runs, it is killed; it never stays a zombie.
#[derive(Debug)]
pub struct Child {
    process: PidFd,
    exit: Option<Exit>,
    spared: Duration,
}

impl Child {
    /// Takes over a program that nobody has waited for.
    ///
    /// # Errors
    /// Where descriptors ran out; the program is dead then.
    pub fn adopt(mut spawned: std::process::Child) -> io::Result<Self> {
        // Not waited for, it keeps its number, even if it has ended already.
        match PidFd::open(spawned.id().cast_signed()) {
            Ok(process) => Ok(Self { process, exit: None, spared: Duration::ZERO }),
            Err(error) => {
                spawned.kill()?;
                spawned.wait()?;
                Err(error)
            }
        }
    }

    /// The process, for signals and for placing.
    #[must_use]
    pub fn process(&self) -> &PidFd {
        &self.process
    }

    /// Waits for the end and reaps. Asked again, gives the same. Cancelling loses nothing.
    ///
    /// # Errors
    /// Where the descriptor cannot be watched, or somebody else reaped the child.
    pub async fn exited(&mut self) -> io::Result<Exit> {
        if let Some(exit) = &self.exit {
            return Ok(exit.clone());
        }
        self.process.ended().await?;
        let exit = reap(&self.process)?;
        self.exit = Some(exit.clone());
        Ok(exit)
    }

    /// From now on, a drop gives it so long to end by itself before it is killed.
    pub fn spare(&mut self, at_most: Duration) {
        self.spared = at_most;
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.exit.is_some() {
            return;
        }
        match (Handle::try_current(), self.process.try_clone()) {
            (Ok(runtime), Ok(process)) => drop(runtime.spawn(bury(process, self.spared))),
            _ => {
                kill(&self.process);
                // A killed process ends in no time; without a runtime there is nobody to hold up.
                let _ = reap(&self.process);
            }
        }
    }
}

/// Kills a child that has not ended within so long, and reaps it in either case.
async fn bury(process: PidFd, spared: Duration) {
    if spared.is_zero() || tokio::time::timeout(spared, process.ended()).await.is_err() {
        kill(&process);
    }
    if process.ended().await.is_ok() {
        let _ = reap(&process);
    }
}

fn kill(process: &PidFd) {
    if let Err(error) = process.kill() {
        tracing::error!(pid = process.pid(), %error, "cannot kill a child");
    }
}

/// Waits for a child of ours, blocking until it has ended. By number, which is the child's as long as
/// it has not been waited for: waitid(2) takes a pidfd but its status lacks what wait(2) gives.
fn reap(process: &PidFd) -> io::Result<Exit> {
    let mut status = 0;
    // SAFETY: rusage holds nothing but integers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: wait4(2) writes one int and one rusage, to where these two pointers lead.
        let waited =
            unsafe { libc::wait4(process.pid(), &raw mut status, libc::__WALL, &raw mut usage) };
        match Errno::result(waited) {
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
            Ok(_) => return Ok(Exit { ending: ending(status), usage: consumed(&usage) }),
        }
    }
}

/// Reads a status as wait(2) gives it.
#[must_use]
pub fn ending(status: i32) -> Ending {
    let status = ExitStatus::from_raw(status);
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, signal) => Ending::Signaled {
            signal: signal.unwrap_or_default(),
            core_dumped: status.core_dumped(),
        },
    }
}

fn consumed(usage: &libc::rusage) -> Usage {
    let micros = |time: libc::timeval| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        seconds.saturating_mul(1_000_000) + u64::try_from(time.tv_usec).unwrap_or_default()
    };
    let kibibytes = u64::try_from(usage.ru_maxrss).unwrap_or_default();
    Usage {
        cpu_usec: micros(usage.ru_utime) + micros(usage.ru_stime),
        memory_peak: kibibytes.saturating_mul(1024),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn spawn(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        Child::adopt(command.spawn().unwrap()).unwrap()
    }

    /// The state letter of /proc/PID/stat; `None` once the process is reaped.
    fn state(pid: i32) -> Option<char> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(") ").next()?.chars().next()
    }

    #[tokio::test]
    async fn the_exit_tells_how_and_what_was_used() {
        let mut child = spawn("i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; exit 7");
        let exit = child.exited().await.unwrap();
        assert_eq!(exit.ending, Ending::Exited(7));
        assert!(exit.usage.cpu_usec > 0 && exit.usage.memory_peak > 100_000, "{exit:?}");
        assert_eq!(child.exited().await.unwrap(), exit);
        assert_eq!(state(child.process().pid()), None);
    }

    #[tokio::test]
    async fn a_signal_is_told_apart() {
        let exit = spawn("kill -TERM $$").exited().await.unwrap();
        let signaled = Ending::Signaled { signal: libc::SIGTERM, core_dumped: false };
        assert_eq!(exit.ending, signaled);
    }

    #[test]
    fn a_dropped_child_is_dead_and_reaped() {
        let child = spawn("exec sleep 1000");
        let pid = child.process().pid();
        assert_ne!(state(pid), None);
        drop(child);
        assert_eq!(state(pid), None);
    }

    #[tokio::test]
    async fn a_child_dropped_within_a_runtime_is_reaped_too() {
        let child = spawn("exec sleep 1000");
        let pid = child.process().pid();
        let process = child.process().try_clone().unwrap();
        drop(child);
        let reaped = async {
            process.ended().await.unwrap();
            while process.signal(0).is_ok() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), reaped).await.unwrap();
        assert_eq!(state(pid), None);
    }
}
