//! A process, named so that it cannot be mistaken for a later one with the same number.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
use tokio::io::Interest;

use super::watch::watch_copy;

/// A process by descriptor (pidfd_open(2)), and its number for what takes numbers only.
#[derive(Debug)]
pub struct PidFd {
    pid: i32,
    fd: OwnedFd,
}

impl PidFd {
    /// Takes hold of the process that has this number now.
    ///
    /// # Errors
    /// `ESRCH` where there is none; `EMFILE`, `ENFILE` where descriptors ran out.
    pub fn open(pid: i32) -> io::Result<Self> {
        // SAFETY: pidfd_open(2) takes two integers and touches no memory of ours.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let fd = Errno::result(fd)?;
        let fd = i32::try_from(fd).map_err(io::Error::other)?;
        // SAFETY: the kernel has just made this descriptor for us and nobody else knows it. It is
        // close-on-exec from the start (pidfd_open(2)).
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { pid, fd })
    }

    /// A second hold on the same process.
    ///
    /// # Errors
    /// Where descriptors ran out.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { pid: self.pid, fd: self.fd.try_clone()? })
    }

    /// The number, in the broker's PID namespace; it may belong to another process once this one
    /// is gone and waited for.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Sends a signal; 0 asks whether the process could be signalled.
    ///
    /// # Errors
    /// `ESRCH` once it is gone and waited for, `EINVAL` for no signal, `EPERM` where it is another's.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        let (fd, no_info) = (self.fd.as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
        // SAFETY: the descriptor is open for the call; a null siginfo_t is allowed and means what
        // kill(2) would have filled in (pidfd_send_signal(2)).
        let sent =
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, no_info, 0_u32) };
        Errno::result(sent)?;
        Ok(())
    }

    /// Sends a signal, if the process is still there; tells whether it was.
    ///
    /// # Errors
    /// As [`PidFd::signal`], but for `ESRCH`.
    pub fn signal_if_there(&self, signal: i32) -> io::Result<bool> {
        match self.signal(signal) {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends SIGKILL. A process that is gone already counts as killed.
    ///
    /// # Errors
    /// `EPERM` where it is another user's.
    pub fn kill(&self) -> io::Result<()> {
        self.signal_if_there(libc::SIGKILL).map(drop)
    }

    /// Whether it has ended: a pidfd polls readable from then on, waited for or not.
    ///
    /// # Errors
    /// As poll(2).
    pub fn has_ended(&self) -> io::Result<bool> {
        let mut set = [PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)];
        Ok(poll(&mut set, PollTimeout::ZERO)? > 0)
    }

    /// Waits until it has ended. Does not reap it.
    ///
    /// # Errors
    /// Where descriptors ran out.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn ended(&self) -> io::Result<()> {
        let watch = watch_copy(self.fd.as_fd(), Interest::READABLE)?;
        let _ = watch.readable().await?;
        Ok(())
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[tokio::test]
    async fn an_ended_process_is_seen_and_cannot_be_signalled_once_reaped() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = PidFd::open(child.id().cast_signed()).unwrap();
        assert!(!process.has_ended().unwrap());
        process.kill().unwrap();
        process.ended().await.unwrap();
        assert!(process.has_ended().unwrap());
        child.wait().unwrap();
        let gone = process.signal(0).unwrap_err();
        assert_eq!(gone.raw_os_error(), Some(libc::ESRCH));
        process.kill().unwrap();
    }

    #[test]
    fn no_process_is_no_pidfd() {
        assert_eq!(PidFd::open(i32::MAX).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        assert_eq!(PidFd::open(-1).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
