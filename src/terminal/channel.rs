//! What a session reads from and writes to, a terminal or pipes.

use std::time::Duration;

use super::{
    Stats, Terminal,
    input::WriteError,
    output::{Chunk, ReadError},
    pipes::{Pipes, Source},
    pulse::Pulse,
};
use crate::host::pty::Size;

/// The way of a session's bytes; cheap to clone.
#[derive(Debug, Clone)]
pub enum Channel {
    /// A terminal, its output one stream.
    Terminal(Terminal),
    /// Pipes, and two outputs.
    Pipes(Pipes),
}

impl Channel {
    /// The terminal, where it is one.
    #[must_use]
    pub fn terminal(&self) -> Option<&Terminal> {
        match self {
            Self::Terminal(terminal) => Some(terminal),
            Self::Pipes(_) => None,
        }
    }

    /// The size in force; no columns and no rows without a terminal.
    #[must_use]
    pub fn size(&self) -> Size {
        self.terminal().map_or(Size::new(0, 0), Terminal::size)
    }

    /// Up to `max` bytes of output from `cursor` on, as soon as there are any, or after so long; of pipes, those of one
    /// output or of both in their order.
    ///
    /// # Errors
    /// [`ReadError`]; [`ReadError::OneOutput`] where one of two is asked of a terminal.
    pub async fn read_wait(
        &self,
        source: Option<Source>,
        cursor: u64,
        max: usize,
        wait: Duration,
    ) -> Result<Chunk, ReadError> {
        match (self, source) {
            (Self::Pipes(pipes), source) => pipes.read_wait(source, cursor, max, wait).await,
            (Self::Terminal(terminal), None) => terminal.read_wait(cursor, max, wait).await,
            (Self::Terminal(_), Some(_)) => Err(ReadError::OneOutput),
        }
    }

    /// Queues input for the tool: all of it, or none. Gives how many bytes were accepted since the session began.
    ///
    /// # Errors
    /// [`WriteError`]; nothing was queued then.
    pub fn write(&self, bytes: &[u8]) -> Result<u64, WriteError> {
        match self {
            Self::Terminal(terminal) => terminal.write(bytes),
            Self::Pipes(pipes) => pipes.write(bytes),
        }
    }

    /// Ends a line: presses Enter by itself, or writes a line feed where there is no terminal. Gives as [`Self::write`].
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn submit(&self) -> Result<u64, WriteError> {
        match self {
            Self::Terminal(terminal) => terminal.submit(),
            Self::Pipes(pipes) => pipes.write(b"\n"),
        }
    }

    /// Watches whether the tool writes.
    #[must_use]
    pub fn pulse(&self) -> Pulse {
        match self {
            Self::Terminal(terminal) => terminal.pulse(),
            Self::Pipes(pipes) => pipes.pulse(),
        }
    }

    /// Reads the rest of the output and closes the way, at most so long after this; `code` is what attached streams
    /// are told.
    pub async fn drain(&self, at_most: Duration, code: i32) {
        match self {
            Self::Terminal(terminal) => terminal.drain(at_most, code).await,
            Self::Pipes(pipes) => pipes.drain(at_most).await,
        }
    }

    /// How much has flowed so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        match self {
            Self::Terminal(terminal) => terminal.stats(),
            Self::Pipes(pipes) => pipes.stats(),
        }
    }

    /// Whether a direct holder took output that nobody else saw.
    #[must_use]
    pub fn has_unseen(&self) -> bool {
        let unseen = |terminal: &Terminal| !terminal.holds().borrow().unseen_at().is_empty();
        self.terminal().is_some_and(unseen)
    }
}
