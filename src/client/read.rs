//! The options and the result of `Read`.

use std::time::Duration;

use super::{Dict, open::milliseconds};

/// Most bytes of one `Read`.
pub const READ_MAX: u32 = 256 * 1024;

/// Most bytes of one `Write`.
pub const WRITE_MAX: usize = 64 * 1024;

/// Longest text of one paste, bytes: with the marks around it, it is one write.
pub const PASTE_MAX: usize = WRITE_MAX - 12;

/// One of the two outputs of a session on pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Stderr => "stderr",
        }
    }
}

/// The options of one `Read`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// How long to wait for a first byte; at most two minutes.
    pub wait: Option<Duration>,
    /// One output alone, with offsets of its own; both, in the order in which they were read, where absent.
    pub stream: Option<Stream>,
}

/// One piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The bytes.
    pub data: Vec<u8>,
    /// Absolute offset of the first; above the cursor asked for where bytes are gone.
    pub begin: u64,
    /// Absolute offset after the last: the next cursor.
    pub next: u64,
    /// Whether nothing will follow.
    pub eof: bool,
}

impl ReadOptions {
    /// The options as the bus carries them.
    #[must_use]
    pub fn to_dict(&self) -> Dict {
        Dict::new()
            .with_some("wait_ms", self.wait.map(milliseconds))
            .with_some("stream", self.stream.map(Stream::as_str))
    }
}
