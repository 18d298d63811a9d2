//! No capability: not now, not after `execve(2)`, not as root.

use std::io;

use caps::{CapSet, Capability, CapsHashSet, errors::CapsError};
use libc::c_int;
use nix::errno::Errno;

/// Locked so that uid 0 is a uid like any other: it gains nothing by `execve`, by changing its ids,
/// or by the ambient set (capabilities(7), "The securebits flags").
const SECUREBITS: c_int = libc::SECBIT_NOROOT
    | libc::SECBIT_NOROOT_LOCKED
    | libc::SECBIT_NO_SETUID_FIXUP
    | libc::SECBIT_NO_SETUID_FIXUP_LOCKED
    | libc::SECBIT_KEEP_CAPS_LOCKED
    | libc::SECBIT_NO_CAP_AMBIENT_RAISE
    | libc::SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

/// Why capabilities are left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CapabilityError {
    /// A set could not be read or cleared.
    #[error("cannot drop capabilities: {source}")]
    Drop {
        /// What caps says; the call's error is in its text.
        source: CapsError,
    },
    /// prctl(2) refused the bounding set or the securebits.
    #[error("cannot {what}: {source}")]
    Bound {
        /// What was tried.
        what: &'static str,
        /// The call's error.
        source: io::Error,
    },
    /// A set is not empty although clearing it succeeded.
    #[error("{0:?} capabilities are left: {1:?}")]
    Left(CapSet, CapsHashSet),
    /// The same of the bounding set: the number of one.
    #[error("capability {0} is left in the bounding set")]
    LeftBounding(c_int),
}

/// Empties every capability set of the calling thread and reads them back.
///
/// The bounding set and the securebits can only be changed with `CAP_SETPCAP`. Without it they
/// bound nothing: under `no_new_privs` `execve` grants no capability that the thread does not have.
/// The ambient set needs no reading: nothing is in it that is not permitted (capabilities(7)).
///
/// # Errors
/// [`CapabilityError`]; some sets may be empty then.
pub fn drop_all() -> Result<(), CapabilityError> {
    let may_bound = caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)?;
    caps::clear(None, CapSet::Ambient)?;
    if may_bound {
        clear_bounding()?;
        lock_securebits()?;
    }
    for set in [CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        caps::clear(None, set)?;
    }
    for set in [CapSet::Permitted, CapSet::Effective, CapSet::Inheritable] {
        let left = caps::read(None, set)?;
        if !left.is_empty() {
            return Err(CapabilityError::Left(set, left));
        }
    }
    Ok(())
}

/// Empties the bounding set of all that this kernel knows, those included that have no name here.
fn clear_bounding() -> Result<(), CapabilityError> {
    let known = |option: c_int, number: c_int| {
        // SAFETY: both options take a number by value and touch no memory of ours.
        match unsafe { libc::prctl(option, number, 0, 0, 0) } {
            -1 if Errno::last() == Errno::EINVAL => Ok(None),
            -1 => Err(bound("clear the bounding set")),
            answer => Ok(Some(answer)),
        }
    };
    for number in 0..c_int::MAX {
        match known(libc::PR_CAPBSET_DROP, number)? {
            None => break,
            Some(_) if known(libc::PR_CAPBSET_READ, number)? == Some(0) => {}
            Some(_) => return Err(CapabilityError::LeftBounding(number)),
        }
    }
    Ok(())
}

fn lock_securebits() -> Result<(), CapabilityError> {
    // SAFETY: prctl(PR_SET_SECUREBITS) takes its argument by value and touches no memory of ours.
    match unsafe { libc::prctl(libc::PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(bound("lock the securebits")),
    }
}

/// The error of the call that has just failed.
fn bound(what: &'static str) -> CapabilityError {
    CapabilityError::Bound { what, source: io::Error::last_os_error() }
}

impl From<CapsError> for CapabilityError {
    fn from(source: CapsError) -> Self {
        Self::Drop { source }
    }
}
