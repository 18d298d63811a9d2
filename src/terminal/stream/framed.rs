//! A client that speaks the frames of [`super::super::framing`].
//!
//! What it is sent is made frame by frame, each only when the one before is sent: a slow client holds one frame, and
//! the rest waits in the output as for every stream. So a stream that is cut can still be told why, between frames.

use std::{
    io,
    net::Shutdown,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
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
    host::watch::watch_copy,
    terminal::{
        framing::{self, Decoder, Peek, Request, Wish},
        input::WriteError,
        output::{Kind, Output, Pending, SubscriptionId},
        screen::RESET_INPUT_MODES,
    },
};

/// Bytes read of a client at once.
const PIECE: usize = 4 << 10;
/// What may wait to be sent while the client is listened to: it may ask for the status over and over.
const ENOUGH: usize = 128 << 10;
/// How long a client that was too slow may take to read why.
const FAREWELL: Duration = Duration::from_secs(5);

/// The broker's side of the client.
pub(super) struct Stream {
    socket: UnixStream,
    watched: AsyncFd<OwnedFd>,
    slot: Slot,
    /// What the bus allows it.
    mode: Mode,
    status: StatusText,
    decoder: Decoder,
    /// What it typed and there was no room for yet.
    untyped: Vec<u8>,
    /// What it sent after that.
    arrived: Vec<u8>,
    outgoing: Vec<u8>,
    role: Role,
    cut: CancellationToken,
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
    /// It was shown the session's end, or told that it was too slow.
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
        status: StatusText,
    ) -> io::Result<Self> {
        let interest = Interest::READABLE | Interest::WRITABLE | Interest::PRIORITY;
        Ok(Self {
            watched: watch_copy(socket.as_fd(), interest)?,
            socket,
            slot,
            mode,
            status,
            decoder: Decoder::default(),
            untyped: Vec::new(),
            arrived: Vec::new(),
            outgoing: Vec::new(),
            role: Role::Waiting,
            cut: CancellationToken::new(),
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
        let leaving = self.leaving;
        let attached = self.role != Role::Waiting && leaving.is_none();
        tokio::select! {
            () = self.cut.cancelled(), if leaving.is_none() => {
                self.outgoing.extend(framing::too_slow());
                self.leaving = Some(Instant::now() + FAREWELL);
            }
            ready = self.watched.writable(), if sending => {
                let sent = send_some(ready, &self.outgoing).map_err(|_| End::Lost)?;
                self.outgoing.drain(..sent);
            }
            ready = self.watched.readable(), if listening => {
                let arrived = receive(ready)?;
                self.arrived = arrived;
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
            Pending::Over => self.leaving = Some(Instant::now() + FAREWELL),
            Pending::End(code) => {
                self.outgoing = framing::exit(code);
                self.leaving = Some(Instant::now() + FAREWELL);
            }
        }
    }

    /// Does what has arrived, until there is no room for input.
    fn obey(&mut self) -> Result<(), End> {
        let untyped = std::mem::take(&mut self.untyped);
        if !self.type_in(&untyped) {
            self.untyped = untyped;
            return Ok(());
        }
        let arrived = std::mem::take(&mut self.arrived);
        let mut rest = &arrived[..];
        while let Some(request) = self.decoder.next(&mut rest).map_err(End::Garbled)? {
            match request {
                Request::Data(piece) if !self.type_in(piece) => {
                    (self.untyped, self.arrived) = (piece.to_vec(), rest.to_vec());
                    return Ok(());
                }
                Request::Data(_) => {}
                request => self.answer(request)?,
            }
        }
        Ok(())
    }

    /// Types, where the client may; `false` where there is no room now.
    fn type_in(&self, piece: &[u8]) -> bool {
        if !matches!(self.role, Role::Controls(_)) {
            return true;
        }
        let typed = self.slot.0.input.offer(piece);
        if typed.is_ok() {
            self.slot.0.touch();
        }
        !matches!(typed, Err(WriteError::InputFull { .. }))
    }

    fn answer(&mut self, request: Request<'_>) -> Result<(), End> {
        match (request, self.role) {
            (Request::Detach, _) => return Err(End::Detached),
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
        self.slot.0.wish(id, wish);
        self.role = Role::Controls(id);
        self.begin(id, true, Output::baseline)
    }

    fn watch(&mut self, peek: Peek) -> Result<(), End> {
        let id = self.slot.0.quietly(Output::name);
        self.role = Role::Watches(id);
        self.begin(
            id,
            false,
            match peek {
                Peek { plain: true, .. } => Output::plain,
                Peek { retained: true, .. } => Output::retained,
                Peek { .. } => Output::baseline,
            },
        )
    }

    /// Follows the output; GEOMETRY and SCREEN come first.
    fn begin(
        &mut self,
        id: SubscriptionId,
        answers: bool,
        start: fn(&mut Output) -> (Vec<u8>, u64),
    ) -> Result<(), End> {
        let kind = Kind { answers, sizes: true };
        let subscribed = self.slot.0.subscribe(id, kind, self.cut.clone(), start);
        // The cursor is of the same output: nothing else is refused.
        let (begin, screen) = subscribed.map_err(|_held| End::Held)?;
        self.outgoing.extend(framing::geometry(begin.size));
        self.outgoing.extend(framing::screen(&screen));
        Ok(())
    }
}

impl Drop for Stream {
    /// As for a raw stream: the client sees its last byte, then the end.
    fn drop(&mut self) {
        if let Some(id) = self.role.subscription() {
            self.slot.0.unsubscribe(id);
        }
        let _ = self.socket.shutdown(Shutdown::Both);
        let mut unread = [0; PIECE];
        while recv(self.socket.as_raw_fd(), &mut unread, MsgFlags::MSG_DONTWAIT)
            .is_ok_and(|count| count > 0)
        {}
    }
}

/// What the client sent.
fn receive(ready: io::Result<AsyncFdReadyGuard<'_, OwnedFd>>) -> Result<Vec<u8>, End> {
    let mut piece = vec![0; PIECE];
    let mut ready = ready.map_err(|_| End::Lost)?;
    let received =
        ready.try_io(|socket| Ok(recv(socket.as_raw_fd(), &mut piece, MsgFlags::MSG_DONTWAIT)?));
    match received {
        Ok(Ok(count @ 1..)) => piece.truncate(count),
        Ok(_) => return Err(End::Lost),
        Err(_would_block) => piece.clear(),
    }
    Ok(piece)
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
