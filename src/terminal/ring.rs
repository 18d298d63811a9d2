//! The last bytes that a tool wrote.

use super::{
    pool::{RingPool, Share},
    span::Span,
};

/// The newest bytes of a session's output, at most `capacity` of them, with memory as filled.
///
/// Offsets count from the session's first byte and never wrap (2^64 bytes at 1 GB/s are 584 years).
/// A ring that may not grow, since the pool of all rings is used up, keeps what it has room for: at
/// least [`Ring::MIN_CAPACITY`].
#[derive(Debug)]
pub(super) struct Ring {
    span: Span,
    capacity: usize,
    share: Share,
}

impl Ring {
    /// 4 KiB, what a pty's own buffer holds.
    pub(super) const MIN_CAPACITY: usize = 4 << 10;
    /// 4 MiB.
    pub(super) const MAX_CAPACITY: usize = 4 << 20;

    /// A ring of `capacity` bytes, brought into `MIN_CAPACITY..=MAX_CAPACITY`.
    pub(super) fn new(capacity: usize, pool: &RingPool) -> Self {
        Self {
            span: Span::default(),
            capacity: capacity.clamp(Self::MIN_CAPACITY, Self::MAX_CAPACITY),
            share: Share::new(pool.rings(), Self::MIN_CAPACITY),
        }
    }

    /// The offset of the oldest byte kept; also how many were dropped.
    pub(super) fn begin(&self) -> u64 {
        self.span.begin()
    }

    /// The offset after the newest byte; also how many there have been.
    pub(super) fn end(&self) -> u64 {
        self.span.end()
    }

    /// How many bytes are kept once so many more have been taken, and all of them fit.
    pub(super) fn room_for(&mut self, more: usize) -> usize {
        self.grow(self.span.len().saturating_add(more))
    }

    /// Takes what the tool wrote. What has to go for it is shown to `evicted` first, in order and
    /// with its offset.
    pub(super) fn append(&mut self, bytes: &[u8], mut evicted: impl FnMut(u64, &[u8])) {
        let room = self.grow(self.span.len().saturating_add(bytes.len()));
        let excess = (self.span.len() + bytes.len()).saturating_sub(room);
        let oldest = excess.min(self.span.len());
        let begin = self.span.begin();
        let (first, second) = self.span.slices(begin, oldest);
        for (at, piece) in [(begin, first), (begin + first.len() as u64, second)] {
            if !piece.is_empty() {
                evicted(at, piece);
            }
        }
        self.span.drop_oldest(oldest);
        let (passing, kept) = bytes.split_at(excess - oldest);
        if !passing.is_empty() {
            evicted(self.span.end(), passing);
            self.span.skip_to(self.span.end() + passing.len() as u64);
        }
        self.span.push(kept);
    }

    /// Up to `max` bytes from `cursor` on, which must not lie before [`Self::begin`].
    pub(super) fn copy(&self, cursor: u64, max: usize) -> Vec<u8> {
        self.span.copy(cursor, max)
    }

    /// Gives memory beyond what is kept back: nothing more will come.
    pub(super) fn settle(&mut self) {
        self.span.fit();
        self.share.shrink_to(self.span.len());
    }

    /// Grows towards `wanted` bytes by doubling, as far as the capacity and the pool allow; gives
    /// how many bytes there is room for.
    fn grow(&mut self, wanted: usize) -> usize {
        if wanted > self.share.held() && self.share.held() < self.capacity {
            let doubled = wanted.saturating_mul(2).min(self.capacity);
            let _ = self.share.grow_to(doubled) || self.share.grow_to(wanted.min(self.capacity));
        }
        self.span.allocate(self.share.held().min(wanted.next_power_of_two()));
        self.share.held()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Everything ever written: what a ring must agree with.
    #[derive(Default)]
    struct Model {
        all: Vec<u8>,
        evicted: Vec<u8>,
    }

    fn append(ring: &mut Ring, model: &mut Model, count: usize) {
        let bytes: Vec<u8> = (0..count).map(|n| ((model.all.len() + n) % 251) as u8).collect();
        ring.append(&bytes, |at, piece| {
            assert_eq!(at, model.evicted.len() as u64, "evicted in order");
            model.evicted.extend(piece);
        });
        model.all.extend(bytes);
    }

    proptest! {
        #[test]
        fn a_ring_keeps_exactly_the_newest_bytes(
            capacity in 4096_usize..20_000,
            sizes in prop::collection::vec(0_usize..9_000, 0..40),
            reads in prop::collection::vec((0_usize..100_000, 0_usize..9_000), 0..20),
        ) {
            let mut ring = Ring::new(capacity, &RingPool::default());
            let mut model = Model::default();
            for size in sizes {
                append(&mut ring, &mut model, size);
                let kept = model.all.len().min(capacity);
                let begin = model.all.len() - kept;
                prop_assert_eq!(ring.end(), model.all.len() as u64);
                prop_assert_eq!(ring.begin(), begin as u64);
                prop_assert_eq!(&model.evicted, &model.all[..begin]);
                prop_assert_eq!(ring.copy(ring.begin(), usize::MAX), &model.all[begin..]);
                for (at, max) in &reads {
                    let from = (begin + at).min(model.all.len());
                    let to = (from + max).min(model.all.len());
                    prop_assert_eq!(ring.copy(from as u64, *max), &model.all[from..to]);
                }
            }
        }

        #[test]
        fn rings_never_hold_more_than_their_pool(
            sizes in prop::collection::vec((0_usize..4, 0_usize..30_000), 0..60),
        ) {
            let pool = RingPool::new(64 << 10);
            let mut rings: Vec<_> = (0..4).map(|_| Ring::new(1 << 20, &pool)).collect();
            for (which, size) in sizes {
                rings[which].append(&vec![0; size], |_, _| ());
                prop_assert!(pool.used() <= 64 << 10);
                for ring in &rings {
                    prop_assert!(ring.span.len() <= ring.share.held());
                    prop_assert!(ring.end().min(4096) <= ring.span.len() as u64);
                }
            }
            drop(rings);
            prop_assert_eq!(pool.used(), 0);
        }
    }

    #[test]
    fn memory_is_taken_as_filled_and_given_back_when_settled() {
        let pool = RingPool::default();
        let mut ring = Ring::new(Ring::MAX_CAPACITY, &pool);
        assert_eq!(pool.used(), 4096);
        ring.append(&[7; 100], |_, _| ());
        assert_eq!(pool.used(), 4096);
        ring.append(&[7; 50_000], |_, _| ());
        assert!((50_100..=100_200).contains(&pool.used()), "{}", pool.used());
        ring.settle();
        assert_eq!(pool.used(), 50_100);
        assert_eq!(ring.copy(0, usize::MAX).len(), 50_100);
    }

    #[test]
    fn a_capacity_outside_the_bounds_is_brought_inside() {
        let pool = RingPool::default();
        assert_eq!(Ring::new(0, &pool).capacity, 4096);
        assert_eq!(Ring::new(usize::MAX, &pool).capacity, 4 << 20);
    }
}
