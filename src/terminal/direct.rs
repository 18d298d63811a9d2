//! The controller end lent whole, to a terminal that needs the descriptor itself: one holder reads it, and
//! the pump does not until the holder is gone.
//!
//! What the holder reads, nobody else sees, and no kernel counts it: it is in no ring, no stream and no
//! number. So streams end where a hold begins and are refused while it lasts, and the offset where it began is
//! kept ([`Holds::unseen_at`]). The screen is the holder's to know, and the tool's questions about its terminal
//! are the holder's to answer; after the hold the screen model begins anew, blank and in the size that the holder
//! left. Input still comes from both, the holder and the bus.
//!
//! A hold lasts as long as the socket that was given with the descriptor: its end tells that the holder
//! vanished, however it did. The descriptor itself cannot be taken back. A holder that keeps it keeps the
//! pty in being, and can still take bytes away, but holds up nothing: the broker reads on, and ends a session
//! as ever.

use std::{
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
use tokio::{
    io::Interest,
    sync::watch::{Receiver, Sender},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::host::{pty, watch::watch_copy};

use super::{
    fence::Pass,
    output::Output,
    shared::Shared,
    stream::{AttachError, Slot, left},
};

/// How many offsets of holds are kept, the newest.
const UNSEEN_KEPT: usize = 64;

/// How often it is looked whether a holder has read the rest: no event tells what another reads.
const LOOK: Duration = Duration::from_millis(5);

/// The controller end as its holder gets it.
#[derive(Debug)]
pub struct Held {
    /// As long as this is open somewhere, the hold lasts. Nothing is sent on it; its end of file is the end
    /// of the session, or of the hold alone.
    pub socket: UnixStream,
    /// The controller end, non-blocking and closed on exec.
    pub controller: OwnedFd,
    /// The offset of the first byte that is the holder's to read.
    pub begin: u64,
}

/// Who holds the controller end, and where bytes went unseen.
#[derive(Debug, Clone, Default)]
pub struct Holds {
    hold: Option<Hold>,
    begun: u64,
    unseen_at: Vec<u64>,
}

/// One hold, told from others by its number.
#[derive(Debug, Clone)]
struct Hold {
    number: u64,
    /// Cancelled when its holder is fenced off.
    gone: CancellationToken,
}

/// Whether the controller end may be lent, and whether it is.
#[derive(Debug)]
pub(super) struct Direct {
    is_declared: bool,
    holds: Sender<Holds>,
    /// Whether somebody else has, or may have, a copy of the controller end.
    is_shared: AtomicBool,
}

/// The broker's side of a hold; the hold ends with it.
struct Keeper {
    number: u64,
    socket: UnixStream,
    slot: Slot,
}

impl Holds {
    /// Whether somebody holds the controller end now.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.hold.is_some()
    }

    /// The offsets of the output at which holders took bytes that are not in it, nobody knows how many, in
    /// order: the newest 64.
    #[must_use]
    pub fn unseen_at(&self) -> &[u64] {
        &self.unseen_at
    }

    fn begin(&mut self, at: u64, gone: CancellationToken) -> u64 {
        self.begun += 1;
        self.hold = Some(Hold { number: self.begun, gone });
        if self.unseen_at.last() != Some(&at) {
            self.unseen_at.push(at);
            let excess = self.unseen_at.len().saturating_sub(UNSEEN_KEPT);
            self.unseen_at.drain(..excess);
        }
        self.begun
    }
}

impl Direct {
    pub(super) fn new(is_declared: bool) -> Self {
        Self { is_declared, holds: Sender::default(), is_shared: AtomicBool::new(false) }
    }

    pub(super) fn holds(&self) -> Receiver<Holds> {
        self.holds.subscribe()
    }

    /// Does something that no hold may meet, unless there is one; one that begins meanwhile waits.
    pub(super) fn unless_held<R>(&self, what: impl FnOnce() -> R) -> Option<R> {
        let holds = self.holds.borrow();
        (!holds.is_held()).then(what)
    }

    /// Waits until somebody holds the controller end.
    pub(super) async fn held(&self) {
        let held = self.holds.subscribe().wait_for(Holds::is_held).await.map(drop);
        held.expect("the sender is borrowed from self, hence alive");
    }

    /// Waits until nobody holds the controller end.
    pub(super) async fn free(&self) {
        let free = self.holds.subscribe().wait_for(|holds| !holds.is_held()).await.map(drop);
        free.expect("the sender is borrowed from self, hence alive");
    }

    /// Sees to it that what is done next to the controller end does not block: who has a copy of it may have
    /// turned that on, for every copy (fcntl(2), `O_NONBLOCK`).
    pub(super) fn unblock(&self, controller: BorrowedFd<'_>) {
        if self.is_shared.load(Ordering::Relaxed) {
            let _ = fcntl(controller, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
        }
    }
}

/// Lends the controller end, and ends every stream; but not to who was fenced off meanwhile.
pub(super) fn hold(shared: &Arc<Shared>, pass: Pass) -> Result<Held, AttachError> {
    if !shared.direct.is_declared {
        return Err(AttachError::NotDirect);
    }
    let failed = |source| AttachError::Socket { source };
    let (ours, socket) = UnixStream::pair().map_err(failed)?;
    ours.set_nonblocking(true).map_err(failed)?;
    let controller = copy(shared)?;
    let mut begun = Err(AttachError::Held);
    shared.direct.holds.send_if_modified(|holds| {
        // A fence that closes after this look finds the hold, and takes it back.
        if pass.is_cancelled() {
            begun = Err(AttachError::Fenced);
        } else if !holds.is_held() {
            let begin = shared.lend();
            begun = Ok((begin, holds.begin(begin, pass.gone.clone())));
        }
        begun.is_ok()
    });
    let (begin, number) = begun?;
    shared.direct.is_shared.store(true, Ordering::Relaxed);
    let keeper = Keeper { number, socket: ours, slot: Slot::of_holder(shared) };
    tokio::spawn(pass.run(keeper.run()));
    debug!(begin, "the controller end is held directly");
    Ok(Held { socket, controller, begin })
}

/// Ends the hold of a client that was fenced off: the broker reads from here on, whatever the holder does.
pub(super) fn take_back(shared: &Shared) {
    end(shared, |hold| hold.gone.is_cancelled());
}

/// Lets the holder of a session that is over read the rest, until it has or vanished or it is `until`; reading is the
/// broker's then.
pub(super) async fn last_turn(shared: &Shared, controller: BorrowedFd<'_>, until: Instant) {
    let mut holds = shared.direct.holds();
    while holds.borrow().is_held() && Instant::now() < until && !is_empty(controller) {
        let _vanished = timeout(LOOK, holds.wait_for(|holds| !holds.is_held())).await;
    }
    // Its socket ends with the output, not before.
    end(shared, |_| true);
}

/// A copy for the holder, while there is something to hold.
fn copy(shared: &Shared) -> Result<OwnedFd, AttachError> {
    let controller = shared.controller.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let controller = controller.filter(|_| shared.drain.borrow().is_none());
    let controller = controller.ok_or(AttachError::Ended)?;
    let copied = controller.get_ref().try_clone();
    copied.map_err(|source| AttachError::Socket { source })
}

/// Ends the hold if it is the one meant, before the pump reads again.
fn end(shared: &Shared, is_meant: impl FnOnce(&Hold) -> bool) {
    shared.direct.holds.send_if_modified(|holds| {
        let ends = holds.hold.as_ref().is_some_and(is_meant);
        if ends {
            holds.hold = None;
            leave_packet_mode(shared);
            shared.follow_size();
        }
        ends
    });
}

/// Terminals such as VTE set packet mode, in which every read begins with a byte that the tool did not write
/// (ioctl_tty(2), `TIOCPKT`).
fn leave_packet_mode(shared: &Shared) {
    let controller = shared.controller.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(Err(error)) =
        controller.map(|controller| pty::leave_packet_mode(controller.get_ref().as_fd()))
    {
        warn!(%error, "cannot leave a terminal's packet mode: bytes of it may be in the output");
    }
}

/// Whether nobody has the user end open and all that was written is read.
fn is_empty(controller: BorrowedFd<'_>) -> bool {
    let mut set = [PollFd::new(controller, PollFlags::POLLIN)];
    let looked = poll(&mut set, PollTimeout::ZERO);
    let seen = set[0].revents().unwrap_or(PollFlags::empty());
    looked.is_ok() && seen.contains(PollFlags::POLLHUP) && !seen.contains(PollFlags::POLLIN)
}

impl Keeper {
    /// Waits for the end of the hold, or of what is held.
    async fn run(self) {
        let shared = self.slot.shared();
        let mut output = shared.output.subscribe();
        tokio::select! {
            vanished = vanished(&self.socket) => match vanished {
                Ok(()) => debug!("the holder of a controller end is gone"),
                Err(error) => warn!(%error, "cannot watch the holder of a controller end"),
            },
            _ = output.wait_for(Output::has_ended) => {}
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        end(self.slot.shared(), |hold| hold.number == self.number);
    }
}

/// Waits until nobody has the holder's end of the socket open.
async fn vanished(socket: &UnixStream) -> io::Result<()> {
    let socket = watch_copy(socket.as_fd(), Interest::PRIORITY)?;
    left(&socket).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_offsets_are_kept_once_each() {
        let mut holds = Holds::default();
        let begin = |holds: &mut Holds, at| holds.begin(at, CancellationToken::new());
        assert_eq!(begin(&mut holds, 7), 1);
        assert_eq!(begin(&mut holds, 7), 2);
        assert!(holds.is_held());
        assert_eq!(holds.unseen_at(), [7]);
        for at in 8..100 {
            begin(&mut holds, at);
        }
        assert_eq!(holds.unseen_at(), (36..100).collect::<Vec<_>>());
    }
}
