//! The only reader and writer of a session's pipes.

use std::{
    convert::Infallible,
    io,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use nix::unistd::read;
use tokio::{
    io::{Interest, unix::AsyncFd},
    task::{consume_budget, yield_now},
    time::timeout_at,
};
use tracing::debug;

use super::{Shared, Source};
use crate::{
    host::{pipes::BrokerEnds, watch::watch},
    terminal::input::{StdinEnd, WriteError},
};

/// What is read of one pipe before the other has its turn: a quarter of what a pipe holds (pipe(7)).
const BUFFER: usize = 16 << 10;

/// Moves bytes between the pipes and the queues, until the session is over.
#[derive(Debug)]
pub(super) struct Pump {
    shared: Arc<Shared>,
    stdin: Option<AsyncFd<OwnedFd>>,
    outputs: Readers,
}

/// The ends that are read, each until it ends.
#[derive(Debug)]
struct Readers([Option<AsyncFd<OwnedFd>>; 2]);

/// How far a turn of reading one pipe got.
enum Turn {
    /// There may be more.
    Full,
    /// There is nothing more for now.
    Empty,
    /// Nobody can write to it any more.
    Over,
}

impl Pump {
    /// # Errors
    /// As epoll_ctl(2).
    pub(super) fn new(shared: Arc<Shared>, ends: BrokerEnds) -> io::Result<Self> {
        let BrokerEnds { stdin, output, stderr } = ends;
        let stdin =
            stdin.map(|stdin| watch(stdin, Interest::WRITABLE | Interest::ERROR)).transpose()?;
        let output = watch(output, Interest::READABLE)?;
        let stderr = watch(stderr, Interest::READABLE)?;
        Ok(Self { shared, stdin, outputs: Readers([Some(output), Some(stderr)]) })
    }

    /// Runs until drained; every descriptor is closed before the end is announced.
    pub(super) async fn run(self) {
        let Self { shared, stdin, mut outputs } = self;
        let deadline = tokio::select! {
            deadline = shared.asked_to_drain() => deadline,
            never = flow(&shared, stdin, &mut outputs) => match never {},
        };
        let drained = timeout_at(deadline, outputs.read_all(&shared)).await;
        debug!(complete = drained.is_ok(), "pipes drained");
        drop(outputs);
        shared.finish();
    }
}

/// Both directions at once, and neither waits for the other. Does not end by itself.
async fn flow(
    shared: &Shared,
    stdin: Option<AsyncFd<OwnedFd>>,
    outputs: &mut Readers,
) -> Infallible {
    let feeding = async {
        if let Some(stdin) = stdin {
            feed(shared, stdin).await;
        }
    };
    tokio::join!(outputs.read_all(shared), feeding);
    std::future::pending().await
}

/// Gives the tool what is written, and closes its input after the last of it.
async fn feed(shared: &Shared, stdin: AsyncFd<OwnedFd>) {
    let fed = tokio::select! {
        fed = feed_all(shared, &stdin) => fed,
        // So that a tool that reads no more is known of before it is written to.
        _ = stdin.ready(Interest::ERROR) => Err(io::ErrorKind::BrokenPipe.into()),
    };
    if let Err(error) = fed {
        let dropped = shared.input.close(WriteError::NoStdin(StdinEnd::Unread));
        debug!(%error, dropped, "the tool closed its standard input");
    }
}

async fn feed_all(shared: &Shared, stdin: &AsyncFd<OwnedFd>) -> io::Result<()> {
    while shared.input.more().await {
        let mut guard = stdin.writable().await?;
        // One that would block waits again.
        if let Ok(given) = guard.try_io(|stdin| shared.input.give_to(stdin.as_fd())) {
            given?;
            consume_budget().await;
        }
    }
    Ok(())
}

impl Readers {
    /// Reads what the tool writes until nobody can write any more: a piece of one, then a piece of the other, so that
    /// neither waits for the other, and what is written to both while nothing is read keeps its order as far as two
    /// pipes can.
    async fn read_all(&mut self, shared: &Shared) {
        while self.any_readable().await {
            let mut more = false;
            for source in Source::BOTH {
                more |= self.take_turn(source, shared);
            }
            if more {
                yield_now().await;
            }
        }
    }

    /// Waits until one of them can be read; gives `false` when both have ended.
    async fn any_readable(&self) -> bool {
        let [output, stderr] = &self.0;
        if output.is_none() && stderr.is_none() {
            return false;
        }
        tokio::select! {
            () = is_readable(output.as_ref()) => true,
            () = is_readable(stderr.as_ref()) => true,
        }
    }

    /// Reads and stores at most [`BUFFER`] of one of them; gives whether there may be more.
    fn take_turn(&mut self, source: Source, shared: &Shared) -> bool {
        let pipe = &mut self.0[source.index()];
        match pipe.as_ref().map(|pipe| turn(pipe, source, shared)) {
            Some(Turn::Full) => true,
            Some(Turn::Empty) | None => false,
            Some(Turn::Over) => {
                *pipe = None;
                shared.ended(source);
                false
            }
        }
    }
}

async fn is_readable(pipe: Option<&AsyncFd<OwnedFd>>) {
    match pipe {
        Some(pipe) => drop(pipe.ready(Interest::READABLE).await),
        None => std::future::pending().await,
    }
}

fn turn(pipe: &AsyncFd<OwnedFd>, source: Source, shared: &Shared) -> Turn {
    let mut buffer = [0; BUFFER];
    let piece = pipe.try_io(Interest::READABLE, |pipe| Ok(read(pipe, &mut buffer)?));
    match piece {
        Ok(0) => Turn::Over,
        Ok(count) => {
            shared.wrote(source, &buffer[..count]);
            Turn::Full
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Turn::Empty,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Turn::Full,
        Err(error) => {
            debug!(%error, "reading a pipe ended");
            Turn::Over
        }
    }
}
