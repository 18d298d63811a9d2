//! Who is attached, by name: so that another can take a session from all of them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::{CancellationToken, DropGuard};

use super::stream::Mode;

/// The streams and holds of a session, as far as they have not ended.
#[derive(Debug, Default)]
pub(super) struct Fence(Mutex<Vec<Within>>);

/// One of them.
#[derive(Debug)]
struct Within {
    who: String,
    mode: Mode,
    gone: CancellationToken,
}

/// What ends with a stream or hold, and is no longer listed then.
#[derive(Debug)]
#[must_use]
pub(super) struct Pass {
    pub(super) gone: CancellationToken,
    _listed: DropGuard,
}

impl Fence {
    /// Lists a stream or hold of this client: it is to end when the pass is cancelled, as it is with `terminal`.
    pub(super) fn admit(&self, who: &str, mode: Mode, terminal: &CancellationToken) -> Pass {
        let gone = terminal.child_token();
        let mut within = self.lock();
        within.retain(|other| !other.gone.is_cancelled());
        within.push(Within { who: who.to_owned(), mode, gone: gone.clone() });
        Pass { gone: gone.clone(), _listed: gone.drop_guard() }
    }

    /// Ends what all others than this client control the session by, and where `observers`, what they observe it by.
    pub(super) fn close(&self, but: &str, observers: bool) {
        let meant = |it: &&Within| it.who != but && (observers || it.mode == Mode::Control);
        self.lock().iter().filter(meant).for_each(|within| within.gone.cancel());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Within>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass {
    /// Whether the session was taken from its holder, or is gone.
    pub(super) fn is_cancelled(&self) -> bool {
        self.gone.is_cancelled()
    }

    /// Runs until the pass is cancelled.
    pub(super) async fn run(self, work: impl Future<Output = ()>) {
        self.gone.run_until_cancelled(work).await;
    }
}
