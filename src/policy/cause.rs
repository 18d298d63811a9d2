//! Why a file or directory could not be had, in words that can be compared and copied.

use std::{
    fmt,
    io::{self, ErrorKind},
};

use nix::errno::Errno;

/// The kind of an operating system's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause(pub ErrorKind);

impl From<&io::Error> for Cause {
    fn from(error: &io::Error) -> Self {
        Self(error.kind())
    }
}

impl From<Errno> for Cause {
    fn from(errno: Errno) -> Self {
        Self(io::Error::from(errno).kind())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            // The standard library says "entity not found".
            ErrorKind::NotFound => f.write_str("no such file or directory"),
            kind => kind.fmt(f),
        }
    }
}
