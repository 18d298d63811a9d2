//! When the tool last wrote, to be asked or waited for.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::{
    sync::watch,
    time::{Duration, Instant},
};

use super::{output::Output, pipes::Outputs};

/// The time of the last output, by the monotonic clock.
#[derive(Debug)]
pub(super) struct LastOutput {
    began: Instant,
    /// µs since it began.
    last: AtomicU64,
}

impl LastOutput {
    /// Begins now, as if there were output.
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), last: AtomicU64::new(0) }
    }

    /// Notes output. To be done before who waits for it is woken.
    pub(super) fn touch(&self) {
        let since = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.last.store(since, Ordering::Release);
    }

    pub(super) fn get(&self) -> Instant {
        self.began + Duration::from_micros(self.last.load(Ordering::Acquire))
    }
}

/// Watches whether a tool writes, at no cost while nobody waits; does not keep its terminal.
#[derive(Debug)]
pub struct Pulse {
    last: Arc<LastOutput>,
    flow: Flow,
}

/// What is told of each output.
#[derive(Debug)]
pub(super) enum Flow {
    Terminal(watch::Receiver<Output>),
    Pipes(watch::Receiver<Outputs>),
}

impl Pulse {
    pub(super) fn new(last: Arc<LastOutput>, flow: Flow) -> Self {
        Self { last, flow }
    }

    /// When the tool last wrote, or else when its terminal began.
    #[must_use]
    pub fn last_output(&self) -> Instant {
        self.last.get()
    }

    /// Waits until the tool has written after this time; gives false where it will not any more.
    pub async fn output_after(&mut self, seen: Instant) -> bool {
        loop {
            if self.flow.has_ended() {
                return false;
            }
            if self.last_output() > seen {
                return true;
            }
            if self.flow.changed().await.is_err() {
                return false;
            }
        }
    }
}

impl Flow {
    /// Whether nothing will follow what there is now; what comes later is a change.
    fn has_ended(&mut self) -> bool {
        match self {
            Self::Terminal(output) => output.borrow_and_update().has_ended(),
            Self::Pipes(outputs) => outputs.borrow_and_update().is_over(None),
        }
    }

    async fn changed(&mut self) -> Result<(), watch::error::RecvError> {
        match self {
            Self::Terminal(output) => output.changed().await,
            Self::Pipes(outputs) => outputs.changed().await,
        }
    }
}
