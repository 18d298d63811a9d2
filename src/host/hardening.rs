//! What keeps the user's other programs out of the broker, and is not inherited by its tools.

use std::{io, sync::OnceLock};

use nix::sys::{
    prctl,
    resource::{Resource, getrlimit, setrlimit},
};

use super::pidfd::PidFd;

/// Limits on core dumps as this process found them; unset where they are still in force.
static CORE: OnceLock<libc::rlimit> = OnceLock::new();

/// Closes this process to whoever has no authority over the whole machine, and lets it leave no core
/// dump: tokens and what is typed are in its memory.
///
/// Its memory, environment and descriptors in `/proc` then belong to root, and it cannot be traced
/// (`PR_SET_DUMPABLE`, prctl(2)). An execve(2) undoes that for the launcher; the limit it would
/// inherit, see [`restore_core_limit`]. Called again, does nothing.
///
/// # Errors
/// As prctl(2) and setrlimit(2).
pub fn close() -> io::Result<()> {
    prctl::set_dumpable(false)?;
    let (soft, hard) = getrlimit(Resource::RLIMIT_CORE)?;
    // The hard limit stays: what is lowered there, nobody raises again.
    if CORE.set(libc::rlimit { rlim_cur: soft, rlim_max: hard }).is_ok() {
        setrlimit(Resource::RLIMIT_CORE, 0, hard)?;
    }
    Ok(())
}

/// Gives a launcher that waits for its specification the limits on core dumps that [`close`] found: a
/// tool has those of the user. From here, for nothing of ours runs between the fork and the execve(2).
///
/// # Errors
/// As prlimit(2).
pub fn restore_core_limit(launcher: &PidFd) -> io::Result<()> {
    let Some(found) = CORE.get() else { return Ok(()) };
    let nothing = std::ptr::null_mut();
    // SAFETY: `found` outlives the call, and the old limits are not asked for. The number is the
    // child's, which nobody has waited for.
    match unsafe { libc::prlimit(launcher.pid(), libc::RLIMIT_CORE, found, nothing) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
