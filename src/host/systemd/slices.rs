//! The slices that sessions are in: not too many in one.
//!
//! For each unit that starts or ends, the manager looks at every other of its slice, and at every one of the slices
//! above it (`unit_add_family_to_cgroup_realize_queue` of systemd): beside a thousand in one slice, a start takes it
//! three times as long as beside none.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The slice of all sessions, and of nothing else.
pub const SLICE: &str = "app-st2tools.slice";

/// What slices beneath it are called, before their number.
const BENEATH: &str = "app-st2tools-";

/// How many scopes are in one slice before the next is used.
pub const SLICE_MAX: usize = 64;

/// How many scopes are in each slice: first in the one of all sessions, then in those beneath it.
#[derive(Debug, Default)]
pub(super) struct Slices(Mutex<Vec<usize>>);

/// A scope's room in a slice, until it is dropped.
#[derive(Debug)]
pub(super) struct Room {
    slices: Arc<Slices>,
    number: usize,
}

impl Slices {
    /// Takes room in the first slice that has some.
    pub(super) fn take(self: &Arc<Self>) -> Room {
        let mut slices = self.lock();
        let number = slices.iter().position(|scopes| *scopes < SLICE_MAX);
        let number = number.unwrap_or_else(|| {
            slices.push(0);
            slices.len() - 1
        });
        slices[number] += 1;
        Room { slices: self.clone(), number }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Room {
    /// The slice's name.
    pub(super) fn slice(&self) -> String {
        match self.number {
            0 => SLICE.to_owned(),
            number => format!("{BENEATH}{number}.slice"),
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.slices.lock()[self.number] -= 1;
    }
}

/// Whether a slice is one of those that sessions are in.
pub(super) fn is_ours(slice: &str) -> bool {
    let number = slice.strip_prefix(BENEATH).and_then(|rest| rest.strip_suffix(".slice"));
    slice == SLICE || number.is_some_and(|number| number.parse::<usize>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_full_before_the_next_is_used_and_room_is_given_back() {
        let slices = Arc::<Slices>::default();
        let mut rooms: Vec<Room> = (0..2 * SLICE_MAX).map(|_| slices.take()).collect();
        let (first, second) = rooms.split_at(SLICE_MAX);
        assert!(first.iter().all(|room| room.slice() == SLICE));
        assert!(second.iter().all(|room| room.slice() == "app-st2tools-1.slice"));
        assert_eq!(slices.take().slice(), "app-st2tools-2.slice");
        rooms.remove(3);
        assert_eq!(slices.take().slice(), SLICE);
        drop(rooms);
        assert!(slices.lock().iter().all(|scopes| *scopes == 0));
    }

    #[test]
    fn the_slices_are_told_from_others() {
        let ours = [SLICE, "app-st2tools-1.slice", "app-st2tools-15.slice"];
        assert!(ours.into_iter().all(is_ours));
        let others = [
            "app.slice",
            "app-st2tools-.slice",
            "app-st2tools-x.slice",
            "app-st2tools-1.scope",
            "",
        ];
        assert!(!others.into_iter().any(is_ours));
    }
}
