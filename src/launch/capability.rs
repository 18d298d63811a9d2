//! No capability: not now, not after `execve(2)`, not as root.

use caps::{CapSet, Capability, CapsHashSet, errors::CapsError};

/// Locked so that uid 0 is a uid like any other: it gains nothing by `execve`, by changing its ids,
/// or by the ambient set (capabilities(7), "The securebits flags").
const SECUREBITS: libc::c_int = libc::SECBIT_NOROOT
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
    /// prctl(2) refused the securebits.
    #[error("cannot lock the securebits: {source}")]
    Securebits {
        /// The call's error.
        source: std::io::Error,
    },
    /// A set is not empty although clearing it succeeded.
    #[error("{0:?} capabilities are left: {1:?}")]
    Left(CapSet, CapsHashSet),
}

/// Empties every capability set of the calling thread and reads them back.
///
/// The bounding set and the securebits can only be changed with `CAP_SETPCAP`. Without it they
/// bound nothing: under `no_new_privs` `execve` grants no capability that the thread does not have.
///
/// # Errors
/// [`CapabilityError`]; some sets may be empty then.
pub fn drop_all() -> Result<(), CapabilityError> {
    let may_bound = caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)?;
    caps::clear(None, CapSet::Ambient)?;
    if may_bound {
        caps::clear(None, CapSet::Bounding)?;
        lock_securebits()?;
    }
    for set in [CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        caps::clear(None, set)?;
    }
    let empty = [CapSet::Permitted, CapSet::Effective, CapSet::Inheritable, CapSet::Ambient];
    for set in empty.into_iter().chain(may_bound.then_some(CapSet::Bounding)) {
        let left = caps::read(None, set)?;
        if !left.is_empty() {
            return Err(CapabilityError::Left(set, left));
        }
    }
    Ok(())
}

fn lock_securebits() -> Result<(), CapabilityError> {
    // SAFETY: prctl(PR_SET_SECUREBITS) takes its argument by value and touches no memory of ours.
    match unsafe { libc::prctl(libc::PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(CapabilityError::Securebits { source: std::io::Error::last_os_error() }),
    }
}

impl From<CapsError> for CapabilityError {
    fn from(source: CapsError) -> Self {
        Self::Drop { source }
    }
}
