//! A client that speaks the frames of [`super::super::framing`].
//!
//! What it is sent is made frame by frame, each only when the one before is sent: a slow client holds one frame, and
//! the rest waits in the output as for every stream. So a stream that is cut can still be told why, between frames.
//!
//! What it was sent last, EXIT or CONNECTION_ERROR, is kept for it for [`FAREWELL`], beside the rest of the frame before;
//! all that time it has its place among the session's streams.

use std::{
    io,
    net::Shutdown,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

use nix::sys::socket::{MsgFlags, recv};
use tokio::{
    io::{
        Interest,
        unix::{AsyncFd, AsyncFdReadyGuard},
    },
    sync::watch,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::{BURST, Mode, Slot, StatusText, left, send_some};
use crate::{
    host::{pty::Size, watch::watch_copy},
    terminal::{
        framing::{self, Decoder, Peek, Request, Wish},
        output::{Kind, Output, Pending, SubscriptionId},
        plain::plain,
        screen::RESET_INPUT_MODES,
    },
};

/// Bytes read of a client at once.
const PIECE: usize = 4 << 10;
/// Bytes at most that are read of a client whose stream ends: more than its socket holds, by default 208 KiB.
const UNREAD: usize = 1 << 20;
/// What may wait to be sent while the client is listened to: it may ask for the status over and over.
const ENOUGH: usize = 128 << 10;
/// How long a client may take to read why its stream ends.
const FAREWELL: Duration = Duration::from_secs(60);

/// The broker's side of the client.
pub(super) struct Stream {
    socket: UnixStream,
    watched: AsyncFd<OwnedFd>,
    /// Whether `watched` tells what the client sends.
    listening: bool,
    slot: Slot,
    /// What the bus allows it.
    mode: Mode,
    /// The size of its terminal, where ATTACH tells none.
    wish: Option<Wish>,
    status: StatusText,
    decoder: Decoder,
    /// What it typed and there was no room for yet.
    untyped: Vec<u8>,
    /// What it sent after that.
    arrived: Vec<u8>,
    outgoing: Vec<u8>,
    role: Role,
    cut: CancellationToken,
    /// Cancelled when it is fenced off, or with the terminal.
    gone: CancellationToken,
    /// No frame follows; by when it must be gone.
    leaving: Option<Instant>,
}

/// What the client asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Nothing yet.
    Waiting,
    Controls(SubscriptionId),
    Watches(SubscriptionId),
}

/// Why it is over.
#[derive(Debug)]
enum End {
    /// It was shown the session's end, or told that it was too slow, or took too long to look.
    Told,
    /// It said so.
    Detached,
    /// The terminal is held directly.
    Held,
    /// It is gone without a word.
    Lost,
    /// It cannot be understood.
    Garbled(framing::TooLong),
}

impl Role {
    fn subscription(self) -> Option<SubscriptionId> {
        match self {
            Self::Waiting => None,
            Self::Controls(id) | Self::Watches(id) => Some(id),
        }
    }
}

impl Stream {
    pub(super) fn new(
        socket: UnixStream,
        slot: Slot,
        mode: Mode,
        wish: Option<Wish>,
        status: StatusText,
        gone: CancellationToken,
    ) -> io::Result<Self> {
        Ok(Self {
            watched: watch_copy(socket.as_fd(), Interest::READABLE | Interest::WRITABLE)?,
            listening: true,
            socket,
            slot,
            mode,
            wish,
            status,
            decoder: Decoder::default(),
            untyped: Vec::new(),
            arrived: Vec::new(),
            outgoing: Vec::new(),
            role: Role::Waiting,
            cut: CancellationToken::new(),
            gone,
            leaving: None,
        })
    }

    pub(super) async fn run(mut self) {
        let mut changes = self.slot.0.output.subscribe();
        let end = loop {
            if let Err(end) = self.turn(&mut changes).await {
                break end;
            }
        };
        if self.leaving.is_none() && !matches!(end, End::Detached | End::Garbled(_)) {
            let _ = self.socket.shutdown(Shutdown::Both);
            self.leave(&[]);
        }
        match end {
            End::Garbled(error) => warn!(%error, "a framed stream ended"),
            end => debug!(?end, "a framed stream ended"),
        }
    }

    /// Waits for the next thing to do, and does it.
    async fn turn(&mut self, changes: &mut watch::Receiver<Output>) -> Result<(), End> {
        changes.mark_unchanged();
        self.fill();
        let sending = !self.outgoing.is_empty();
        if !sending && self.leaving.is_some() {
            return Err(End::Told);
        }
        let waiting = !self.untyped.is_empty();
        let listening = !waiting && self.leaving.is_none() && self.outgoing.len() < ENOUGH;
        self.listen(listening).map_err(|_| End::Lost)?;
        let leaving = self.leaving;
        let attached = self.role != Role::Waiting && leaving.is_none();
        tokio::select! {
            () = self.cut.cancelled(), if leaving.is_none() => self.leave(&framing::too_slow()),
            ready = self.watched.writable(), if sending => {
                let sent = send_some(ready, &self.outgoing).map_err(|_| End::Lost)?;
                self.outgoing.drain(..sent);
            }
            ready = self.watched.readable(), if listening => {
                self.arrived = arrived(ready)?;
                self.obey()?;
            }
            () = left(&self.watched), if !listening => return Err(End::Lost),
            () = self.slot.0.input.room(), if waiting => self.obey()?,
            _ = changes.changed(), if attached && !sending => {}
            () = self.slot.0.direct.held(), if self.role == Role::Waiting => return Err(End::Held),
            () = until(leaving) => return Err(End::Told),
        }
        tokio::task::consume_budget().await;
        Ok(())
    }

    /// Has what the client sends be told of, or its leaving alone: one that sends no more has not left.
    fn listen(&mut self, listening: bool) -> io::Result<()> {
        if self.listening != listening {
            let receiving = if listening { Interest::READABLE } else { Interest::PRIORITY };
            self.watched = watch_copy(self.socket.as_fd(), Interest::WRITABLE | receiving)?;
            self.listening = listening;
        }
        Ok(())
    }

    /// Makes the next frame, where there is one and none is on its way.
    fn fill(&mut self) {
        let Some(id) =
            self.role.subscription().filter(|_| self.outgoing.is_empty() && self.leaving.is_none())
        else {
            return;
        };
        let shared = &self.slot.0;
        let pending = shared.output.borrow().pending(id, BURST);
        match pending {
            Pending::Bytes(bytes) => {
                self.outgoing = [&framing::data_header(bytes.len())[..], &bytes].concat();
                shared.taken(id, bytes.len());
            }
            Pending::Size(size) => {
                self.outgoing = framing::geometry(size);
                shared.told(id);
            }
            Pending::Nothing => {}
            // No frame says that the session goes on without its streams: to the client it is a lost connection.
            Pending::Over => self.leave(&[]),
            Pending::End(code) => self.leave(&framing::exit(code)),
        }
    }

    /// Does what has arrived, until there is no room for input.
    fn obey(&mut self) -> Result<(), End> {
        let typed = self.type_in(&self.untyped);
        self.untyped.drain(..typed);
        if !self.untyped.is_empty() {
            return Ok(());
        }
        let arrived = std::mem::take(&mut self.arrived);
        let mut rest = &arrived[..];
        while let Some(request) = self.decoder.next(&mut rest).map_err(End::Garbled)? {
            let Request::Data(piece) = request else {
                self.answer(request)?;
                continue;
            };
            let typed = self.type_in(piece);
            if typed < piece.len() {
                (self.untyped, self.arrived) = (piece[typed..].to_vec(), rest.to_vec());
                return Ok(());
            }
        }
        Ok(())
    }

    /// Does what the client had sent by now, as far as there is room, and nothing that comes later: it may not look for
    /// a while, and would type what it no longer means. This frame is the last that it is sent.
    fn leave(&mut self, last: &[u8]) {
        self.leaving = Some(Instant::now() + FAREWELL);
        for _ in 0..UNREAD / PIECE {
            if self.gone.is_cancelled() || self.obey().is_err() || !self.untyped.is_empty() {
                break;
            }
            match receive(self.socket.as_fd()) {
                Ok(arrived) if !arrived.is_empty() => self.arrived = arrived,
                _ => break,
            }
        }
        self.outgoing.extend(last);
    }

    /// Types as much as there is room for; gives how much is done with, which is all where the client may not type or
    /// the session takes no more.
    fn type_in(&self, piece: &[u8]) -> usize {
        let types = match self.role {
            Role::Waiting => self.mode == Mode::Control,
            Role::Controls(_) => true,
            Role::Watches(_) => false,
        };
        if !types || piece.is_empty() {
            return piece.len();
        }
        let offered = self.slot.0.input.offer(piece);
        if offered.is_ok_and(|count| count > 0) {
            self.slot.0.touch();
        }
        offered.unwrap_or(piece.len())
    }

    fn answer(&mut self, request: Request<'_>) -> Result<(), End> {
        match (request, self.role) {
            (Request::Detach, _) => return Err(End::Detached),
            (Request::Status, _) if self.leaving.is_some() => {}
            (Request::Status, _) => self.outgoing.extend(framing::status(&(self.status)())),
            (Request::Attach(wish), Role::Waiting) if self.mode == Mode::Control => {
                self.attach(wish)?;
            }
            (Request::Attach(_), Role::Waiting) => self.watch(Peek::default())?,
            (Request::Peek(peek), Role::Waiting) => self.watch(peek)?,
            (Request::Attach(Some(wish)) | Request::Resize(Some(wish)), Role::Controls(id)) => {
                self.slot.0.wish(id, Some(wish));
            }
            (Request::ResetInputModes, Role::Controls(_)) => {
                let shared = &self.slot.0;
                shared.direct.unless_held(|| shared.wrote(RESET_INPUT_MODES));
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes control. The screen is painted in the size that the client's terminal brings about.
    fn attach(&mut self, wish: Option<Wish>) -> Result<(), End> {
        let id = self.slot.0.quietly(Output::name);
        self.slot.0.wish(id, wish.or(self.wish));
        self.role = Role::Controls(id);
        let (size, screen) = self.follow(id, true, Output::baseline)?;
        self.begin(size, &screen);
        Ok(())
    }

    fn watch(&mut self, peek: Peek) -> Result<(), End> {
        let id = self.slot.0.quietly(Output::name);
        self.role = Role::Watches(id);
        let start = match peek {
            Peek { retained: true, .. } => Output::retained,
            Peek { plain: true, .. } => Output::plain,
            Peek { .. } => Output::baseline,
        };
        let (size, screen) = self.follow(id, false, start)?;
        match peek {
            Peek { plain: true, retained: true } => self.begin(size, plain(&screen).as_bytes()),
            Peek { .. } => self.begin(size, &screen),
        }
        Ok(())
    }

    /// Follows the output; gives the size in force and what is shown first.
    fn follow(
        &self,
        id: SubscriptionId,
        answers: bool,
        start: fn(&mut Output) -> (Vec<u8>, u64),
    ) -> Result<(Size, Vec<u8>), End> {
        let kind = Kind { answers, sizes: true };
        let subscribed = self.slot.0.subscribe(id, kind, self.cut.clone(), start);
        // The cursor is of the same output: nothing else is refused.
        subscribed.map(|(begin, screen)| (begin.size, screen)).map_err(|_held| End::Held)
    }

    fn begin(&mut self, size: Size, screen: &[u8]) {
        self.outgoing.extend(framing::geometry(size));
        self.outgoing.extend(framing::screen(screen));
    }
}

impl Drop for Stream {
    /// As for a raw stream: the client sees its last byte, then the end.
    fn drop(&mut self) {
        if let Some(id) = self.role.subscription() {
            self.slot.0.unsubscribe(id);
        }
        let _ = self.socket.shutdown(Shutdown::Both);
        while receive(self.socket.as_fd()).is_ok_and(|unread| !unread.is_empty()) {}
    }
}

/// What has arrived; that nothing will is the client's leaving.
fn arrived(ready: io::Result<AsyncFdReadyGuard<'_, OwnedFd>>) -> Result<Vec<u8>, End> {
    let mut ready = ready.map_err(|_| End::Lost)?;
    match ready.try_io(|socket| receive(socket.as_fd())) {
        Ok(Ok(arrived)) if !arrived.is_empty() => Ok(arrived),
        Ok(_) => Err(End::Lost),
        Err(_would_block) => Ok(Vec::new()),
    }
}

/// What the client sent, up to [`PIECE`]; nothing where it sends no more.
///
/// # Errors
/// As recv(2), with [`io::ErrorKind::WouldBlock`] where there is nothing yet.
fn receive(socket: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; PIECE];
    let count = recv(socket.as_raw_fd(), &mut piece, MsgFlags::MSG_DONTWAIT)?;
    piece.truncate(count);
    Ok(piece)
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
