//! The live bytes of a session: from the tool's terminal to whoever reads, and back.
//!
//! ```text
//!                       ┌──────────── Output ───────────┐
//!   controller ──pump──▶│ ring, backlog, subscriptions  │──▶ read, read_wait, streams
//!        ▲              │ screen model, sizes           │──▶ screen, baseline of streams
//!        │              └───────────────────────────────┘
//!        └─────pump──── Input (bounded queue) ◀──────────── write, streams
//! ```
//!
//! One task for each session, the pump, reads and writes the controller end, and nothing that a
//! reader does or fails to do holds it up. Output is addressed by its offset since the session
//! began. The newest bytes are retained in a ring; an attached stream is a cursor that moves over
//! the same bytes, and what a slow one still needs of those that left the ring is kept in a
//! backlog, once for all streams. One task for each stream moves bytes from there to its socket.
//! Instead of all that, the controller end itself can be lent to one holder, where it is declared.
//!
//! A model of the screen draws the same bytes, when there is nothing else to do or when they would leave the ring
//! undrawn. So it never holds the tool up, and costs no thread: plain text that scrolls out of sight unseen is not
//! drawn at all. A painted stream begins with what paints that screen, and goes on with the byte after those drawn.
//!
//! A session on pipes has none of this but rings and an input ([`Pipes`]); [`Channel`] is either.
//!
//! Every queue is bounded: the ring by its capacity and the pool of all rings, a stream by
//! [`Terminal::MAX_STREAM_LAG`], the input by [`Bounds::input_queue_bytes`], streams by
//! [`Bounds::streams`].
#![forbid(unsafe_code)]

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex, Weak, atomic::AtomicU64},
    time::Duration,
};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use tokio::{
    io::Interest,
    sync::watch::{Receiver, Sender},
    time::{Instant, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

mod admission;
mod backlog;
mod bounds;
mod channel;
mod direct;
mod fence;
mod follower;
pub mod framing;
mod geometry;
mod input;
pub mod keys;
mod output;
mod paste;
mod pipes;
mod plain;
mod pool;
mod pulse;
mod pump;
mod queries;
mod ring;
pub mod screen;
mod shared;
mod span;
mod stream;
mod subscription;
mod typing;

pub use admission::Admission;
pub use bounds::Bounds;
pub use channel::Channel;
pub use direct::{Held, Holds};
pub use input::{StdinEnd, WriteError};
pub use output::{Chunk, ReadError};
pub use paste::PasteError;
pub use pipes::{Pipes, Source};
pub use pool::RingPool;
pub use pulse::Pulse;
pub use screen::{InputModes, ScreenError, View};
pub use stream::{AttachError, Attached, Framing, Mode, Replay, StatusText};
pub use typing::TypeError;

use crate::host::{
    pty::{self, Size},
    watch::watch,
};

use direct::Direct;
use fence::Fence;
use input::Input;
use output::Output;
use pulse::{Flow, LastOutput};
use pump::Pump;
use queries::Unanswered;
use ring::Ring;
use shared::{Drain, Shared, now_usec};

/// The terminal of one session, as the broker sees it.
///
/// Cheap to clone. When the last clone is gone, its streams end and its descriptors are closed.
#[derive(Debug, Clone)]
pub struct Terminal {
    shared: Arc<Shared>,
    _alive: Arc<DropGuard>,
}

/// A terminal that goes when nobody else has it.
#[derive(Debug, Clone)]
pub struct WeakTerminal(Weak<Shared>);

impl WeakTerminal {
    /// How much has flowed; `None` where the terminal is gone.
    #[must_use]
    pub fn stats(&self) -> Option<Stats> {
        self.0.upgrade().map(|shared| shared.stats())
    }

    /// As [`Terminal::size`]; `None` where the terminal is gone.
    #[must_use]
    pub fn size(&self) -> Option<Size> {
        self.0.upgrade().map(|shared| shared.size())
    }
}

/// How much has flowed. Of a session on pipes, both outputs together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes that the tool wrote.
    pub bytes_out: u64,
    /// Bytes of input that were accepted.
    pub bytes_in: u64,
    /// Bytes of output that can be read no longer, since newer ones took their place.
    pub bytes_dropped: u64,
    /// When bytes last flowed, either way, or else when the session began: µs since the epoch.
    pub last_activity_usec: u64,
}

/// What is seen of a terminal from afar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appearance {
    /// The size in force.
    pub size: Size,
    /// The title that the tool has set; empty where it has not.
    pub title: String,
}

impl Terminal {
    /// 4 MiB: the largest ring. A request for more gets this.
    pub const MAX_RING: usize = Ring::MAX_CAPACITY;
    /// 4 KiB: the smallest ring. A request for less gets this.
    pub const MIN_RING: usize = Ring::MIN_CAPACITY;
    /// 8 MiB: how far a stream may fall behind before it is disconnected. Less where the
    /// [`RingPool`] has no memory left for slow streams, but never less than the ring.
    pub const MAX_STREAM_LAG: u64 = Output::MAX_LAG;

    /// Starts to read and write the controller end of a pty, within `bounds`. Must be called on a tokio runtime.
    ///
    /// `user` is a user end of the same pty. It is held, never read or written, until
    /// [`Self::drain`]: while somebody has it open, a tool that closes its terminal and opens it
    /// again later does not look like one that ended.
    ///
    /// # Errors
    /// As fcntl(2) and epoll_ctl(2).
    pub fn start(
        controller: OwnedFd,
        user: OwnedFd,
        bounds: Bounds,
        pool: &RingPool,
    ) -> io::Result<Self> {
        let flags = OFlag::from_bits_retain(fcntl(&controller, FcntlArg::F_GETFL)?);
        fcntl(&controller, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        let size = pty::size(controller.as_fd())?;
        let controller = Arc::new(watch(controller, Interest::READABLE | Interest::WRITABLE)?);
        let gone = CancellationToken::new();
        let shared = Arc::new(Shared {
            output: Sender::new(Output::new(bounds.ring_bytes, size, pool)),
            appearance: Sender::new(Appearance { size, title: String::new() }),
            unanswered: Unanswered::default(),
            input: Input::new(&bounds),
            direct: Direct::new(bounds.direct),
            fence: Fence::default(),
            attached: Sender::new(0),
            streams: bounds.streams,
            drain: Sender::new(None),
            controller: Mutex::new(Some(controller.clone())),
            last_activity_usec: AtomicU64::new(now_usec()),
            last_output: Arc::new(LastOutput::new()),
            gone: gone.clone(),
        });
        let pump = Pump::new(shared.clone(), controller, user);
        tokio::spawn(gone.clone().run_until_cancelled_owned(pump.run()));
        Ok(Self { shared, _alive: Arc::new(gone.drop_guard()) })
    }

    /// Reads the rest of the output and closes the terminal. To be called when the session's leader
    /// ended and its scope is empty.
    ///
    /// The rest ends when nobody has the user end open any longer, or after `at_most`, whoever
    /// still has it open. Then the descriptors are closed, streams show their last bytes and end,
    /// and reads are told of the end. What is retained stays readable. Where called again, the
    /// first deadline holds. `code` is told to framed streams: the leader's exit code, or 128 and the number of the
    /// signal that ended it; -1 where neither is known.
    pub async fn drain(&self, at_most: Duration, code: i32) {
        self.shared.drain.send_if_modified(|drain| {
            let first = drain.is_none();
            drain.get_or_insert_with(|| Drain { deadline: Instant::now() + at_most, code });
            first
        });
        let ended = self.shared.output.subscribe().wait_for(Output::has_ended).await.map(drop);
        ended.expect("the sender is in self.shared");
    }

    /// Queues input for the tool: all of it, or none. Gives how many bytes were accepted since the
    /// session began, from all writers. Never waits.
    ///
    /// # Errors
    /// [`WriteError`]; nothing was queued then.
    pub fn write(&self, bytes: &[u8]) -> Result<u64, WriteError> {
        self.shared.input.push(bytes).inspect(|_| self.shared.touch())
    }

    /// Up to `max` bytes of output from `cursor` on, without waiting. Where bytes at the cursor
    /// were dropped the piece begins later.
    ///
    /// # Errors
    /// [`ReadError::BadCursor`] where `cursor` lies after the last byte so far.
    pub fn read(&self, cursor: u64, max: usize) -> Result<Chunk, ReadError> {
        self.shared.output.borrow().read(cursor, max)
    }

    /// As [`Self::read`], but where there is nothing at the cursor, waits for output or the end, at
    /// most so long.
    ///
    /// # Errors
    /// As [`Self::read`], at once.
    pub async fn read_wait(
        &self,
        cursor: u64,
        max: usize,
        wait: Duration,
    ) -> Result<Chunk, ReadError> {
        self.shared.output.borrow().read(cursor, 0)?;
        let mut changes = self.shared.output.subscribe();
        let arrived = changes.wait_for(|output| output.end() > cursor || output.has_ended());
        let _in_time = timeout(wait, arrived).await.is_ok();
        self.read(cursor, max)
    }

    /// Attaches a client: gives the client's end of a fresh socket pair that shows the session in this framing, without
    /// a gap and nothing twice, up to its end and then EOF.
    ///
    /// With [`Mode::Control`] what the client types is input; its socket is not read while
    /// its bound of bytes waits for the tool. A client detaches by closing its end, and what
    /// it sent for which there was no room yet is dropped then; a client that only shuts down its
    /// sending half still sees output, but for a framed one. A client that falls [`Self::MAX_STREAM_LAG`] behind sees
    /// EOF early; a framed one is told, and has a minute to read that, as it has for the exit code. After the session's
    /// end a stream shows what is retained, then EOF. `who` is whom it is for, as [`Self::fence`] knows them. Where it
    /// takes time to find out whether they may have it, [`Self::admit`] them first.
    ///
    /// # Errors
    /// [`AttachError`]; nothing is left of the stream then.
    pub fn attach(&self, who: &str, mode: Mode, framing: Framing) -> Result<Attached, AttachError> {
        self.admit(who, mode).attach(framing)
    }

    /// Takes the session from all but one: the others' controlling streams see EOF, and what they type from now on is
    /// no input; a hold of theirs ends. Where `observers`, streams that only observe end as well.
    pub fn fence(&self, but: &str, observers: bool) {
        self.shared.fence.close(but, observers);
        direct::take_back(&self.shared);
    }

    /// Sets the terminal's size; gives whether it is another than before. After the end nothing happens. It is in force
    /// until a client that controls the session says what size it wishes, or goes and leaves others that do.
    ///
    /// # Errors
    /// As ioctl_tty(2).
    pub fn resize(&self, size: Size) -> io::Result<bool> {
        self.shared.resize(size)
    }

    /// As [`Self::resize`]; and the raw streams of this client that wish a size wish this one from now on, since they
    /// cannot say so themselves.
    ///
    /// # Errors
    /// As [`Self::resize`].
    pub fn resize_by(&self, who: &str, size: Size) -> io::Result<bool> {
        self.shared.quietly(|output| output.follow(who, size.into()));
        self.resize(size)
    }

    /// Size and title, to be read now or watched.
    #[must_use]
    pub fn appearance(&self) -> Receiver<Appearance> {
        self.shared.appearance.subscribe()
    }

    /// The screen as text, with all that the tool had written when this was asked. After a hold it is what was written
    /// since, on a blank screen.
    ///
    /// # Errors
    /// [`ScreenError`].
    pub async fn screen(&self) -> Result<View, ScreenError> {
        self.draw_all().await;
        let view = self.shared.direct.unless_held(|| self.shared.output.borrow().view());
        view.ok_or(ScreenError::Held)?.ok_or(ScreenError::NoModel)
    }

    /// Draws what the tool had written when this was asked.
    async fn draw_all(&self) {
        self.shared.quietly(Output::revive);
        let asked = self.shared.output.borrow().end();
        while self.shared.output.borrow().drawn() < asked && self.shared.draw() {
            tokio::task::yield_now().await;
        }
    }

    /// The bytes that paint the screen on a reset terminal, as far as it is drawn; what is retained where there is no
    /// model of it.
    ///
    /// # Errors
    /// [`ScreenError::Held`].
    pub fn baseline(&self) -> Result<Vec<u8>, ScreenError> {
        let paint = || self.shared.quietly(|output| output.baseline().0);
        self.shared.direct.unless_held(paint).ok_or(ScreenError::Held)
    }

    /// The size in force: a direct holder sets it in the kernel, and no event tells.
    #[must_use]
    pub fn size(&self) -> Size {
        self.shared.size()
    }

    /// Lends the controller end to one holder, who reads what the tool writes from here on: streams end, and
    /// nobody else sees the output, until the holder is gone or the session over. Then the rest is read here
    /// as before, and nothing is lost but what the holder had read.
    ///
    /// A holder of a session that is over has half of the drain's time for the rest. `who` is the holder, as
    /// [`Self::fence`] knows it.
    ///
    /// # Errors
    /// [`AttachError`]; nothing has changed then.
    pub fn hold(&self, who: &str) -> Result<Held, AttachError> {
        self.admit(who, Mode::Control).hold()
    }

    /// Whether the controller end is held and what went unseen, to be read now or watched.
    #[must_use]
    pub fn holds(&self) -> Receiver<Holds> {
        self.shared.direct.holds()
    }

    /// How many streams are attached, a holder included, to be read now or watched.
    #[must_use]
    pub fn attached(&self) -> Receiver<u32> {
        self.shared.attached.subscribe()
    }

    /// Lends the controller end, to be asked or set; `None` when it is closed. The drain waits for
    /// `with`, which must not block.
    pub fn controller<R>(&self, with: impl FnOnce(BorrowedFd<'_>) -> R) -> Option<R> {
        self.shared.controller(with)
    }

    /// How much has flowed so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// When the tool last wrote, to be asked or waited for.
    #[must_use]
    pub fn pulse(&self) -> Pulse {
        let flow = Flow::Terminal(self.shared.output.subscribe());
        Pulse::new(self.shared.last_output.clone(), flow)
    }

    /// A handle that does not keep the terminal.
    #[must_use]
    pub fn downgrade(&self) -> WeakTerminal {
        WeakTerminal(Arc::downgrade(&self.shared))
    }
}
