//! What the grid knows and does not tell: scroll region, tab stops, character set in use, saved origin mode.

use std::ops::Range;

use alacritty_terminal::vte::ansi::CharsetIndex;

/// Columns between tab stops after a reset.
const TAB: usize = 8;

/// Followed beside the grid, by the same rules.
#[derive(Debug)]
pub(super) struct Margins {
    /// The lines that scroll, counted from 0.
    pub(super) region: Range<usize>,
    lines: usize,
    tabs: Vec<bool>,
    /// Which of G0 to G3 is in use.
    pub(super) charset: CharsetIndex,
    /// What saving the cursor has saved beside it, on the primary and on the alternate screen.
    pub(super) saved: [Saved; 2],
}

/// What DECSC saves and the grid's saved cursor does not hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Saved {
    /// Whether positions counted from the scroll region.
    pub(super) origin: bool,
    /// Which of G0 to G3 was in use.
    pub(super) charset: CharsetIndex,
}

impl Margins {
    /// Stops of the longest line: nothing is before that many.
    pub(super) const MOST_TABS: u16 = 1000;

    pub(super) fn new(columns: usize, lines: usize) -> Self {
        Self {
            region: 0..lines,
            lines,
            tabs: (0..columns).map(|column| column % TAB == 0).collect(),
            charset: CharsetIndex::default(),
            saved: [Saved::default(); 2],
        }
    }

    /// The whole screen scrolls again; columns that are new have their usual tab stops.
    pub(super) fn resize(&mut self, columns: usize, lines: usize) {
        let old = self.tabs.len();
        self.tabs.resize(columns, false);
        for column in old..columns {
            self.tabs[column] = column % TAB == 0;
        }
        self.lines = lines;
        self.region = 0..lines;
    }

    /// Takes a scroll region as DECSTBM gives it, from line 1 on and both lines included; gives whether it is one.
    pub(super) fn set_region(&mut self, top: usize, bottom: Option<usize>) -> bool {
        let bottom = bottom.unwrap_or(self.lines).min(self.lines);
        let is_one = top < bottom;
        if is_one {
            self.region = top.saturating_sub(1)..bottom;
        }
        is_one
    }

    pub(super) fn has_region(&self) -> bool {
        self.region != (0..self.lines)
    }

    pub(super) fn set_tab(&mut self, column: usize) {
        if let Some(tab) = self.tabs.get_mut(column) {
            *tab = true;
        }
    }

    pub(super) fn clear_tab(&mut self, column: usize) {
        if let Some(tab) = self.tabs.get_mut(column) {
            *tab = false;
        }
    }

    pub(super) fn clear_tabs(&mut self) {
        self.tabs.fill(false);
    }

    /// The last tab stop before a column; the first column where there is none.
    pub(super) fn tab_before(&self, column: usize) -> usize {
        self.tabs.iter().take(column).rposition(|tab| *tab).unwrap_or(0)
    }

    /// The columns of the tab stops, where they are not as after a reset.
    pub(super) fn tabs(&self) -> Option<impl Iterator<Item = usize>> {
        let changed = self.tabs.iter().enumerate().any(|(column, tab)| *tab != (column % TAB == 0));
        changed.then(|| {
            self.tabs.iter().enumerate().filter(|(_, tab)| **tab).map(|(column, _)| column)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_at_least_two_lines_of_the_screen() {
        let mut margins = Margins::new(80, 24);
        assert!(margins.set_region(5, Some(99)) && margins.has_region());
        assert_eq!(margins.region, 4..24);
        for (top, bottom) in [(7, Some(7)), (9, Some(3)), (24, None), (30, Some(40))] {
            assert!(!margins.set_region(top, bottom), "{top} {bottom:?}");
        }
        assert!(margins.set_region(1, None) && !margins.has_region());
    }

    #[test]
    fn tab_stops_are_told_where_they_were_changed() {
        let mut margins = Margins::new(20, 24);
        assert!(margins.tabs().is_none());
        margins.clear_tab(8);
        margins.set_tab(3);
        margins.set_tab(900);
        margins.resize(30, 24);
        assert_eq!(margins.tabs().unwrap().collect::<Vec<_>>(), [0, 3, 16, 24]);
        assert_eq!([30, 24, 4, 3, 0].map(|column| margins.tab_before(column)), [24, 16, 3, 0, 0]);
        margins.clear_tabs();
        assert_eq!(margins.tabs().unwrap().count(), 0);
        assert_eq!(margins.tab_before(20), 0);
    }
}
