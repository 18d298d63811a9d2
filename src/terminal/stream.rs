//! One attached client: a socket that shows the session's output from a chosen byte on, and takes
//! input.

use std::{
    io::{self, Read},
    net::Shutdown,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::Arc,
};

use nix::sys::socket::{MsgFlags, send};
use tokio::{
    io::{
        Interest, Ready,
        unix::{AsyncFd, AsyncFdReadyGuard},
    },
    task::consume_budget,
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::host::watch::watch_copy;

use super::{
    admission::Admitted,
    input::Taken,
    output::{Kind, Output, Pending, ReadError, SubscriptionId},
    shared::Shared,
};

/// What a stream's client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// See output and give input.
    Control,
    /// See output. A write to the stream fails with `EPIPE`.
    Observe,
}

/// How a stream carries a session.
#[derive(Clone)]
pub enum Framing {
    /// Plain bytes both ways, from there on.
    Raw(Replay),
    /// The frames of [`super::framing`]; it begins once the client has sent ATTACH or PEEK. DATA before that is typed
    /// where the mode is [`Mode::Control`]. The text answers STATUS.
    Pty(StatusText),
}

/// Tells about a session, as JSON.
pub type StatusText = Arc<dyn Fn() -> String + Send + Sync>;

impl std::fmt::Debug for Framing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Raw(replay) => f.debug_tuple("Raw").field(replay).finish(),
            Self::Pty(_) => f.write_str("Pty"),
        }
    }
}

/// Where a raw stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    /// With what paints the screen and sets its modes on a reset terminal, and then with what follows it.
    Screen,
    /// With the oldest byte retained.
    Retained,
    /// With this byte of the session, or the oldest retained where that is later.
    From(u64),
    /// With what the tool writes next.
    Nothing,
}

impl Replay {
    /// What is shown first, and the byte of the output that follows it.
    fn start(self, output: &mut Output) -> (Vec<u8>, u64) {
        match self {
            Self::Screen => output.baseline(),
            Self::Retained => (Vec::new(), 0),
            Self::From(cursor) => (Vec::new(), cursor),
            Self::Nothing => (Vec::new(), output.end()),
        }
    }
}

/// A stream as its client gets it.
#[derive(Debug)]
pub struct Attached {
    /// The client's end, in blocking mode and closed on exec.
    pub socket: UnixStream,
    /// The offset of the first byte of output that it will show; `None` where that is cut later.
    pub begin: Option<u64>,
}

/// A stream that cannot be given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The session has as many as it may have.
    #[error("the session already has {limit} attached streams")]
    TooManyStreams {
        /// How many there may be.
        limit: u32,
    },
    /// The stream is to begin after the end of the output.
    #[error(transparent)]
    Cursor(#[from] ReadError),
    /// The tool is not declared to lend its terminal.
    #[error("the tool does not declare direct = true")]
    NotDirect,
    /// Its output goes to a direct holder, and to nobody else.
    #[error("the session is held directly, by one and no more")]
    Held,
    /// Another has claimed it while the stream was being made.
    #[error("the session was claimed by another")]
    Fenced,
    /// There is nothing left to hold.
    #[error("the session is over")]
    Ended,
    /// No socket was to be had.
    #[error("cannot make a stream: {source}")]
    Socket {
        /// Of socketpair(2) or fcntl(2).
        source: io::Error,
    },
}

mod framed;

/// Bytes given to a socket at once.
const BURST: usize = 64 << 10;

/// The broker's side of a client attached with [`Framing::Raw`].
#[derive(Debug)]
struct Stream {
    socket: UnixStream,
    subscription: SubscriptionId,
    /// What paints the screen, as far as it is not sent yet.
    baseline: Vec<u8>,
    cut: CancellationToken,
    /// Cancelled when it is fenced off, or with the terminal.
    gone: CancellationToken,
    slot: Slot,
}

/// One of the places for streams that a session has.
#[derive(Debug)]
pub(super) struct Slot(Arc<Shared>);

/// Whether the client is listened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listening {
    /// What it sends is input.
    Yes,
    /// Not until the tool has read some of the input that waits.
    WhenRoom,
    /// It may not send, or has said that it will not.
    No,
}

/// Why a stream ends.
#[derive(Debug)]
enum End {
    /// It has shown the session's last byte.
    Complete,
    /// Its client left.
    Detached,
    /// Its client was too slow.
    Cut,
    /// The terminal is held directly.
    Held,
}

/// Attaches a client. The stream lives as long as the client and the terminal do.
pub(super) fn attach(
    shared: &Arc<Shared>,
    client: Admitted,
    framing: Framing,
) -> Result<Attached, AttachError> {
    let slot = Slot::take(shared)?;
    match framing {
        Framing::Raw(replay) => attach_raw(slot, client, replay),
        Framing::Pty(status) => {
            shared.direct.unless_held(|| ()).ok_or(AttachError::Held)?;
            let failed = |source| AttachError::Socket { source };
            let Admitted { mode, wish, pass, .. } = client;
            // An observer sends frames too: that it wants to be shown something.
            let (ours, socket) = pair(Mode::Control).map_err(failed)?;
            let gone = pass.gone.clone();
            let stream =
                framed::Stream::new(ours, slot, mode, wish, status, gone).map_err(failed)?;
            tokio::spawn(pass.run(stream.run()));
            Ok(Attached { socket, begin: None })
        }
    }
}

/// Attaches a client to the bytes alone. The screen is painted in the size that its terminal brings about.
fn attach_raw(slot: Slot, client: Admitted, replay: Replay) -> Result<Attached, AttachError> {
    let Admitted { who, mode, wish, pass } = client;
    let (ours, socket) = pair(mode).map_err(|source| AttachError::Socket { source })?;
    let (shared, cut) = (slot.shared(), CancellationToken::new());
    let kind = Kind { answers: mode == Mode::Control, sizes: false };
    let subscription = shared.quietly(Output::name);
    if let Some(wish) = wish {
        shared.wish_by(subscription, &who, wish);
    }
    let begun = shared.subscribe(subscription, kind, cut.clone(), |output| replay.start(output));
    let (begin, baseline) = begun.inspect_err(|_| shared.wish(subscription, None))?;
    let gone = pass.gone.clone();
    let stream = Stream { socket: ours, subscription, baseline, cut, gone, slot };
    let listening = if mode == Mode::Control { Listening::Yes } else { Listening::No };
    tokio::spawn(pass.run(stream.run(listening)));
    let begin = (replay != Replay::Screen).then_some(begin.cursor);
    Ok(Attached { socket, begin })
}

fn pair(mode: Mode) -> io::Result<(UnixStream, UnixStream)> {
    let (ours, client) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    if mode == Mode::Observe {
        ours.shutdown(Shutdown::Read)?;
    }
    Ok((ours, client))
}

impl Slot {
    fn take(shared: &Arc<Shared>) -> Result<Self, AttachError> {
        let limit = shared.streams;
        let taken = shared.attached.send_if_modified(|count| {
            let free = *count < limit;
            *count += u32::from(free);
            free
        });
        if taken { Ok(Self(shared.clone())) } else { Err(AttachError::TooManyStreams { limit }) }
    }

    /// A place beyond the others: a holder ends every stream, but they leave in their own time.
    pub(super) fn of_holder(shared: &Arc<Shared>) -> Self {
        shared.attached.send_modify(|count| *count += 1);
        Self(shared.clone())
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.attached.send_modify(|count| *count -= 1);
    }
}

impl Stream {
    async fn run(mut self, mut listening: Listening) {
        let end = loop {
            match self.flow(&mut listening).await {
                Ok(None) => {}
                Ok(Some(end)) => break end,
                Err(error) => {
                    warn!(%error, "cannot wait for an attached stream");
                    break End::Detached;
                }
            }
        };
        debug!(?end, "stream ended");
    }

    /// Serves both directions until the stream ends or `listening` changes.
    async fn flow(&mut self, listening: &mut Listening) -> io::Result<Option<End>> {
        // Without an interest in reading, epoll reports the client's leaving (EPOLLHUP) but not
        // that it merely sends no more (EPOLLRDHUP), which would hide it.
        let receiving = match listening {
            Listening::Yes => Interest::READABLE,
            Listening::WhenRoom | Listening::No => Interest::PRIORITY,
        };
        let interest = Interest::WRITABLE | receiving;
        let socket = watch_copy(self.socket.as_fd(), interest)?;
        if let Some(end) = self.paint(&socket).await {
            return Ok(Some(end));
        }
        tokio::select! {
            () = self.cut.cancelled() => Ok(Some(End::Cut)),
            end = self.show(&socket) => Ok(Some(end)),
            next = self.listen(&socket), if *listening == Listening::Yes => Ok(match next {
                Ok(next) => { *listening = next; None }
                Err(_left) => Some(End::Detached),
            }),
            () = left(&socket), if *listening != Listening::Yes => Ok(Some(End::Detached)),
            () = self.slot.0.input.room(), if *listening == Listening::WhenRoom => {
                *listening = Listening::Yes;
                Ok(None)
            }
        }
    }

    /// Gives the client what paints the screen; gives why the stream ends, if it does.
    async fn paint(&mut self, socket: &AsyncFd<OwnedFd>) -> Option<End> {
        while !self.baseline.is_empty() {
            let ready = tokio::select! {
                () = self.cut.cancelled() => return Some(End::Cut),
                ready = socket.writable() => ready,
            };
            match send_some(ready, &self.baseline) {
                Ok(count) => drop(self.baseline.drain(..count)),
                Err(_left) => return Some(End::Detached),
            }
        }
        self.baseline = Vec::new();
        None
    }

    /// Gives the client the output.
    async fn show(&self, socket: &AsyncFd<OwnedFd>) -> End {
        let output = &self.slot.0.output;
        let mut changes = output.subscribe();
        loop {
            let ready = socket.writable().await;
            changes.mark_unchanged();
            let pending = output.borrow().pending(self.subscription, BURST);
            let bytes = match pending {
                Pending::Bytes(bytes) => bytes,
                Pending::End(_) => return End::Complete,
                Pending::Over => return End::Held,
                Pending::Size(_) => {
                    self.slot.0.told(self.subscription);
                    continue;
                }
                Pending::Nothing if changes.changed().await.is_ok() => continue,
                Pending::Nothing => return End::Complete,
            };
            match send_some(ready, &bytes) {
                Ok(count) => self.slot.0.taken(self.subscription, count),
                Err(_left) => return End::Detached,
            }
            consume_budget().await;
        }
    }

    /// Takes the client's input until it sends no more or there is no room; an error is its
    /// leaving.
    async fn listen(&self, socket: &AsyncFd<OwnedFd>) -> io::Result<Listening> {
        loop {
            let mut guard = socket.readable().await?;
            match guard.try_io(|socket| self.slot.0.input.take_from(socket.as_fd())) {
                Ok(Ok(Taken::Bytes(_))) => self.slot.0.touch(),
                Ok(Ok(Taken::Full)) => return Ok(Listening::WhenRoom),
                Ok(Ok(Taken::End)) => return Ok(Listening::No),
                Ok(Err(left)) => return Err(left),
                Err(_would_block) => {}
            }
            consume_budget().await;
        }
    }
}

impl Drop for Stream {
    /// Takes the input that was sent before, but of one that was fenced off, and lets the client see the end after its last byte. A
    /// socket closed with input still in it would show `ECONNRESET` instead (unix(7)); once shut
    /// down, it gets no more of that.
    fn drop(&mut self) {
        self.slot.0.unsubscribe(self.subscription);
        let _ = self.socket.shutdown(Shutdown::Both);
        while !self.gone.is_cancelled()
            && let Ok(Taken::Bytes(_)) = self.slot.0.input.take_from(self.socket.as_fd())
        {}
        let mut no_room = [0; 4096];
        while (&self.socket).read(&mut no_room).is_ok_and(|count| count > 0) {}
    }
}

/// Sends as many bytes as the socket takes, which may be none.
fn send_some(ready: io::Result<AsyncFdReadyGuard<'_, OwnedFd>>, bytes: &[u8]) -> io::Result<usize> {
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    match ready?.try_io(|socket| Ok(send(socket.as_raw_fd(), bytes, flags)?)) {
        Ok(sent) => sent,
        Err(_would_block) => Ok(0),
    }
}

/// Waits until the client has closed its end.
pub(super) async fn left(socket: &AsyncFd<OwnedFd>) {
    while let Ok(mut guard) = socket.ready(Interest::PRIORITY).await {
        if guard.ready().is_read_closed() {
            return;
        }
        guard.clear_ready_matching(Ready::PRIORITY);
    }
}
