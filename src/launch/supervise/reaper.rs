//! Reaping children, with what they used.

use std::{io, mem::MaybeUninit};

use nix::unistd::Pid;

use crate::launch::spec::FromLauncher;

/// A child that has ended and is reaped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) pid: Pid,
    status: i32,
    usage: libc::rusage,
}

impl Ended {
    /// What the broker hears of it.
    pub(super) fn message(&self) -> FromLauncher {
        let cpu = usec(self.usage.ru_utime).saturating_add(usec(self.usage.ru_stime));
        let peak = u64::try_from(self.usage.ru_maxrss).unwrap_or(0).saturating_mul(1024);
        FromLauncher::Exited { status: self.status, cpu_usec: cpu, memory_peak: peak }
    }
}

/// Reaps one child that has ended; `None` where children are left, but none has.
///
/// # Errors
/// What wait4(2) gives: `ECHILD` where there is no child.
pub(super) fn reap() -> io::Result<Option<Ended>> {
    let (mut status, mut usage) = (0, MaybeUninit::uninit());
    // SAFETY: both pointers are to memory of ours that outlives the call.
    let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => {
            // SAFETY: wait4 reaped a child and so has filled it in.
            let usage = unsafe { usage.assume_init() };
            Ok(Some(Ended { pid: Pid::from_raw(pid), status, usage }))
        }
    }
}

fn usec(time: libc::timeval) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_usec).unwrap_or(0);
    seconds.saturating_mul(1_000_000).saturating_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_is_told_in_microseconds_and_bytes() {
        // SAFETY: all zeroes is a valid rusage: numbers only.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        usage.ru_utime = libc::timeval { tv_sec: 1, tv_usec: 500 };
        usage.ru_stime = libc::timeval { tv_sec: 0, tv_usec: 250 };
        usage.ru_maxrss = 3;
        let ended = Ended { pid: Pid::from_raw(7), status: 9, usage };
        let expected = FromLauncher::Exited { status: 9, cpu_usec: 1_000_750, memory_peak: 3072 };
        assert_eq!(ended.message(), expected);
    }
}
