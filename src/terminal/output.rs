//! What the tool wrote, and who is reading it.

use tokio_util::sync::CancellationToken;

use super::{backlog::Backlog, pool::RingPool, ring::Ring};

/// A piece of a session's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The bytes from `begin` to `next`.
    pub bytes: Vec<u8>,
    /// Where the piece begins: after the cursor asked for, where bytes between were dropped.
    pub begin: u64,
    /// The cursor to go on from.
    pub next: u64,
    /// Nothing follows: the session ended, and this piece reaches its last byte.
    pub eof: bool,
}

/// A read that cannot be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The cursor lies after the last byte so far.
    #[error("cursor {cursor} is beyond the end of the output at {end}")]
    BadCursor {
        /// What was asked for.
        cursor: u64,
        /// The end of the output.
        end: u64,
    },
}

/// A subscription's name, unique within its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SubscriptionId(u64);

/// A reader that follows the output and must miss none of it.
#[derive(Debug)]
struct Subscription {
    id: SubscriptionId,
    cursor: u64,
    /// Where it ends, if not with the output.
    until: Option<u64>,
    cut: CancellationToken,
}

/// What a subscriber has in front of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pending {
    /// These bytes; more may follow.
    Bytes(Vec<u8>),
    /// Nothing now.
    Nothing,
    /// Nothing, and nothing will follow: the session ended.
    End,
    /// Nothing, and nothing will follow here, though the session goes on.
    Over,
}

/// The output of one session: the ring, the bytes that subscribers still wait for, and how far each
/// is.
#[derive(Debug)]
pub(super) struct Output {
    ring: Ring,
    backlog: Backlog,
    subscriptions: Vec<Subscription>,
    next_id: u64,
    ended: bool,
}

impl Output {
    /// How far a subscriber may fall behind before it is cut: 8 MiB.
    pub(super) const MAX_LAG: u64 = 8 << 20;

    pub(super) fn new(ring_bytes: usize, pool: &RingPool) -> Self {
        Self {
            ring: Ring::new(ring_bytes, pool),
            backlog: Backlog::new(pool),
            subscriptions: Vec::new(),
            next_id: 0,
            ended: false,
        }
    }

    /// How many bytes there have been.
    pub(super) fn end(&self) -> u64 {
        self.ring.end()
    }

    /// How many bytes can be read no longer: the offset of the oldest that can.
    pub(super) fn dropped(&self) -> u64 {
        self.ring.begin()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Takes what the tool wrote. Never waits: a subscriber that is too far behind is cut instead.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        let end = self.end() + bytes.len() as u64;
        self.cut(|cursor| end - cursor > Self::MAX_LAG);
        let floor = self.floor();
        // What a stream that was cut had waited for would not join up with what is evicted now.
        self.backlog.release(floor);
        let Self { ring, backlog, .. } = self;
        let mut kept = true;
        ring.append(bytes, |at, evicted| {
            if floor.is_some_and(|floor| floor < at + evicted.len() as u64) {
                kept = kept && backlog.push(at, evicted);
            }
        });
        if !kept {
            let begin = self.ring.begin();
            self.cut(|cursor| cursor < begin);
        }
        self.backlog.release(self.floor());
    }

    /// Has every subscription end here, with what there is so far; gives where that is.
    pub(super) fn end_subscriptions(&mut self) -> u64 {
        let end = self.end();
        for subscription in &mut self.subscriptions {
            subscription.until.get_or_insert(end);
        }
        end
    }

    /// Closes the output: what is retained stays readable.
    pub(super) fn finish(&mut self) {
        self.ended = true;
        self.ring.settle();
    }

    /// Up to `max` retained bytes from `cursor` on, or from the oldest where that is later.
    pub(super) fn read(&self, cursor: u64, max: usize) -> Result<Chunk, ReadError> {
        self.check(cursor)?;
        let begin = cursor.max(self.ring.begin());
        let bytes = self.ring.copy(begin, max);
        let next = begin + bytes.len() as u64;
        Ok(Chunk { bytes, begin, next, eof: self.ended && next == self.end() })
    }

    /// Adds a reader that gets every byte from `cursor` on, or from the oldest retained where that
    /// is later; gives its name and where it begins. It is told by `cut` that it was too slow.
    pub(super) fn subscribe(
        &mut self,
        cursor: u64,
        cut: CancellationToken,
    ) -> Result<(SubscriptionId, u64), ReadError> {
        self.check(cursor)?;
        let cursor = cursor.max(self.ring.begin());
        let id = SubscriptionId(self.next_id);
        self.next_id += 1;
        self.subscriptions.push(Subscription { id, cursor, until: None, cut });
        Ok((id, cursor))
    }

    pub(super) fn unsubscribe(&mut self, id: SubscriptionId) {
        self.subscriptions.retain(|subscription| subscription.id != id);
        self.backlog.release(self.floor());
    }

    /// Up to `max` bytes that this subscriber has not taken yet.
    pub(super) fn pending(&self, id: SubscriptionId, max: usize) -> Pending {
        let Some(subscription) = self.subscriptions.iter().find(|s| s.id == id) else {
            return Pending::Nothing;
        };
        let Subscription { cursor, until, .. } = *subscription;
        let left = until.unwrap_or(self.end()).saturating_sub(cursor);
        let max = max.min(usize::try_from(left).unwrap_or(usize::MAX));
        if left > 0 && cursor < self.ring.begin() {
            Pending::Bytes(self.backlog.copy(cursor, max))
        } else if left > 0 {
            Pending::Bytes(self.ring.copy(cursor, max))
        } else if until.is_some() {
            Pending::Over
        } else if self.ended {
            Pending::End
        } else {
            Pending::Nothing
        }
    }

    /// This subscriber has taken so many bytes of what was pending.
    pub(super) fn taken(&mut self, id: SubscriptionId, count: usize) {
        if let Some(subscription) = self.subscriptions.iter_mut().find(|s| s.id == id) {
            subscription.cursor += count as u64;
        }
        self.backlog.release(self.floor());
    }

    fn check(&self, cursor: u64) -> Result<(), ReadError> {
        let end = self.end();
        if cursor > end { Err(ReadError::BadCursor { cursor, end }) } else { Ok(()) }
    }

    /// The cursor of the slowest subscriber, where there is one.
    fn floor(&self) -> Option<u64> {
        self.subscriptions.iter().map(|s| s.cursor).min()
    }

    fn cut(&mut self, too_slow: impl Fn(u64) -> bool) {
        self.subscriptions.retain(|subscription| {
            let cut = too_slow(subscription.cursor);
            if cut {
                subscription.cut.cancel();
            }
            !cut
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn output() -> Output {
        Output::new(4096, &RingPool::default())
    }

    /// One in which subscribers are cut already when they are 10 to 20 kB behind.
    fn short_of_memory() -> Output {
        Output::new(4096, &RingPool::new(16_000))
    }

    fn pattern(from: usize, count: usize) -> Vec<u8> {
        (from..from + count).map(|n| (n % 251) as u8).collect()
    }

    #[derive(Debug, Clone)]
    enum Op {
        Append(usize),
        Subscribe(u64),
        Take(usize, usize),
        Unsubscribe(usize),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            3 => (0_usize..9000).prop_map(Op::Append),
            1 => (0_u64..100_000).prop_map(Op::Subscribe),
            4 => (0_usize..4, 0_usize..9000).prop_map(|(which, max)| Op::Take(which, max)),
            1 => (0_usize..4).prop_map(Op::Unsubscribe),
        ]
    }

    /// A subscriber and the offset up to which it has seen every byte.
    struct Seen {
        id: SubscriptionId,
        cursor: usize,
        cut: CancellationToken,
    }

    fn apply(op: Op, output: &mut Output, all: &mut Vec<u8>, seen: &mut Vec<Seen>) {
        match op {
            Op::Append(count) => {
                let bytes = pattern(all.len(), count);
                output.append(&bytes);
                all.extend(bytes);
            }
            Op::Subscribe(cursor) if cursor > output.end() => {
                let end = output.end();
                let refused = output.subscribe(cursor, CancellationToken::new());
                assert_eq!(refused.unwrap_err(), ReadError::BadCursor { cursor, end });
            }
            Op::Subscribe(cursor) => {
                let cut = CancellationToken::new();
                let (id, begin) = output.subscribe(cursor, cut.clone()).unwrap();
                assert_eq!(begin, cursor.max(output.dropped()));
                seen.push(Seen { id, cursor: usize::try_from(begin).unwrap(), cut });
            }
            Op::Take(which, max) if which < seen.len() => {
                let Seen { id, cursor, .. } = &mut seen[which];
                match output.pending(*id, max) {
                    Pending::Bytes(bytes) => {
                        assert_eq!(bytes, all[*cursor..*cursor + bytes.len()]);
                        assert!(max == 0 || !bytes.is_empty());
                        output.taken(*id, bytes.len());
                        *cursor += bytes.len();
                    }
                    Pending::Nothing => assert_eq!(*cursor, all.len()),
                    Pending::End | Pending::Over => panic!("it has not ended"),
                }
            }
            Op::Unsubscribe(which) if which < seen.len() => {
                output.unsubscribe(seen.swap_remove(which).id);
            }
            Op::Take(..) | Op::Unsubscribe(_) => {}
        }
    }

    proptest! {
        #[test]
        fn every_subscriber_sees_every_byte_once_and_reads_see_the_ring(
            ops in prop::collection::vec(op(), 0..80), short in any::<bool>(),
        ) {
            let mut output = if short { short_of_memory() } else { output() };
            let (mut all, mut seen) = (Vec::new(), Vec::<Seen>::new());
            for op in ops {
                apply(op, &mut output, &mut all, &mut seen);
                for gone in seen.extract_if(.., |seen| seen.cut.is_cancelled()) {
                    prop_assert!(short && (gone.cursor as u64) < output.dropped());
                    prop_assert_eq!(output.pending(gone.id, 1), Pending::Nothing);
                }
                let chunk = output.read(0, usize::MAX).unwrap();
                prop_assert_eq!(&chunk.bytes, &all[all.len().saturating_sub(4096)..]);
                prop_assert_eq!(chunk.begin, output.dropped());
                prop_assert_eq!(chunk.next, all.len() as u64);
                let slowest = seen.iter().map(|s| s.cursor as u64).min().unwrap_or(u64::MAX);
                let needed = output.dropped().saturating_sub(slowest);
                prop_assert_eq!(output.backlog.len() as u64, needed);
            }
        }
    }

    #[test]
    fn a_subscriber_beyond_the_lag_is_cut_and_the_others_are_not() {
        let mut output = output();
        let (slow_cut, quick_cut) = (CancellationToken::new(), CancellationToken::new());
        let (slow, _) = output.subscribe(0, slow_cut.clone()).unwrap();
        let (quick, _) = output.subscribe(0, quick_cut.clone()).unwrap();
        let block = vec![0; 1 << 16];
        for _ in 0..128 {
            output.append(&block);
            output.taken(quick, block.len());
        }
        assert_eq!(output.pending(slow, 1), Pending::Bytes(vec![0]), "8 MiB behind is allowed");
        output.append(b"x");
        assert!(slow_cut.is_cancelled() && !quick_cut.is_cancelled());
        assert_eq!(output.pending(slow, 1), Pending::Nothing);
        assert_eq!(output.pending(quick, 9), Pending::Bytes(b"x".to_vec()));
        assert!(output.backlog.copy(0, 1).is_empty(), "the backlog went with the stream");
    }

    #[test]
    fn a_subscriber_is_cut_when_the_memory_for_slow_ones_is_used_up() {
        let pool = RingPool::new(10_000);
        let mut output = Output::new(4096, &pool);
        let cut = CancellationToken::new();
        output.subscribe(0, cut.clone()).unwrap();
        output.append(&[0; 14_096]);
        assert!(!cut.is_cancelled());
        output.append(&[0; 1]);
        assert!(cut.is_cancelled());
        assert_eq!(pool.backlog_used(), 0);
    }

    #[test]
    fn a_subscription_that_is_to_end_has_what_was_there_and_no_more() {
        let mut output = output();
        let (early, _) = output.subscribe(0, CancellationToken::new()).unwrap();
        output.append(b"before");
        assert_eq!(output.end_subscriptions(), 6);
        output.append(&[b'x'; 5000]);
        assert_eq!(output.end_subscriptions(), 5006, "the first end of each is what holds");
        let (late, _) = output.subscribe(5006, CancellationToken::new()).unwrap();
        assert_eq!(output.pending(early, 9), Pending::Bytes(b"before".to_vec()));
        output.taken(early, 6);
        assert_eq!(output.pending(early, 9), Pending::Over);
        assert_eq!(output.pending(late, 9), Pending::Nothing);
    }

    #[test]
    fn the_end_is_told_after_the_last_byte_only() {
        let mut output = output();
        let (id, _) = output.subscribe(0, CancellationToken::new()).unwrap();
        output.append(b"last");
        output.finish();
        assert!(!output.read(0, 3).unwrap().eof);
        assert!(output.read(1, 3).unwrap().eof);
        assert_eq!(output.read(5, 1), Err(ReadError::BadCursor { cursor: 5, end: 4 }));
        assert_eq!(output.pending(id, 9), Pending::Bytes(b"last".to_vec()));
        output.taken(id, 4);
        assert_eq!(output.pending(id, 9), Pending::End);
    }
}
