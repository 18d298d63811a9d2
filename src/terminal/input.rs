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
    /// Why no more is accepted, once it is so.
    closed: Option<WriteError>,
}

impl Input {
    /// A pty's input buffer (`N_TTY_BUF_SIZE`): more at once is of no use.
    const BURST: usize = 4 << 10;

    pub(super) fn new(bounds: &Bounds) -> Self {
        let limit = bounds.input_queue_bytes;
        let queue = Queue { limit, bytes: VecDeque::new(), accepted: 0, closed: None };
        Self { queue: watch::Sender::new(queue), write_bytes: bounds.write_bytes }
    }

    /// Bytes accepted since the session began.
    pub(super) fn accepted(&self) -> u64 {
        self.queue.borrow().accepted
    }

    /// Queues all of `bytes`, or none; gives how many were accepted since the session began.
    pub(super) fn push(&self, bytes: &[u8]) -> Result<u64, WriteError> {
        if bytes.len() > self.write_bytes {
            return Err(WriteError::TooLong { len: bytes.len(), limit: self.write_bytes });
        }
        self.offer(bytes)
    }

    /// As [`Self::push`], of bytes that no writer chose the number of.
    pub(super) fn offer(&self, bytes: &[u8]) -> Result<u64, WriteError> {
        let mut result = Err(WriteError::Closed);
        self.queue.send_if_modified(|queue| {
            result = queue.push(bytes);
            result.is_ok()
        });
        result
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
                    let _closed = queue.push(&buffer[..count]);
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
            given = write(controller, &oldest[..oldest.len().min(Self::BURST)]);
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

    /// Waits until a stream may be read again.
    pub(super) async fn room(&self) {
        self.until(|queue| queue.room() >= queue.room_to_go_on()).await;
    }

    /// Drops what is queued and accepts no more; gives how many bytes were dropped.
    pub(super) fn close(&self, why: WriteError) -> usize {
        let mut dropped = 0;
        self.queue.send_modify(|queue| {
            dropped = std::mem::take(&mut queue.bytes).len();
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

    fn push(&mut self, bytes: &[u8]) -> Result<u64, WriteError> {
        let (queued, len, limit) = (self.bytes.len(), bytes.len(), self.limit);
        if let Some(why) = self.closed {
            return Err(why);
        }
        if len > self.room() {
            return Err(WriteError::InputFull { queued, len, limit });
        }
        self.bytes.extend(bytes);
        self.accepted += len as u64;
        Ok(self.accepted)
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
mod tests {
    use std::{
        io::{Read, Write},
        os::{fd::AsFd, unix::net::UnixStream},
    };

    use futures_util::FutureExt;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_write_is_accepted_whole_or_not_at_all() {
        let input = Input::new(&Bounds::default());
        for n in 1..=15 {
            assert_eq!(input.push(&[0; 65_536]), Ok(n * 65_536));
        }
        assert_eq!(input.push(&[0; 65_535]), Ok((1 << 20) - 1));
        let full = WriteError::InputFull { queued: (1 << 20) - 1, len: 2, limit: 1 << 20 };
        assert_eq!(input.push(&[0; 2]), Err(full));
        assert_eq!(input.accepted(), (1 << 20) - 1);
        assert_eq!(input.push(&[0]), Ok(1 << 20));
        assert_eq!(input.push(&[]), Ok(1 << 20), "nothing always fits");
    }

    #[test]
    fn a_write_above_the_limit_is_refused() {
        let long = WriteError::TooLong { len: 65_537, limit: 65_536 };
        assert_eq!(Input::new(&Bounds::default()).push(&[0; 65_537]), Err(long));
    }

    #[test]
    fn a_closed_queue_drops_what_it_holds_and_accepts_nothing() {
        let input = Input::new(&Bounds::default());
        input.push(b"lost").unwrap();
        assert_eq!(input.close(WriteError::Closed), 4);
        assert_eq!(input.push(b"x"), Err(WriteError::Closed));
        assert!(input.queued().now_or_never().is_none());
        assert!(input.room().now_or_never().is_some());
    }

    #[test]
    fn an_ended_queue_gives_what_it_holds_and_accepts_nothing() {
        let (input, written) =
            (Input::new(&Bounds::default()), WriteError::NoStdin(StdinEnd::Written));
        assert!(input.more().now_or_never().is_none());
        input.push(b"last").unwrap();
        assert_eq!(input.end(written), Ok(4));
        assert_eq!((input.push(b"x"), input.end(WriteError::Closed)), (Err(written), Err(written)));
        let mut got = Vec::new();
        assert_eq!(input.more().now_or_never(), Some(true));
        give(&input, &mut got);
        assert_eq!((got, input.more().now_or_never()), (b"last".to_vec(), Some(false)));
        assert_eq!(written.to_string(), "stdin is closed: its end was written");
    }

    #[test]
    fn a_stream_is_not_read_while_the_queue_is_full() {
        let (mut client, ours) = UnixStream::pair().unwrap();
        let input = Input::new(&Bounds::default());
        for _ in 0..16 {
            input.push(&[0; 65_536]).unwrap();
        }
        client.write_all(b"waits").unwrap();
        assert_eq!(input.take_from(ours.as_fd()).unwrap(), Taken::Full);
        assert!(input.room().now_or_never().is_none());
        let mut got = Vec::new();
        while input.room().now_or_never().is_none() {
            assert!(give(&input, &mut got));
        }
        assert_eq!(got.len(), 1 << 17, "an eighth, and no stream is read before that");
        assert_eq!(input.take_from(ours.as_fd()).unwrap(), Taken::Bytes(5));
        let none = input.take_from(ours.as_fd()).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
        drop(client);
        assert_eq!(input.take_from(ours.as_fd()).unwrap(), Taken::End);
    }

    /// Lets the tool read once, if there is anything.
    fn give(input: &Input, got: &mut Vec<u8>) -> bool {
        let queued = input.queued().now_or_never().is_some();
        if queued {
            let (mut tool, ours) = UnixStream::pair().unwrap();
            let mut piece = vec![0; input.give_to(ours.as_fd()).unwrap()];
            tool.read_exact(&mut piece).unwrap();
            got.extend(piece);
        }
        queued
    }

    proptest! {
        #[test]
        fn the_tool_gets_what_was_accepted_in_order(
            writes in prop::collection::vec((0_usize..9000, any::<bool>()), 0..40),
        ) {
            let (input, mut written, mut got) = (Input::new(&Bounds::default()), Vec::new(), Vec::new());
            for (count, gives) in writes {
                let from = written.len();
                written.extend((from..from + count).map(|n| (n % 251) as u8));
                prop_assert_eq!(input.push(&written[from..]), Ok(written.len() as u64));
                if gives {
                    give(&input, &mut got);
                }
            }
            while give(&input, &mut got) {}
            prop_assert_eq!(got, written);
        }
    }
}
