//! How much memory the output of all sessions may hold together.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The memory that all rings share, and beside it that of all slow streams, and that of all screen models.
///
/// Cheap to clone: every clone is the same pool.
#[derive(Debug, Clone)]
pub struct RingPool {
    rings: Arc<Budget>,
    backlogs: Arc<Budget>,
    screens: Arc<Budget>,
}

/// So many bytes and no more, between all who take from it.
#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    used: AtomicUsize,
}

/// What one buffer holds of a budget; given back when dropped.
#[derive(Debug)]
pub(super) struct Share {
    budget: Arc<Budget>,
    held: usize,
}

impl RingPool {
    /// 64 MiB for all rings, as much again for what slow streams have not taken yet, and for screen models.
    pub const DEFAULT_LIMIT: usize = 64 << 20;

    /// A pool that lets all rings together grow to `limit` bytes, and the backlogs of all slow
    /// streams together to as much again, and the screen models of all sessions too.
    ///
    /// A ring's first 4 KiB are counted but never refused, so that every session has some output to
    /// show: the rings may exceed `limit` by that much each.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let budget = || Budget::new(limit);
        Self { rings: budget(), backlogs: budget(), screens: budget() }
    }

    /// Bytes that all rings hold now.
    #[must_use]
    pub fn used(&self) -> usize {
        self.rings.used.load(Ordering::Relaxed)
    }

    /// Bytes that the backlogs of all slow streams hold now.
    #[must_use]
    pub fn backlog_used(&self) -> usize {
        self.backlogs.used.load(Ordering::Relaxed)
    }

    /// Bytes that the screen models of all sessions hold now.
    #[must_use]
    pub fn screens_used(&self) -> usize {
        self.screens.used.load(Ordering::Relaxed)
    }

    pub(super) fn rings(&self) -> Arc<Budget> {
        self.rings.clone()
    }

    pub(super) fn backlogs(&self) -> Arc<Budget> {
        self.backlogs.clone()
    }

    pub(super) fn screens(&self) -> Arc<Budget> {
        self.screens.clone()
    }
}

impl Default for RingPool {
    fn default() -> Self {
        Self::new(Self::DEFAULT_LIMIT)
    }
}

impl Budget {
    fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0) })
    }
}

impl Share {
    /// A share that begins with `assured` bytes, had the budget room for them or not.
    pub(super) fn new(budget: Arc<Budget>, assured: usize) -> Self {
        budget.used.fetch_add(assured, Ordering::Relaxed);
        Self { budget, held: assured }
    }

    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Grows to `bytes`, or stays as it is and gives `false` where the budget has no room.
    pub(super) fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.held);
        let fits = |used: usize| used.checked_add(more).filter(|&sum| sum <= self.budget.limit);
        let taken = more == 0
            || self.budget.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if taken {
            self.held += more;
        }
        taken
    }

    /// Gives back what is above `bytes`.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        let less = self.held.saturating_sub(bytes);
        self.budget.used.fetch_sub(less, Ordering::Relaxed);
        self.held -= less;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_grows_only_while_the_budget_has_room() {
        let pool = RingPool::new(100);
        let mut first = Share::new(pool.rings(), 10);
        let mut second = Share::new(pool.rings(), 10);
        assert!(first.grow_to(80));
        assert!(!second.grow_to(21), "80 + 21 is above 100");
        assert_eq!((second.held(), pool.used()), (10, 90));
        first.shrink_to(40);
        assert!(second.grow_to(60));
        assert_eq!(pool.used(), 100);
        drop((first, second));
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn an_assured_beginning_is_counted_above_the_limit_too() {
        let pool = RingPool::new(4);
        let share = Share::new(pool.rings(), 16);
        assert_eq!((share.held(), pool.used(), pool.backlog_used()), (16, 16, 0));
    }
}
