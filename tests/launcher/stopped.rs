//! A launcher that is stopped on its way, by ptrace(2): what happens at that moment happens between two of its steps.

use std::ptr;

use libc::{c_int, c_long, c_uint};
use nix::{
    sys::wait::{WaitPidFlag, WaitStatus, waitpid},
    unistd::Pid,
};

/// A launcher at a system call that it has not made yet; it goes on when this is dropped.
///
/// For the thread that made it only: to the kernel, that is who traces.
pub struct Stopped(Pid);

impl Stopped {
    /// Lets a launcher run, once `begin` has given it something to do, until it is about to make this system call.
    pub fn before(call: c_long, launcher: Pid, begin: impl FnOnce()) -> Self {
        trace(libc::PTRACE_SEIZE, launcher, libc::PTRACE_O_TRACESYSGOOD);
        let stopped = Self(launcher);
        trace(libc::PTRACE_INTERRUPT, launcher, 0);
        wait(launcher);
        begin();
        loop {
            trace(libc::PTRACE_SYSCALL, launcher, 0);
            let is_call = matches!(wait(launcher), WaitStatus::PtraceSyscall(_));
            if is_call && entered(launcher) == Some(call) {
                return stopped;
            }
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        trace(libc::PTRACE_DETACH, self.0, 0);
    }
}

/// Waits for the next stop.
fn wait(launcher: Pid) -> WaitStatus {
    let status = waitpid(launcher, Some(WaitPidFlag::__WALL)).unwrap();
    let is_over = matches!(status, WaitStatus::Exited(..) | WaitStatus::Signaled(..));
    assert!(!is_over, "the launcher ended before that call: {status:?}");
    status
}

/// The system call that is being entered; `None` at the end of one.
fn entered(launcher: Pid) -> Option<c_long> {
    // SAFETY: the structure is plain numbers, for which zero is a value.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = size_of_val(&info);
    let request = libc::PTRACE_GET_SYSCALL_INFO;
    // SAFETY: the kernel writes no more than `size` bytes to `info`, which outlives the call.
    let got = unsafe { libc::ptrace(request, launcher.as_raw(), size, &raw mut info) };
    assert!(got > 0, "{}", std::io::Error::last_os_error());
    if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return None;
    }
    // SAFETY: `op` says that this member of the union was written.
    Some(c_long::try_from(unsafe { info.u.entry.nr }).unwrap())
}

fn trace(request: c_uint, launcher: Pid, word: c_int) {
    let none = ptr::null_mut::<libc::c_void>();
    // SAFETY: these requests take numbers only.
    let done = unsafe { libc::ptrace(request, launcher.as_raw(), none, c_long::from(word)) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}
