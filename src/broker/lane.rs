//! Turns to open: each owner has its own lane, so that one that opens much delays only itself.

use std::collections::{BTreeMap, VecDeque};

use super::{lease::Connection, name::SessionId};

#[derive(Debug, Default)]
struct Lane {
    in_flight: usize,
    waiting: VecDeque<SessionId>,
}

/// The lanes of all owners that open something.
#[derive(Debug)]
pub struct Lanes {
    width: usize,
    lanes: BTreeMap<Connection, Lane>,
}

impl Lanes {
    /// Makes lanes with so many opens in flight each.
    #[must_use]
    pub fn new(width: usize) -> Self {
        Self { width: width.max(1), lanes: BTreeMap::new() }
    }

    /// Queues a session; whether it has its turn at once.
    pub fn enter(&mut self, owner: &Connection, session: &SessionId) -> bool {
        let lane = self.lanes.entry(owner.clone()).or_default();
        if lane.in_flight < self.width {
            lane.in_flight += 1;
            return true;
        }
        lane.waiting.push_back(session.clone());
        false
    }

    /// Takes a session out, whether it waited or was in flight; gives whose turn it is now.
    pub fn leave(&mut self, owner: &Connection, session: &SessionId) -> Option<SessionId> {
        let lane = self.lanes.get_mut(owner)?;
        if let Some(place) = lane.waiting.iter().position(|waiting| waiting == session) {
            lane.waiting.remove(place);
            return None;
        }
        let next = lane.waiting.pop_front();
        if next.is_none() {
            lane.in_flight = lane.in_flight.saturating_sub(1);
            if lane.in_flight == 0 {
                self.lanes.remove(owner);
            }
        }
        next
    }

    /// How many opens are in flight or wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lanes.values().map(|lane| lane.in_flight + lane.waiting.len()).sum()
    }

    /// Whether nothing is being opened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_lane_delays_only_its_owner() {
        let id = |text: &str| SessionId::new(text).unwrap();
        let (one, two) = (Connection::new(":1.1"), Connection::new(":1.2"));
        let mut lanes = Lanes::new(2);
        assert!(lanes.enter(&one, &id("a")) && lanes.enter(&one, &id("b")));
        assert!(!lanes.enter(&one, &id("c")) && !lanes.enter(&one, &id("d")));
        assert!(lanes.enter(&two, &id("e")));
        assert_eq!(lanes.leave(&one, &id("c")), None, "it only waited");
        assert_eq!(lanes.leave(&one, &id("a")), Some(id("d")));
        assert_eq!(lanes.leave(&one, &id("b")), None);
        assert_eq!(lanes.leave(&one, &id("d")), None);
        assert_eq!(lanes.leave(&two, &id("e")), None);
        assert!(lanes.is_empty());
    }
}
