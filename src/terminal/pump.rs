//! The only reader and writer of a session's controller end.
//!
//! Linux answers `EIO` to a read of the controller as soon as nobody has the user end open, also
//! when a tool closes its terminal only to open it again later; and an epoll registration then
//! reports a hang-up without end. So the pump keeps a user end of its own open until it is asked to
//! drain: before that there is no `EIO`, after that `EIO` is the end. The tool does not see the
//! difference: SIGHUP to its foreground group comes from the end of the session leader and from
//! closing the controller, neither from the user ends that others have, and no output is lost by
//! it. What is left is vhangup(2), which needs a capability that no tool has: it stops the pump
//! until the drain.

use std::{
    convert::Infallible,
    io,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
    time::Duration,
};

use nix::{errno::Errno, unistd::read};
use tokio::{
    io::unix::{AsyncFd, AsyncFdReadyGuard},
    task::{consume_budget, yield_now},
    time::{Instant, sleep, timeout_at},
};
use tracing::{debug, warn};

use crate::host::unread::unread;

use super::{
    direct,
    follower::Follower,
    shared::{Drain, Shared},
};

/// What is read before it is stored: four times what a pty gives at once.
const BUFFER: usize = 16 << 10;
/// How many full buffers are read before others get their turn.
const BUFFERS_IN_A_ROW: usize = 4;
/// Bytes that are read before others get their turn.
const TURN: usize = BUFFER * BUFFERS_IN_A_ROW;

/// How long input that is to come by itself waits for the tool to take what came before.
const TAKEN_WAIT: Duration = Duration::from_millis(250);
/// How often it is looked whether the tool has: no event tells what another reads.
const TAKEN_LOOK: Duration = Duration::from_millis(1);

/// Moves bytes between the controller end and the queues, until the session is over.
#[derive(Debug)]
pub(super) struct Pump {
    shared: Arc<Shared>,
    controller: Arc<AsyncFd<OwnedFd>>,
    user: OwnedFd,
}

/// How far a turn of reading got.
enum Turn {
    /// There is more.
    Used,
    /// There is nothing more for now.
    Empty,
    /// Nobody has the user end open.
    HungUp,
}

impl Pump {
    pub(super) fn new(
        shared: Arc<Shared>,
        controller: Arc<AsyncFd<OwnedFd>>,
        user: OwnedFd,
    ) -> Self {
        Self { shared, controller, user }
    }

    /// Runs until drained; every descriptor is closed before the end is announced.
    pub(super) async fn run(self) {
        let drain = tokio::select! {
            drain = self.asked_to_drain() => drain,
            never = self.flow() => match never {},
        };
        let Self { shared, controller, user } = self;
        drop(user);
        let half = drain.deadline - drain.deadline.saturating_duration_since(Instant::now()) / 2;
        direct::last_turn(&shared, controller.get_ref().as_fd(), half).await;
        let drained = timeout_at(drain.deadline, read_all(&shared, &controller)).await;
        debug!(complete = drained.is_ok(), "terminal drained");
        drop(controller);
        shared.finish(drain.code);
    }

    async fn asked_to_drain(&self) -> Drain {
        let mut drain = self.shared.drain.subscribe();
        let asked = drain.wait_for(Option::is_some).await.ok().and_then(|asked| *asked);
        asked.expect("the sender is in self.shared, and the value was waited for")
    }

    /// Both directions at once, and neither waits for the other. Does not end by itself.
    async fn flow(&self) -> Infallible {
        let reading = async {
            read_all(&self.shared, &self.controller).await;
            warn!("terminal hung up while its tool runs");
        };
        tokio::join!(reading, self.feed());
        std::future::pending().await
    }

    /// Waits until the tool has taken all it was given, at most [`TAKEN_WAIT`]: what is written sooner would reach it in
    /// one read(2) with that. One that was waited for in vain is not waited for again until it reads.
    async fn taken(&self, patient: &mut bool) {
        let deadline = Instant::now() + TAKEN_WAIT;
        loop {
            let unread = unread(self.user.as_fd()).unwrap_or(0);
            *patient = unread == 0 || *patient && Instant::now() < deadline;
            if unread == 0 || !*patient {
                return;
            }
            sleep(TAKEN_LOOK).await;
        }
    }

    /// Gives the tool what is typed, until the terminal is hung up.
    async fn feed(&self) {
        let mut patient = true;
        loop {
            self.shared.input.queued().await;
            if self.shared.input.take_break() {
                self.taken(&mut patient).await;
            }
            let Ok(mut guard) = self.controller.writable().await else { return };
            let closed = guard.ready().is_write_closed();
            self.shared.direct.unblock(self.controller.get_ref().as_fd());
            match guard.try_io(|controller| self.shared.input.give_to(controller.as_fd())) {
                Ok(Ok(_)) => consume_budget().await,
                Ok(Err(_)) => return,
                Err(_would_block) if closed => return,
                Err(_would_block) => {}
            }
        }
    }
}

/// Reads what the tool writes, while nobody else does, until nobody has the user end open and all of it is
/// read.
async fn read_all(shared: &Arc<Shared>, controller: &AsyncFd<OwnedFd>) {
    loop {
        shared.direct.free().await;
        draw_until(shared, Follower::MAX_LAG - TURN).await;
        let Ok(mut guard) = readable(shared, controller).await else { return };
        let turn = shared.direct.unless_held(|| take_turn(shared, controller.get_ref()));
        let Some(turn) = turn else { continue };
        match turn {
            Turn::Used => yield_now().await,
            // A readiness that says closed stays so, even where the user end was opened anew:
            // nothing of what was written before that is left.
            Turn::Empty if guard.ready().is_read_closed() => return,
            Turn::Empty => guard.clear_ready(),
            Turn::HungUp => return,
        }
    }
}

/// Waits for output, and meanwhile draws what there is. Others come first: a key's echo is on its way to its stream
/// before it is drawn.
async fn readable<'a>(
    shared: &Arc<Shared>,
    controller: &'a AsyncFd<OwnedFd>,
) -> io::Result<AsyncFdReadyGuard<'a, OwnedFd>> {
    tokio::select! {
        biased;
        ready = controller.readable() => ready,
        never = draw_on(shared) => match never {},
    }
}

/// Draws all there is, a turn at a time.
async fn draw_on(shared: &Arc<Shared>) -> Infallible {
    loop {
        yield_now().await;
        if !shared.draw() {
            return std::future::pending().await;
        }
    }
}

/// Draws until no more than this is undrawn: the model must not fall behind what the ring holds.
async fn draw_until(shared: &Arc<Shared>, undrawn: usize) {
    while shared.output.borrow().undrawn() > undrawn && shared.draw() {
        yield_now().await;
    }
}

/// Reads and stores at most [`TURN`].
fn take_turn(shared: &Arc<Shared>, controller: &OwnedFd) -> Turn {
    shared.direct.unblock(controller.as_fd());
    let mut buffer = [0; BUFFER];
    for _ in 0..BUFFERS_IN_A_ROW {
        let mut filled = 0;
        let stop = loop {
            match read(controller, &mut buffer[filled..]) {
                Ok(0) => break Some(Turn::HungUp),
                Ok(count) => filled += count,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => break Some(Turn::Empty),
                Err(errno) => {
                    debug!(%errno, "reading a terminal ended");
                    break Some(Turn::HungUp);
                }
            }
            if filled == buffer.len() {
                break None;
            }
        };
        shared.wrote(&buffer[..filled]);
        if let Some(turn) = stop {
            return turn;
        }
    }
    Turn::Used
}
