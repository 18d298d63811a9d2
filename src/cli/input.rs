//! Standard input, on its way to a session.

use std::{
    io::{self, IsTerminal},
    os::fd::AsFd,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};

use super::{
    detach::{DetachKeys, Typed},
    error::CliError,
};

/// Bytes of one read.
const PIECE: usize = 4096;
/// Pieces that may wait: what a session does not take yet is left to whoever writes to us.
const WAITING: usize = 4;
/// Ctrl-D: the end of input to a terminal in its usual mode.
const END_OF_INPUT: u8 = 0x04;

/// Standard input, its detach keys, and what did not reach the session yet.
#[derive(Debug)]
pub(super) struct Input {
    pieces: mpsc::Receiver<io::Result<Vec<u8>>>,
    /// Accepted from standard input, not yet by the session.
    pending: Vec<u8>,
    keys: Option<DetachKeys>,
    /// Whether the end of standard input is typed as Ctrl-D.
    types_end: bool,
    /// Whether the session's line is empty: Ctrl-D ends input only there.
    at_line_start: bool,
    /// Whether typed bytes are for the session at all.
    forwards: bool,
    ended: bool,
}

/// Why input to a session stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputEnd {
    /// Standard input is at its end.
    EndOfFile,
    /// The detach keys were typed.
    Detached,
    /// The stream takes nothing any more: the session or the stream ended.
    StreamClosed,
}

impl Input {
    /// Begins to read. `keys` are looked for only on a terminal.
    pub(super) fn begin(keys: Option<DetachKeys>, types_end: bool, forwards: bool) -> Self {
        let terminal = io::stdin().is_terminal();
        let (sender, pieces) = mpsc::channel(WAITING);
        // Not a task of the runtime: a read of a terminal cannot be cancelled, and must not be waited for.
        std::thread::spawn(move || read_all(&sender));
        Self {
            pieces,
            pending: Vec::new(),
            keys: keys.filter(|_| terminal),
            types_end: types_end && !terminal,
            at_line_start: true,
            forwards,
            ended: false,
        }
    }

    /// Forwards until one side ends. What was not written is kept for the next stream.
    pub(super) async fn forward(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
    ) -> Result<InputEnd, CliError> {
        loop {
            if !self.flush(stream).await {
                return Ok(InputEnd::StreamClosed);
            }
            if self.ended {
                return Ok(InputEnd::EndOfFile);
            }
            match self.pieces.recv().await {
                Some(Ok(piece)) => {
                    if self.take(&piece) {
                        // What was typed before the keys is still the tool's.
                        self.flush(stream).await;
                        return Ok(InputEnd::Detached);
                    }
                }
                Some(Err(source)) => return Err(CliError::Input { source }),
                None => self.end(),
            }
        }
    }

    /// The next piece as it is, with no regard to keys; none at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, CliError> {
        let piece = self.pieces.recv().await.transpose();
        piece.map_err(|source| CliError::Input { source })
    }

    /// Writes what is pending; says whether the stream still takes it.
    async fn flush(&mut self, stream: &mut (impl AsyncWrite + Unpin)) -> bool {
        while !self.pending.is_empty() {
            match stream.write(&self.pending).await {
                Ok(0) | Err(_) => return false,
                Ok(written) => drop(self.pending.drain(..written)),
            }
        }
        true
    }

    /// Takes one piece; says whether the detach keys were in it.
    fn take(&mut self, piece: &[u8]) -> bool {
        let typed = match &mut self.keys {
            Some(keys) => keys.see(piece),
            None => Typed { input: piece.to_vec(), detach: false },
        };
        if let (true, Some(last)) = (self.forwards, typed.input.last()) {
            self.at_line_start = *last == b'\n';
            self.pending.extend(typed.input);
        }
        typed.detach
    }

    /// At the start of a line one Ctrl-D ends the input; elsewhere the first only sends the line so far.
    fn end(&mut self) {
        self.ended = true;
        if self.types_end && self.forwards {
            let count = if self.at_line_start { 1 } else { 2 };
            self.pending.extend(std::iter::repeat_n(END_OF_INPUT, count));
        }
    }
}

fn read_all(sender: &mpsc::Sender<io::Result<Vec<u8>>>) {
    loop {
        let mut piece = vec![0; PIECE];
        let read = match nix::unistd::read(io::stdin(), &mut piece) {
            Ok(0) => return,
            Ok(read) => {
                piece.truncate(read);
                Ok(piece)
            }
            Err(nix::Error::EINTR) => continue,
            // Somebody who shares it has set it non-blocking.
            Err(nix::Error::EAGAIN) => match wait_readable() {
                Ok(()) => continue,
                Err(error) => Err(error),
            },
            // A terminal that hung up, or that is no longer ours to read, has no more input.
            Err(nix::Error::EIO) => return,
            Err(errno) => Err(errno.into()),
        };
        let failed = read.is_err();
        if sender.blocking_send(read).is_err() || failed {
            return;
        }
    }
}

fn wait_readable() -> io::Result<()> {
    let stdin = io::stdin();
    let mut asked = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    match poll(&mut asked, PollTimeout::NONE) {
        Ok(_) | Err(nix::Error::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(types_end: bool, pieces: &[&[u8]]) -> Input {
        let (sender, receiver) = mpsc::channel(16);
        for piece in pieces {
            sender.try_send(Ok(piece.to_vec())).unwrap();
        }
        Input {
            pieces: receiver,
            pending: Vec::new(),
            keys: None,
            types_end,
            at_line_start: true,
            forwards: true,
            ended: false,
        }
    }

    async fn forwarded(mut input: Input) -> (Vec<u8>, InputEnd) {
        let mut stream = Vec::new();
        let end = input.forward(&mut stream).await.unwrap();
        (stream, end)
    }

    #[tokio::test]
    async fn the_end_of_a_pipe_is_typed_so_that_the_tool_sees_it() {
        let typed = forwarded(input(true, &[b"a\n", b"b\n"])).await;
        assert_eq!(typed, (b"a\nb\n\x04".to_vec(), InputEnd::EndOfFile));
        assert_eq!(forwarded(input(true, &[b"a"])).await.0, b"a\x04\x04");
        assert_eq!(forwarded(input(true, &[])).await.0, b"\x04");
        assert_eq!(forwarded(input(false, &[b"a"])).await.0, b"a");
    }

    #[tokio::test]
    async fn what_a_cut_stream_did_not_take_goes_to_the_next() {
        let mut input = input(false, &[b"abcdef"]);
        let (ours, theirs) = tokio::io::duplex(4);
        let (_, mut ours) = tokio::io::split(ours);
        let (mut theirs, _) = tokio::io::split(theirs);
        let cut = async {
            let mut taken = [0; 4];
            tokio::io::AsyncReadExt::read_exact(&mut theirs, &mut taken).await.unwrap();
            taken
        };
        let taken = tokio::select! {
            biased;
            _ = input.forward(&mut ours) => panic!("the stream takes only four bytes"),
            taken = cut => taken,
        };
        assert_eq!(&taken, b"abcd");
        let mut next = Vec::new();
        input.forward(&mut next).await.unwrap();
        assert_eq!(next, b"ef");
    }

    #[tokio::test]
    async fn an_observer_types_nothing() {
        let mut watching = input(true, &[b"rm -rf x\n"]);
        watching.forwards = false;
        assert_eq!(forwarded(watching).await.0, b"");
    }
}
