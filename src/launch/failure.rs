//! From an error of one step to the failure that the broker hears of.

use std::{error::Error, io};

use nix::errno::Errno;

use super::spec::{Failure, Step};

/// Gives the failure of `step`: the error's text, and the `errno` of the system call at the root of
/// it, if there is one.
#[must_use]
pub fn failure(step: Step, error: &(dyn Error + 'static)) -> Failure {
    Failure { step, errno: errno(error).unwrap_or(0), message: error.to_string() }
}

/// Looks for an `errno` in an error and everything that caused it.
fn errno(error: &(dyn Error + 'static)) -> Option<i32> {
    let call = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
    call.or_else(|| error.downcast_ref::<Errno>().map(|errno| *errno as i32))
        .or_else(|| error.source().and_then(self::errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot open {path}: {source}")]
    struct Open<E: Error + 'static> {
        path: &'static str,
        source: E,
    }

    #[test]
    fn the_errno_is_found_at_the_root_of_an_error() {
        let inner = io::Error::from_raw_os_error(libc::ENOENT);
        let outer = Open { path: "/b", source: Open { path: "/a", source: inner } };
        let failure = failure(Step::Confine, &outer);
        assert_eq!(failure.errno, libc::ENOENT);
        assert_eq!(
            failure.to_string(),
            "confine: cannot open /b: cannot open /a: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn both_kinds_of_errno_are_known_and_none_is_zero() {
        assert_eq!(failure(Step::Exec, &Errno::EACCES).errno, libc::EACCES);
        assert_eq!(failure(Step::Exec, &io::Error::other("no call")).errno, 0);
    }
}
