//! The size of a terminal: who wishes what, and what was in force where in the output.
//!
//! Each client that controls the session may wish a size, and of each axis the least is in force. A size that is set
//! outright is in force at once, whatever is wished, until the next wish is made or withdrawn. When the last wish is
//! withdrawn the size stays.

use std::collections::VecDeque;

use super::{framing::Wish, output::SubscriptionId};
use crate::host::pty::Size;

/// The size in force, its history as far as a stream still has to tell it, and the wishes of attached clients.
#[derive(Debug)]
pub(super) struct Geometry {
    size: Size,
    changes: VecDeque<Change>,
    serial: u64,
    wishes: Vec<Wished>,
}

/// What a client wishes.
#[derive(Debug)]
struct Wished {
    client: SubscriptionId,
    wish: Wish,
    /// Whom it follows: a client that cannot say itself when it wishes another.
    by: Option<String>,
}

/// From this byte on, this was the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) serial: u64,
    pub(super) at: u64,
    pub(super) size: Size,
}

impl Geometry {
    /// Changes kept for slow streams; of more, the last ones become one.
    const MAX_CHANGES: usize = 256;

    pub(super) fn new(size: Size) -> Self {
        Self { size, changes: VecDeque::new(), serial: 0, wishes: Vec::new() }
    }

    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// The number of the last change.
    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    /// Notes the size from this byte on.
    pub(super) fn change(&mut self, at: u64, size: Size) {
        self.size = size;
        self.serial += 1;
        let change = Change { serial: self.serial, at, size };
        let full = self.changes.len() == Self::MAX_CHANGES;
        match self.changes.back_mut() {
            Some(last) if last.at == at || full => *last = Change { at: last.at, ..change },
            _ => self.changes.push_back(change),
        }
    }

    /// The first change after the one of this number.
    pub(super) fn after(&self, serial: u64) -> Option<Change> {
        self.changes.iter().find(|change| change.serial > serial).copied()
    }

    /// Forgets the changes that every stream has told: up to this number.
    pub(super) fn forget(&mut self, told: Option<u64>) {
        let told = told.unwrap_or(self.serial);
        while self.changes.front().is_some_and(|change| change.serial <= told) {
            self.changes.pop_front();
        }
    }

    /// Forgets what clients wished; the size stays.
    pub(super) fn forget_wishes(&mut self) {
        self.wishes.clear();
    }

    /// Notes what a client wishes, or that it wishes nothing; gives the size that all wish together: of each axis
    /// the least. `None` where nobody wishes anything, or nobody wished and wishes something else: the size stays.
    pub(super) fn wish(&mut self, client: SubscriptionId, wish: Option<Wish>) -> Option<Size> {
        let before = self.wishes.len();
        self.wishes.retain(|wished| wished.client != client);
        if wish.is_none() && self.wishes.len() == before {
            return None;
        }
        self.wishes.extend(wish.map(|wish| Wished { client, wish, by: None }));
        self.agreed()
    }

    /// As [`Self::wish`], of a client that wishes what [`Self::follow`] tells of this name later.
    pub(super) fn wish_by(
        &mut self,
        client: SubscriptionId,
        who: &str,
        wish: Wish,
    ) -> Option<Size> {
        self.wishes.push(Wished { client, wish, by: Some(who.to_owned()) });
        self.agreed()
    }

    /// Notes what the clients of this name wish that cannot say so; the size stays.
    pub(super) fn follow(&mut self, who: &str, wish: Wish) {
        let follows = |wished: &&mut Wished| wished.by.as_deref() == Some(who);
        self.wishes.iter_mut().filter(follows).for_each(|wished| wished.wish = wish);
    }

    /// The least of each axis that is wished.
    fn agreed(&self) -> Option<Size> {
        let wishes = || self.wishes.iter().map(|wished| wished.wish);
        let columns = wishes().map(|wish| wish.columns).min()?;
        let rows = wishes().map(|wish| wish.rows).min()?;
        let cell = wishes().map(|wish| wish.cell).rfind(|cell| *cell != (0, 0)).unwrap_or_default();
        Some(Size {
            columns,
            rows,
            pixel_width: cell.0.saturating_mul(columns),
            pixel_height: cell.1.saturating_mul(rows),
        })
    }
}

impl From<Size> for Wish {
    fn from(size: Size) -> Self {
        let cell = |pixels: u16, count: u16| pixels.checked_div(count).unwrap_or_default();
        let cell = (cell(size.pixel_width, size.columns), cell(size.pixel_height, size.rows));
        Self { columns: size.columns, rows: size.rows, cell }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(columns: u16, rows: u16) -> Option<Wish> {
        Some(Wish { columns, rows, cell: (0, 0) })
    }

    #[test]
    fn the_least_of_each_axis_is_in_force() {
        let mut geometry = Geometry::new(Size::new(80, 24));
        let [one, two] = [SubscriptionId::test(1), SubscriptionId::test(2)];
        assert_eq!(geometry.wish(one, None), None);
        assert_eq!(geometry.wish(one, wish(100, 30)), Some(Size::new(100, 30)));
        assert_eq!(geometry.wish(two, wish(90, 50)), Some(Size::new(90, 30)));
        assert_eq!(geometry.wish(one, wish(120, 60)), Some(Size::new(90, 50)));
        assert_eq!(geometry.wish(two, None), Some(Size::new(120, 60)));
        assert_eq!(geometry.wish(two, None), None, "an observer's leaving changes nothing");
        let cell = Some(Wish { columns: 10, rows: 1000, cell: (9, 100) });
        let size = geometry.wish(two, cell).unwrap();
        assert_eq!(
            (size.columns, size.rows, size.pixel_width, size.pixel_height),
            (10, 60, 90, 6000)
        );
    }

    #[test]
    fn who_cannot_say_what_it_wishes_follows_its_name() {
        let mut geometry = Geometry::new(Size::new(80, 24));
        let [one, two] = [SubscriptionId::test(1), SubscriptionId::test(2)];
        assert_eq!(
            geometry.wish_by(one, "one", Size::new(100, 30).into()),
            Some(Size::new(100, 30))
        );
        assert_eq!(geometry.wish(two, wish(90, 50)), Some(Size::new(90, 30)));
        geometry.follow("two", Size::new(10, 10).into());
        geometry.follow("one", Size::new(95, 40).into());
        assert_eq!(geometry.wish(two, wish(120, 60)), Some(Size::new(95, 40)));
        assert_eq!(geometry.wish(one, None), Some(Size::new(120, 60)));
        let size = Size { columns: 10, rows: 0, pixel_width: 95, pixel_height: 7 };
        assert_eq!(Wish::from(size), Wish { columns: 10, rows: 0, cell: (9, 0) });
    }

    #[test]
    fn changes_are_told_in_order_and_bounded() {
        let mut geometry = Geometry::new(Size::new(80, 24));
        geometry.change(5, Size::new(1, 1));
        geometry.change(5, Size::new(2, 2));
        geometry.change(9, Size::new(3, 3));
        let first = geometry.after(0).unwrap();
        assert_eq!(
            (first.at, first.size),
            (5, Size::new(2, 2)),
            "nothing was shown in the size before"
        );
        let second = geometry.after(first.serial).unwrap();
        assert_eq!((second.at, second.size), (9, Size::new(3, 3)));
        assert_eq!(geometry.after(second.serial), None);
        geometry.forget(Some(first.serial));
        assert_eq!(geometry.after(0), Some(second));
        for at in 10..10_000 {
            geometry.change(at, Size::new(4, 4));
        }
        assert_eq!(geometry.changes.len(), Geometry::MAX_CHANGES);
        assert_eq!(geometry.changes.back().unwrap().serial, geometry.serial());
        geometry.forget(None);
        assert_eq!(geometry.after(0), None);
    }
}
