//! Deadlines, in order. The core arms and disarms them; whoever runs it sleeps until the next.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{lease::LeaseId, name::SessionId};

/// What a deadline is for. Each key has at most one deadline.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A vanished owner did not come back for this session.
    Grace(SessionId),
    /// A session's overall watchdog.
    Timeout(SessionId),
    /// A closed session is kept no longer.
    Retention(SessionId),
    /// A token lease was neither claimed nor renewed.
    Lease(LeaseId),
}

/// The armed deadlines.
#[derive(Debug, Default)]
pub struct Deadlines {
    at: BTreeMap<Key, Duration>,
    order: BTreeSet<(Duration, Key)>,
}

impl Deadlines {
    /// Arms a deadline, in place of an earlier one for the same key.
    pub fn arm(&mut self, key: Key, at: Duration) {
        self.disarm(&key);
        self.at.insert(key.clone(), at);
        self.order.insert((at, key));
    }

    /// Disarms a deadline; does nothing where none is armed.
    pub fn disarm(&mut self, key: &Key) {
        if let Some(at) = self.at.remove(key) {
            self.order.remove(&(at, key.clone()));
        }
    }

    /// When a key's deadline is.
    #[must_use]
    pub fn of(&self, key: &Key) -> Option<Duration> {
        self.at.get(key).copied()
    }

    /// The earliest deadline.
    #[must_use]
    pub fn next(&self) -> Option<Duration> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes the earliest deadline out, if its time has come.
    pub fn take_elapsed(&mut self, elapsed: Duration) -> Option<Key> {
        let (at, _) = self.order.first()?;
        if *at > elapsed {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        self.at.remove(&key);
        Some(key)
    }

    /// How many are armed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// Whether none is armed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_rearming_moves_it() {
        let mut deadlines = Deadlines::default();
        let (one, two) = (Key::Lease(LeaseId(1)), Key::Lease(LeaseId(2)));
        deadlines.arm(one.clone(), Duration::from_secs(1));
        deadlines.arm(two.clone(), Duration::from_secs(2));
        deadlines.arm(one.clone(), Duration::from_secs(3));
        assert_eq!(deadlines.next(), Some(Duration::from_secs(2)));
        assert_eq!(deadlines.take_elapsed(Duration::from_secs(1)), None);
        assert_eq!(deadlines.take_elapsed(Duration::from_secs(9)), Some(two));
        assert_eq!(deadlines.take_elapsed(Duration::from_secs(9)), Some(one));
        assert!(deadlines.is_empty());
    }
}
