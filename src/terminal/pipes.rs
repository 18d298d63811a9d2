//! The live bytes of a session without a terminal: two outputs apart, one order, and an input that ends.
//!
//! One task for each session, the pump, reads both pipes and writes the third, and nothing that a reader does or fails
//! to do holds it up. What is read is addressed twice: by its offset among the bytes of its own output, and by its
//! offset among those of both, in the order in which they were read. That order is the tool's as far as two pipes can
//! tell: of what it wrote to both between two looks, that of standard output comes first.
//!
//! Bounded are the two rings, by half of [`Bounds::ring_bytes`] each; the order, by 4096 pieces; all of them by the
//! pool of all rings; and the input, by [`Bounds::input_queue_bytes`].

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::watch::Sender,
    time::{Instant, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::pump::Pump;
use super::{
    Stats,
    bounds::Bounds,
    input::{Input, StdinEnd, WriteError},
    output::{Chunk, ReadError},
    pool::RingPool,
    pulse::{Flow, LastOutput, Pulse},
    shared::now_usec,
};
use crate::host::pipes::BrokerEnds;

mod order;
mod outputs;
mod pump;

pub use order::Source;
pub(super) use outputs::Outputs;

/// The pipes of one session, as the broker sees them.
///
/// Cheap to clone. When the last clone is gone, its descriptors are closed.
#[derive(Debug, Clone)]
pub struct Pipes {
    shared: Arc<Shared>,
    _alive: Arc<DropGuard>,
}

/// What the pump and the readers have in common.
struct Shared {
    outputs: Sender<Outputs>,
    input: Input,
    /// By when the rest must be read, once asked for.
    drain: Sender<Option<Instant>>,
    /// Cancelled when the pump is done.
    done: CancellationToken,
    last_output: Arc<LastOutput>,
    last_activity_usec: AtomicU64,
}

impl Pipes {
    /// Starts to read and write the broker's ends, within `bounds`. Must be called on a tokio runtime.
    ///
    /// # Errors
    /// As epoll_ctl(2).
    pub fn start(ends: BrokerEnds, bounds: Bounds, pool: &RingPool) -> io::Result<Self> {
        let input = Input::new(&bounds);
        if ends.stdin.is_none() {
            input.close(WriteError::NoStdin(StdinEnd::Never));
        }
        let shared = Arc::new(Shared {
            outputs: Sender::new(Outputs::new(bounds.ring_bytes, pool)),
            input,
            drain: Sender::new(None),
            done: CancellationToken::new(),
            last_output: Arc::new(LastOutput::new()),
            last_activity_usec: AtomicU64::new(now_usec()),
        });
        let (gone, pump) = (CancellationToken::new(), Pump::new(shared.clone(), ends)?);
        tokio::spawn(gone.clone().run_until_cancelled_owned(pump.run()));
        Ok(Self { shared, _alive: Arc::new(gone.drop_guard()) })
    }

    /// Reads the rest of the output and closes the pipes. To be called when the session's leader ended and its scope is
    /// empty.
    ///
    /// The rest ends when nobody can write any longer, or after `at_most`, whoever still can. Then the descriptors are
    /// closed, and reads are told of the end. What is retained stays readable. Where called again, the first deadline
    /// holds.
    pub async fn drain(&self, at_most: Duration) {
        self.shared.drain.send_if_modified(|drain| {
            let first = drain.is_none();
            drain.get_or_insert_with(|| Instant::now() + at_most);
            first
        });
        self.shared.done.cancelled().await;
    }

    /// Queues input for the tool: all of it, or none. Gives how many bytes were accepted since the session began.
    /// Never waits.
    ///
    /// # Errors
    /// [`WriteError`]; nothing was queued then.
    pub fn write(&self, bytes: &[u8]) -> Result<u64, WriteError> {
        self.shared.input.push(bytes).inspect(|_| self.shared.touch())
    }

    /// Closes the tool's standard input after what is queued. Gives how many bytes were accepted.
    ///
    /// # Errors
    /// [`WriteError`] where it is closed already.
    pub fn end_input(&self) -> Result<u64, WriteError> {
        self.shared.input.end(WriteError::NoStdin(StdinEnd::Written))
    }

    /// Up to `max` bytes from `cursor` on, without waiting: of one output, or of both in the order in which they were
    /// read. Where bytes at the cursor were dropped the piece begins later; where some between those of both were, it
    /// ends before them, and what is read next begins behind them.
    ///
    /// The end is told as soon as nobody can write any more, also while the session goes on.
    ///
    /// # Errors
    /// [`ReadError::BadCursor`] where `cursor` lies after the last byte so far.
    pub fn read(
        &self,
        source: Option<Source>,
        cursor: u64,
        max: usize,
    ) -> Result<Chunk, ReadError> {
        self.shared.outputs.borrow().read(source, cursor, max)
    }

    /// As [`Self::read`], but where there is nothing at the cursor, waits for output or the end, at most so long.
    ///
    /// # Errors
    /// As [`Self::read`], at once.
    pub async fn read_wait(
        &self,
        source: Option<Source>,
        cursor: u64,
        max: usize,
        wait: Duration,
    ) -> Result<Chunk, ReadError> {
        self.shared.outputs.borrow().read(source, cursor, 0)?;
        let mut changes = self.shared.outputs.subscribe();
        let arrived =
            changes.wait_for(|outputs| outputs.end(source) > cursor || outputs.is_over(source));
        let _in_time = timeout(wait, arrived).await.is_ok();
        self.read(source, cursor, max)
    }

    /// Watches whether the tool writes.
    #[must_use]
    pub fn pulse(&self) -> Pulse {
        let flow = Flow::Pipes(self.shared.outputs.subscribe());
        Pulse::new(self.shared.last_output.clone(), flow)
    }

    /// How much has flowed so far, both outputs together.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let Shared { outputs, input, last_activity_usec, .. } = &*self.shared;
        let (bytes_out, bytes_dropped) = {
            let outputs = outputs.borrow();
            (outputs.end(None), outputs.dropped())
        };
        Stats {
            bytes_out,
            bytes_in: input.accepted(),
            bytes_dropped,
            last_activity_usec: last_activity_usec.load(Ordering::Relaxed),
        }
    }
}

impl Shared {
    /// Stores what the tool wrote and wakes who waits for it.
    fn wrote(&self, source: Source, bytes: &[u8]) {
        self.last_output.touch();
        self.outputs.send_modify(|outputs| outputs.append(source, bytes));
        self.touch();
    }

    /// Nobody can write to this output any more.
    fn ended(&self, source: Source) {
        self.outputs.send_modify(|outputs| outputs.close(source));
    }

    async fn asked_to_drain(&self) -> Instant {
        let mut drain = self.drain.subscribe();
        let asked = drain.wait_for(Option::is_some).await.ok().and_then(|asked| *asked);
        asked.expect("the sender is in self, and the value was waited for")
    }

    /// Announces the end.
    fn finish(&self) {
        self.input.close(WriteError::Closed);
        self.outputs.send_modify(Outputs::finish);
        self.done.cancel();
    }

    fn touch(&self) {
        self.last_activity_usec.store(now_usec(), Ordering::Relaxed);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("outputs", &*self.outputs.borrow()).finish_non_exhaustive()
    }
}
