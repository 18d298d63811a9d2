//! What slow streams have not taken yet and the ring keeps no longer.

use super::{
    pool::{RingPool, Share},
    span::Span,
};

/// The bytes just before the ring's, kept only for streams that are behind it. One copy serves all
/// streams of a session.
#[derive(Debug)]
pub(super) struct Backlog {
    span: Span,
    share: Share,
}

impl Backlog {
    /// Memory that an empty backlog may keep while there are streams, so that a stream that is a
    /// little slow does not cost an allocation at every turn.
    const KEPT_WHEN_EMPTY: usize = 32 << 10;

    pub(super) fn new(pool: &RingPool) -> Self {
        Self { span: Span::default(), share: Share::new(pool.backlogs(), 0) }
    }

    /// Takes bytes that leave the ring at this offset, which is where the last ones ended unless
    /// there are none. `false` where the memory for slow streams is used up; the bytes are not
    /// taken.
    pub(super) fn push(&mut self, at: u64, bytes: &[u8]) -> bool {
        debug_assert!(self.span.is_empty() || self.span.end() == at, "{at} after {:?}", self.span);
        let wanted = self.span.len() + bytes.len();
        if wanted > self.share.held() {
            if !(self.share.grow_to(wanted.saturating_mul(2)) || self.share.grow_to(wanted)) {
                return false;
            }
            self.span.allocate(self.share.held());
        }
        if self.span.is_empty() {
            self.span.skip_to(at);
        }
        self.span.push(bytes);
        true
    }

    /// Drops what every stream has taken: all before `floor`, or all where there is no stream.
    pub(super) fn release(&mut self, floor: Option<u64>) {
        let kept_memory = if floor.is_some() { Self::KEPT_WHEN_EMPTY } else { 0 };
        let floor = floor.unwrap_or(self.span.end());
        let taken = floor.saturating_sub(self.span.begin());
        self.span.drop_oldest(usize::try_from(taken).unwrap_or(usize::MAX));
        if self.span.is_empty() && self.share.held() > kept_memory {
            self.span.restart(floor);
            self.share.shrink_to(0);
        }
    }

    /// How many bytes are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.span.len()
    }

    /// Up to `max` bytes from `cursor` on.
    pub(super) fn copy(&self, cursor: u64, max: usize) -> Vec<u8> {
        self.span.copy(cursor, max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_kept_until_released_and_their_memory_goes_with_them() {
        let pool = RingPool::default();
        let mut backlog = Backlog::new(&pool);
        assert!(backlog.push(100, &[1; 40_000]));
        assert!(backlog.push(40_100, &[2; 40_000]));
        assert!(pool.backlog_used() >= 80_000);
        assert_eq!(backlog.copy(40_099, 2), [1, 2]);
        backlog.release(Some(40_100));
        assert!(backlog.copy(40_099, 2).is_empty());
        assert_eq!(backlog.copy(40_100, 2), [2, 2]);
        backlog.release(Some(80_100));
        assert_eq!(pool.backlog_used(), 0);
        assert!(backlog.push(500_000, b"x"));
        assert_eq!(backlog.copy(500_000, 9), b"x");
        assert!(pool.backlog_used() > 0, "a little is kept for the next turn");
        backlog.release(None);
        assert_eq!((backlog.len(), pool.backlog_used()), (0, 0));
    }

    #[test]
    fn nothing_is_taken_beyond_the_pool() {
        let pool = RingPool::new(1000);
        let mut backlog = Backlog::new(&pool);
        assert!(backlog.push(0, &[0; 900]));
        assert!(!backlog.push(900, &[0; 101]));
        assert!(backlog.push(900, &[0; 100]));
        assert_eq!(pool.backlog_used(), 1000);
    }
}
