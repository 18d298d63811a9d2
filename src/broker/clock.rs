//! Time, as the core is told it: it never reads a clock.

use std::time::Duration;

/// One reading of both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Since the broker began; monotonic. Deadlines are kept in it.
    pub elapsed: Duration,
    /// µs since the epoch; for people. It can jump.
    pub wall_usec: u64,
}

impl Now {
    /// What the wall clock will show at a deadline, as far as it can be told now.
    #[must_use]
    pub fn wall_at(&self, deadline: Duration) -> u64 {
        let ahead = deadline.saturating_sub(self.elapsed).as_micros();
        self.wall_usec.saturating_add(u64::try_from(ahead).unwrap_or(u64::MAX))
    }
}
