//! What is typed to the tool, in the order in which it was accepted.

use std::{
    collections::VecDeque,
    fmt, io,
    os::fd::{AsRawFd, BorrowedFd},
};

use nix::{
    errno::Errno,
    sys::socket::{MsgFlags, recv},
    unistd::write,
};
use tokio::sync::watch;

use super::bounds::Bounds;

/// Input that was not accepted; none of it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The tool does not read as fast as it is written to.
    #[error("{queued} bytes of input are queued, {len} more would exceed {limit}")]
    InputFull {
        /// Bytes that wait for the tool.
        queued: usize,
        /// Bytes of this write.
        len: usize,
        /// Bytes that may wait.
        limit: usize,
    },
    /// More than one write may hold.
    #[error("a write of {len} bytes is longer than {limit}")]
    TooLong {
        /// Bytes of this write.
        len: usize,
        /// Bytes that a write may have.
        limit: usize,
    },
    /// The session ended.
    #[error("the session's input is closed")]
    Closed,
    /// The session goes on, but its standard input does not.
    #[error("stdin is closed: {0}")]
    NoStdin(StdinEnd),
}

/// Why a session on pipes has no standard input, or none any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StdinEnd {
    /// None was asked for.
    #[error("the session was opened without")]
    Never,
    /// A writer ended it.
    #[error("its end was written")]
    Written,
    /// The tool closed its end.
    #[error("the tool does not read it any more")]
    Unread,
}

/// What a look at a stream's input gave.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// So many bytes, now queued.
    Bytes(usize),
    /// Nothing was asked for: the queue is full.
    Full,
    /// The client sends no more.
    End,
}

/// A bounded queue from many writers to one tool.
///
/// The watch is both its lock and what wakes the pump (there is input) and the streams (there is
/// room).
#[derive(Debug)]
pub(super) struct Input {
    queue: watch::Sender<Queue>,
    write_bytes: usize,
}

struct Queue {
    limit: usize,
    bytes: VecDeque<u8>,
    accepted: u64,
    /// Where a write(2) of its own begins, in order: as offsets of what was accepted, none before the oldest byte.
    breaks: VecDeque<u64>,
    /// Why no more is accepted, once it is so.
    closed: Option<WriteError>,
}

/// Bytes of one writer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'a> {
    pub(super) bytes: &'a [u8],
    /// Whether they are given to the tool in a write(2) of their own, and not before it has taken what came before
    /// them; nor is what comes after them before it has taken them.
    pub(super) alone: bool,
}

impl Input {
    /// A pty's input buffer (`N_TTY_BUF_SIZE`): more at once is of no use.
    const BURST: usize = 4 << 10;

    pub(super) fn new(bounds: &Bounds) -> Self {
        let limit = bounds.input_queue_bytes;
        let (bytes, breaks) = (VecDeque::new(), VecDeque::new());
        let queue = Queue { limit, bytes, accepted: 0, breaks, closed: None };
        Self { queue: watch::Sender::new(queue), write_bytes: bounds.write_bytes }
    }

    /// Bytes accepted since the session began.
    pub(super) fn accepted(&self) -> u64 {
        self.queue.borrow().accepted
    }

    /// Queues all of `bytes`, or none; gives how many were accepted since the session began.
    pub(super) fn push(&self, bytes: &[u8]) -> Result<u64, WriteError> {
        self.push_all(&[Piece { bytes, alone: false }])
    }

    /// As [`Self::push`], of all of these pieces or none.
    pub(super) fn push_all(&self, pieces: &[Piece<'_>]) -> Result<u64, WriteError> {
        let len = pieces.iter().map(|piece| piece.bytes.len()).sum();
        if len > self.write_bytes {
            return Err(WriteError::TooLong { len, limit: self.write_bytes });
        }
        let mut result = Err(WriteError::Closed);
        self.queue.send_if_modified(|queue| {
            result = queue.push_all(pieces);
            result.is_ok()
        });
        result
    }

    /// Queues the beginning of `bytes`, as much as there is room for; gives how much that is.
    pub(super) fn offer(&self, bytes: &[u8]) -> Result<usize, WriteError> {
        let mut offered = Err(WriteError::Closed);
        self.queue.send_if_modified(|queue| {
            let count = queue.room().min(bytes.len());
            let piece = Piece { bytes: &bytes[..count], alone: false };
            offered = queue.push_all(&[piece]).map(|_| count);
            offered.is_ok_and(|count| count > 0)
        });
        offered
    }

    /// Takes up to 4 KiB that a client has sent on its stream. After the end they go nowhere.
    ///
    /// # Errors
    /// As recv(2), with [`io::ErrorKind::WouldBlock`] where there is nothing.
    pub(super) fn take_from(&self, socket: BorrowedFd<'_>) -> io::Result<Taken> {
        let mut taken = Ok(Taken::Full);
        self.queue.send_if_modified(|queue| {
            let mut buffer = [0; Self::BURST];
            let room = queue.room().min(Self::BURST);
            if room == 0 {
                return false;
            }
            taken = match recv(socket.as_raw_fd(), &mut buffer[..room], MsgFlags::MSG_DONTWAIT) {
                Ok(0) => Ok(Taken::End),
                Ok(count) => {
                    let piece = Piece { bytes: &buffer[..count], alone: false };
                    let _closed = queue.push_all(&[piece]);
                    Ok(Taken::Bytes(count))
                }
                Err(errno) => Err(errno.into()),
            };
            matches!(taken, Ok(Taken::Bytes(_)))
        });
        taken
    }

    /// Gives the tool the oldest bytes that it takes now; gives how many.
    ///
    /// # Errors
    /// As write(2), with [`io::ErrorKind::WouldBlock`] where the tool takes none.
    pub(super) fn give_to(&self, controller: BorrowedFd<'_>) -> io::Result<usize> {
        let mut given = Ok(0);
        self.queue.send_if_modified(|queue| {
            let oldest = queue.bytes.as_slices().0;
            let most = oldest.len().min(Self::BURST).min(queue.until_break());
            given = write(controller, &oldest[..most]);
            queue.pop(given.unwrap_or(0));
            given.is_ok()
        });
        given.map_err(|errno: Errno| errno.into())
    }

    /// Accepts no more; what is queued is still given. Gives how many bytes were accepted.
    pub(super) fn end(&self, why: WriteError) -> Result<u64, WriteError> {
        let mut result = Err(WriteError::Closed);
        self.queue.send_if_modified(|queue| {
            result = queue.closed.map_or(Ok(queue.accepted), Err);
            queue.closed.get_or_insert(why);
            result.is_ok()
        });
        result
    }

    /// Waits until there is something to give to the tool, or nothing will follow; gives which.
    pub(super) async fn more(&self) -> bool {
        self.until(|queue| !queue.bytes.is_empty() || queue.closed.is_some()).await;
        !self.queue.borrow().bytes.is_empty()
    }

    /// Waits until there is something to give to the tool.
    pub(super) async fn queued(&self) {
        self.until(|queue| !queue.bytes.is_empty()).await;
    }

    /// Whether the tool is to take what it was given before it is given more; once told, it is not told again.
    pub(super) fn take_break(&self) -> bool {
        let mut is_here = false;
        self.queue.send_if_modified(|queue| {
            is_here = queue.breaks.front() == Some(&queue.begin());
            queue.breaks.drain(..usize::from(is_here));
            false
        });
        is_here
    }

    /// Waits until a stream may be read again.
    pub(super) async fn room(&self) {
        self.until(|queue| queue.room() >= queue.room_to_go_on()).await;
    }

    /// Drops what is queued and accepts no more; gives how many bytes were dropped.
    pub(super) fn close(&self, why: WriteError) -> usize {
        let mut dropped = 0;
        self.queue.send_modify(|queue| {
            dropped = std::mem::take(&mut queue.bytes).len();
            queue.breaks = VecDeque::new();
            queue.closed = Some(why);
        });
        dropped
    }

    async fn until(&self, condition: impl FnMut(&Queue) -> bool) {
        let mut changes = self.queue.subscribe();
        let reached = changes.wait_for(condition).await;
        reached.map(drop).expect("the sender is borrowed from self, hence alive");
    }
}

impl Queue {
    fn room(&self) -> usize {
        self.limit - self.bytes.len()
    }

    /// A stream that found the queue full goes on when there is room for as much as this, so that it does not wake
    /// for every byte that the tool reads.
    fn room_to_go_on(&self) -> usize {
        self.limit / 8
    }

    /// The offset of the oldest byte that waits.
    fn begin(&self) -> u64 {
        self.accepted - self.bytes.len() as u64
    }

    /// How many bytes there are before a write of its own begins.
    fn until_break(&self) -> usize {
        let next = self.breaks.front().map(|at| at - self.begin());
        next.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX)
    }

    fn push_all(&mut self, pieces: &[Piece<'_>]) -> Result<u64, WriteError> {
        let len = pieces.iter().map(|piece| piece.bytes.len()).sum();
        let (queued, limit) = (self.bytes.len(), self.limit);
        if let Some(why) = self.closed {
            return Err(why);
        }
        if len > self.room() {
            return Err(WriteError::InputFull { queued, len, limit });
        }
        for Piece { bytes, alone } in pieces {
            self.break_if(*alone);
            self.bytes.extend(*bytes);
            self.accepted += bytes.len() as u64;
            self.break_if(*alone);
        }
        Ok(self.accepted)
    }

    fn break_if(&mut self, wanted: bool) {
        if wanted && self.breaks.back() != Some(&self.accepted) {
            self.breaks.push_back(self.accepted);
        }
    }

    /// Drops the oldest bytes, and the memory of a queue that has run empty.
    fn pop(&mut self, count: usize) {
        self.bytes.drain(..count);
        if self.bytes.is_empty() && self.bytes.capacity() > Input::BURST {
            self.bytes = VecDeque::new();
        }
    }
}

impl fmt::Debug for Queue {
    /// Shows numbers only: what is typed is never logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, accepted, closed, .. } = self;
        write!(f, "Queue({} of {accepted} accepted, closed: {closed:?})", bytes.len())
    }
}

#[cfg(test)]
mod tests;
