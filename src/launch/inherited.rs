//! What a tool would inherit and does not: signals, descriptors, file mode mask, limits.

use std::{
    fs, io,
    os::fd::{AsRawFd, BorrowedFd},
};

use nix::{
    sys::{
        resource::{Resource, getrlimit, setrlimit},
        signal::{SigSet, SigmaskHow, sigprocmask},
        stat::{Mode, umask},
    },
    unistd::Pid,
};

use super::spec::LaunchSpec;

/// Where the kernel keeps how willingly it ends this process when memory runs out
/// (proc_pid_oom_score_adj(5)).
const OOM_SCORE_ADJ: &str = "/proc/self/oom_score_adj";

/// Closes every descriptor above standard error.
///
/// For the very beginning of `main`, while nobody owns one of them: what is opened later is
/// close-on-exec. By the bare system call: not every C library has a function for it.
///
/// # Errors
/// What close_range(2) gives.
pub fn close_descriptors() -> io::Result<()> {
    // SAFETY: the caller's word above: no object of this program owns a descriptor that is closed
    // here.
    match unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives every signal its default disposition and unblocks all.
///
/// By the bare system call: the C library keeps signals 32 and 33 from everybody, but an ancestor
/// that ignored them, as some do to all 64, would have broken thread cancellation in the tool.
///
/// # Errors
/// What sigprocmask(2) gives.
pub fn reset_signals() -> io::Result<()> {
    const SIGNALS: libc::c_int = 64;
    const MASK_BYTES: usize = 8;
    // `struct sigaction` of the kernel: handler (`SIG_DFL` is 0), flags, restorer, mask.
    let default = [0_u64; 4];
    for signal in 1..=SIGNALS {
        let old = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: `default` outlives the call, is as large as the kernel reads, and names no
        // handler. The call fails for KILL and STOP, which have no other disposition.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), old, MASK_BYTES);
        }
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
    Ok(())
}

/// Sets what the specification says of the mask and the limits.
///
/// The soft limit on open files never goes above the hard one, and is set back because programs
/// that use select(2) break above 1024. The OOM score is raised only, and where the kernel does not
/// let us, left.
///
/// # Errors
/// What setrlimit(2) gives.
pub fn apply(spec: &LaunchSpec) -> io::Result<()> {
    umask(Mode::from_bits_truncate(spec.umask));
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, spec.nofile_soft.min(hard), hard)?;
    raise_oom_score(spec.oom_score_adj);
    Ok(())
}

fn raise_oom_score(at_least: i16) {
    let now = fs::read_to_string(OOM_SCORE_ADJ).ok().and_then(|text| text.trim().parse().ok());
    if now.is_some_and(|now: i16| now < at_least) {
        // Best effort: without it the kernel only chooses among processes as it would have anyway.
        let _ = fs::write(OOM_SCORE_ADJ, at_least.to_string());
    }
}

/// Makes the pty's user end, which is standard output, standard input too, and the controlling
/// terminal of a session of the caller's own.
///
/// # Errors
/// `ENOTTY` where standard output is no terminal, what setsid(2) and ioctl_tty(2) give otherwise.
pub fn take_terminal(terminal: BorrowedFd<'_>) -> io::Result<()> {
    if !nix::unistd::isatty(terminal)? {
        return Err(io::Error::from_raw_os_error(libc::ENOTTY));
    }
    nix::unistd::dup2_stdin(terminal)?;
    lead_session()?;
    // SAFETY: TIOCSCTTY takes a number by value; the descriptor is open, as its borrow says.
    match unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes a descriptor standard input, in a session of the caller's own that has no controlling
/// terminal. Standard output and error are the pipes already.
///
/// # Errors
/// What dup2(2) and setsid(2) give.
pub fn take_pipes(stdin: BorrowedFd<'_>) -> io::Result<()> {
    nix::unistd::dup2_stdin(stdin)?;
    lead_session()
}

fn lead_session() -> io::Result<()> {
    if nix::unistd::getsid(None).ok() != Some(Pid::this()) {
        nix::unistd::setsid()?;
    }
    Ok(())
}
