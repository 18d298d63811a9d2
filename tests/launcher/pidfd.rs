//! Processes, held so that no number can come to mean another.

use std::{
    os::fd::{AsFd, FromRawFd, OwnedFd},
    time::Duration,
};

use nix::{
    libc,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    unistd::Pid,
};

use crate::session::DEADLINE;

/// `None` where the process is gone.
pub fn open_pidfd(pid: Pid) -> Option<OwnedFd> {
    // SAFETY: pidfd_open takes numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
    // SAFETY: a descriptor that the call gives is ours.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(i32::try_from(fd).unwrap()) })
}

/// Waits until a process has ended.
pub fn wait_for_end(pidfd: &OwnedFd) {
    assert!(ends_within(pidfd, DEADLINE), "still alive after {DEADLINE:?}");
}

/// Whether a process ends within so long.
pub fn ends_within(pidfd: &OwnedFd, time: Duration) -> bool {
    let mut fds = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::try_from(time).unwrap()).unwrap() > 0
}
