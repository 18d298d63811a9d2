//! What the tasks of a session have in common: the output, the input, and what is seen of them.

use std::{
    fmt, io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use tokio::{io::unix::AsyncFd, sync::watch::Sender, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{
    Appearance, Stats,
    direct::Direct,
    fence::Fence,
    follower::Drawn,
    framing::Wish,
    input::{Input, WriteError},
    output::{Begin, Kind, Output, SubscriptionId},
    pulse::LastOutput,
    queries::{self, Unanswered},
    stream::AttachError,
};
use crate::host::pty::{self, Size};

/// When the rest must be read by, and what the leader's end was.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drain {
    pub(super) deadline: Instant,
    pub(super) code: i32,
}

/// What the tasks of a session have in common.
pub(super) struct Shared {
    pub(super) output: Sender<Output>,
    pub(super) appearance: Sender<Appearance>,
    pub(super) unanswered: Unanswered,
    pub(super) input: Input,
    pub(super) direct: Direct,
    pub(super) fence: Fence,
    pub(super) attached: Sender<u32>,
    /// How many may be attached.
    pub(super) streams: u32,
    /// By when the rest must be read, once asked for.
    pub(super) drain: Sender<Option<Drain>>,
    pub(super) controller: Mutex<Option<Arc<AsyncFd<OwnedFd>>>>,
    pub(super) last_activity_usec: AtomicU64,
    pub(super) last_output: Arc<LastOutput>,
    /// Cancelled when nobody has the terminal any longer.
    pub(super) gone: CancellationToken,
}

impl Shared {
    /// Stores what the tool wrote and wakes who waits for it. After the end nothing is stored.
    pub(super) fn wrote(self: &Arc<Self>, bytes: &[u8]) {
        let mut drawn = Vec::new();
        let stored = self.output.send_if_modified(|output| {
            if bytes.is_empty() || output.has_ended() {
                return false;
            }
            self.last_output.touch();
            output.append(bytes, |turn| drawn.push(turn));
            true
        });
        if stored {
            self.note_all(drawn);
            self.touch();
        }
    }

    /// Draws for a turn; gives whether anything was drawn.
    pub(super) fn draw(self: &Arc<Self>) -> bool {
        let turn = self.quietly(|output| output.draw(false));
        let progress = turn.progress;
        self.note(turn);
        progress
    }

    fn note_all(self: &Arc<Self>, drawn: Vec<Drawn>) {
        for turn in drawn {
            self.note(turn);
        }
    }

    /// Passes on what came of drawing.
    fn note(self: &Arc<Self>, turn: Drawn) {
        if let Some(title) = turn.title {
            self.appearance.send_modify(|appearance| appearance.title = title);
        }
        queries::answer_later(self, turn.queries);
    }

    /// Closes the controller end, then announces the end.
    pub(super) fn finish(&self, code: i32) {
        self.input.close(WriteError::Closed);
        drop(self.controller.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.output.send_modify(|output| output.finish(code));
    }

    /// Sets the size at this byte of the output: what comes after it may have been written in the new size, what
    /// came before was not.
    pub(super) fn resize(self: &Arc<Self>, size: Size) -> io::Result<bool> {
        let (mut result, mut drawn) = (Ok(false), Vec::new());
        self.output.send_if_modified(|output| {
            let controller = self.controller.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(controller) = &*controller else { return false };
            result = pty::set_size(controller.get_ref().as_fd(), size);
            let changed = *result.as_ref().unwrap_or(&false);
            if changed {
                output.catch_up(|turn| drawn.push(turn));
                output.resize(size);
            }
            changed
        });
        self.note_all(drawn);
        if *result.as_ref().unwrap_or(&false) {
            self.appearance.send_modify(|appearance| appearance.size = size);
        }
        result
    }

    /// Lets another read the output from here on, which ends all that follows it; gives where that is. Questions that
    /// were asked before are not the other's to answer.
    pub(super) fn lend(self: &Arc<Self>) -> u64 {
        let (mut begin, mut drawn) = (0, Vec::new());
        self.output.send_modify(|output| begin = output.lend(|turn| drawn.push(turn)));
        self.note_all(drawn);
        self.appearance.send_if_modified(|seen| !std::mem::take(&mut seen.title).is_empty());
        begin
    }

    /// Goes on in the size that another has left the terminal in.
    pub(super) fn follow_size(&self) {
        let mut changed = None;
        self.output.send_if_modified(|output| {
            let controller = self.controller.lock().unwrap_or_else(PoisonError::into_inner);
            let size = controller.as_ref().and_then(|fd| pty::size(fd.get_ref().as_fd()).ok());
            changed = size.filter(|size| *size != self.appearance.borrow().size);
            changed.is_some_and(|size| {
                output.resize(size);
                true
            })
        });
        if let Some(size) = changed {
            self.appearance.send_modify(|appearance| appearance.size = size);
        }
    }

    /// A client wishes a size, or none any more. A direct holder has the terminal in its own size.
    pub(super) fn wish(self: &Arc<Self>, client: SubscriptionId, wish: Option<Wish>) {
        self.agree(|output| output.wish(client, wish));
    }

    /// As [`Self::wish`], for a client of this name that cannot say itself when it wishes another.
    pub(super) fn wish_by(self: &Arc<Self>, client: SubscriptionId, who: &str, wish: Wish) {
        self.agree(|output| output.wish_by(client, who, wish));
    }

    fn agree(self: &Arc<Self>, wish: impl FnOnce(&mut Output) -> Option<Size>) {
        let resize = || self.quietly(wish).map_or(Ok(false), |size| self.resize(size));
        if let Some(Err(error)) = self.direct.unless_held(resize) {
            warn!(%error, "cannot give a terminal the size of its streams");
        }
    }

    /// Follows the output from where `start` says, which also gives what is shown before it.
    pub(super) fn subscribe(
        self: &Arc<Self>,
        id: SubscriptionId,
        kind: Kind,
        cut: CancellationToken,
        start: impl FnOnce(&mut Output) -> (Vec<u8>, u64),
    ) -> Result<(Begin, Vec<u8>), AttachError> {
        let mut drawn = Vec::new();
        let subscribe = |output: &mut Output| {
            output.revive();
            // What was asked before is the broker's to answer, unless it lies behind the start.
            if kind.answers {
                output.catch_up(|turn| drawn.push(turn));
            }
            let (before, cursor) = start(output);
            output.subscribe(id, cursor, kind, cut).map(|begin| (begin, before))
        };
        let subscribed = self.direct.unless_held(|| self.quietly(subscribe));
        self.note_all(drawn);
        let subscribed = subscribed.ok_or(AttachError::Held)??;
        if kind.answers {
            let asked = self.unanswered.leave_to_client(subscribed.0.cursor);
            self.quietly(|output| output.leave(asked));
        }
        Ok(subscribed)
    }

    pub(super) fn unsubscribe(self: &Arc<Self>, id: SubscriptionId) {
        self.wish(id, None);
        let orphans = self.quietly(|output| output.unsubscribe(id));
        queries::answer_later(self, orphans);
    }

    pub(super) fn told(&self, id: SubscriptionId) {
        self.quietly(|output| output.told(id));
    }

    pub(super) fn taken(&self, id: SubscriptionId, count: usize) {
        self.quietly(|output| output.taken(id, count));
    }

    /// Changes what no reader waits for.
    pub(super) fn quietly<R>(&self, change: impl FnOnce(&mut Output) -> R) -> R {
        let mut result = None;
        self.output.send_if_modified(|output| {
            result = Some(change(output));
            false
        });
        result.expect("the change was made")
    }

    /// Lends the controller end; `None` when it is closed.
    pub(super) fn controller<R>(&self, with: impl FnOnce(BorrowedFd<'_>) -> R) -> Option<R> {
        let controller = self.controller.lock().unwrap_or_else(PoisonError::into_inner);
        controller.as_ref().map(|controller| with(controller.get_ref().as_fd()))
    }

    /// The size in force: a direct holder sets it in the kernel, and no event tells.
    pub(super) fn size(&self) -> Size {
        let asked = || self.controller(|controller| pty::size(controller).ok()).flatten();
        let held = self.direct.holds().borrow().is_held();
        let set = held.then(asked).flatten();
        set.unwrap_or_else(|| self.appearance.borrow().size)
    }

    pub(super) fn stats(&self) -> Stats {
        let (bytes_out, bytes_dropped) = {
            let output = self.output.borrow();
            (output.end(), output.dropped())
        };
        Stats {
            bytes_out,
            bytes_in: self.input.accepted(),
            bytes_dropped,
            last_activity_usec: self.last_activity_usec.load(Ordering::Relaxed),
        }
    }

    pub(super) fn touch(&self) {
        self.last_activity_usec.store(now_usec(), Ordering::Relaxed);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("output", &*self.output.borrow()).finish_non_exhaustive()
    }
}

pub(super) fn now_usec() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
