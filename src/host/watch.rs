//! Descriptors that a task waits for.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
};

use tokio::io::{Interest, unix::AsyncFd};

/// Watches a descriptor for as long as the result lives. One open file may be watched many times, one
/// descriptor only once: watch copies.
///
/// # Errors
/// As epoll_ctl(2): `EPERM` for what is always ready, such as a regular file.
///
/// # Panics
/// Outside a tokio runtime.
pub fn watch(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd is open, and the same, until it is dropped, and the AsyncFd owns it.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}

/// Watches a copy of a descriptor.
///
/// # Errors
/// As [`watch`], and where descriptors ran out.
///
/// # Panics
/// Outside a tokio runtime.
pub fn watch_copy(fd: BorrowedFd<'_>, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    watch(fd.try_clone_to_owned()?, interest)
}
