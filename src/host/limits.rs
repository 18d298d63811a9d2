//! The broker's own limits.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the broker's soft limit on descriptors to its hard limit, and gives it.
///
/// A session costs a handful, and the usual soft limit of 1024 is for programs that call select(2).
/// Tools are not touched: the launcher sets their soft limit anew.
///
/// # Errors
/// As setrlimit(2).
pub fn raise_descriptors() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(hard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let hard = raise_descriptors().unwrap();
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap(), (hard, hard));
    }
}
