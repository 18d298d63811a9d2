//! A grid and what is followed beside it, with the steps that several sequences have in common.

use std::mem;

use alacritty_terminal::{
    event::VoidListener,
    grid::{Cursor, Dimensions},
    index::{Column, Line},
    term::{
        Term, TermMode,
        cell::{Cell, Flags},
    },
    vte::ansi::{Attr, CharsetIndex, Handler, NamedPrivateMode, PrivateMode, StandardCharset},
};
use unicode_width::UnicodeWidthChar;

use super::{
    margins::{Margins, Saved},
    modes::Modes,
    paint::is_unwritten,
};

/// Characters that add to another (combining ones) and are kept with it.
const COMBINING: usize = 8;

/// A question that a terminal is to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// What it is (DA1).
    Attributes,
    /// What it is, in more detail (DA2).
    SecondaryAttributes,
    /// Whether it works (DSR 5).
    Status,
    /// Where its cursor is (DSR 6).
    Cursor {
        /// From 1 on.
        row: usize,
        /// From 1 on.
        column: usize,
    },
}

/// The screen and all that a tool has set.
pub(super) struct Tracked {
    pub(super) term: Term<VoidListener>,
    pub(super) modes: Modes,
    pub(super) margins: Margins,
    /// The saved cursor of the primary screen, while the alternate one is shown.
    pub(super) primary_saved: Cursor<Cell>,
    /// By which mode the alternate screen was entered, while it is shown.
    pub(super) alternate: Option<u16>,
    /// The last thing that happened was that a character was shown: it is the one left of the cursor, which REP
    /// (`CSI b`) repeats.
    pub(super) just_printed: bool,
    /// Asked since they were last taken; the first few.
    pub(super) queries: Vec<Query>,
}

impl Tracked {
    /// Queries kept of one piece of output. A tool that asks more at once gets no answer to the rest.
    const QUERIES: usize = 64;

    pub(super) fn is_alternate(&self) -> bool {
        self.term.mode().contains(TermMode::ALT_SCREEN)
    }

    pub(super) fn has_origin(&self) -> bool {
        self.term.mode().contains(TermMode::ORIGIN)
    }

    /// Whether text goes on on the next line after the last column (DECAWM).
    pub(super) fn wraps(&self) -> bool {
        self.term.mode().contains(TermMode::LINE_WRAP)
    }

    pub(super) fn ask(&mut self, query: Query) {
        if self.queries.len() < Self::QUERIES {
            self.queries.push(query);
        }
    }

    /// Sets the cursor within the screen.
    pub(super) fn place(&mut self, line: usize, column: usize) {
        let cursor = &mut self.term.grid_mut().cursor;
        // A screen has at most 1000 lines.
        cursor.point.line = Line(i32::try_from(line).unwrap_or(i32::MAX));
        cursor.point.column = Column(column);
        cursor.input_needs_wrap = false;
        self.just_printed = false;
    }

    /// Forgets that the next character wraps.
    pub(super) fn end_wait(&mut self) {
        self.term.grid_mut().cursor.input_needs_wrap = false;
        self.just_printed = false;
    }

    /// Blanks the wide character, if there is one, half of which lies before this column of the cursor's line: the
    /// other half is about to go. Such an edit also ends what [`Self::just_printed`] tells.
    pub(super) fn split(&mut self, column: usize) {
        self.just_printed = false;
        let grid = self.term.grid_mut();
        let line = grid.cursor.point.line;
        if column == 0 || column >= grid.columns() {
            return;
        }
        let row = &mut grid[line];
        if row[Column(column)].flags.contains(Flags::WIDE_CHAR_SPACER) {
            row[Column(column)].flags.remove(Flags::WIDE_CHAR_SPACER);
            row[Column(column - 1)].clear_wide();
        }
    }

    /// Makes room for a character where it will be shown: on the next line if it does not fit on this one, and in
    /// insert mode (IRM) between others. The grid would blank the column that a wide character leaves free. Gives whether
    /// there is room: a wide character is not shown in the last column where text does not wrap.
    pub(super) fn make_room(&mut self, c: char) -> bool {
        let Some(width @ 1..) = c.width() else { return true };
        if self.term.grid().cursor.input_needs_wrap && self.wraps() {
            self.wrap();
        }
        if self.cursor().1 + width > self.term.grid().columns() {
            if !self.wraps() {
                return false;
            }
            let free = self.term.grid_mut().cursor_cell();
            if is_unwritten(free) {
                free.flags.insert(Flags::LEADING_WIDE_CHAR_SPACER);
            }
            self.wrap();
        }
        if self.modes.inserts {
            self.insert_blank(width);
        }
        true
    }

    /// Goes on on the next line.
    fn wrap(&mut self) {
        self.term.grid_mut().cursor_cell().flags.insert(Flags::WRAPLINE);
        self.term.linefeed();
        let (line, _) = self.cursor();
        self.place(line, 0);
    }

    /// Brings both saved cursors into a screen of another size. Of the primary screen's the grid knows nothing while
    /// the alternate one is shown; and it would have either wrap in the middle of what is a longer line now.
    pub(super) fn resize_saved(&mut self, columns: usize, lines: usize) {
        let last = Line(i32::try_from(lines - 1).unwrap_or(i32::MAX));
        for saved in [&mut self.primary_saved, &mut self.term.grid_mut().saved_cursor] {
            saved.point.line = saved.point.line.min(last);
            saved.point.column = saved.point.column.min(Column(columns - 1));
            saved.input_needs_wrap = false;
        }
    }

    /// Puts right what a change of size leaves of the screen that is shown. The grid cuts and lengthens the lines of
    /// the alternate screen: a wide character of which half went is blank now, and a cursor past the last column may
    /// be past another. And it forgets how far lines are written that it breaks elsewhere, so that clearing them
    /// leaves colours behind: until their last cell is touched.
    pub(super) fn settle(&mut self) {
        let grid = self.term.grid_mut();
        let last = Column(grid.columns() - 1);
        if grid.cursor.input_needs_wrap && grid.cursor.point.column < last {
            grid.cursor.point.column += 1;
            grid.cursor.input_needs_wrap = false;
        }
        for line in (0..grid.screen_lines()).filter_map(|line| i32::try_from(line).ok()) {
            let cell = &mut grid[Line(line)][last];
            if cell.flags.contains(Flags::WIDE_CHAR) {
                cell.clear_wide();
            }
        }
    }

    /// Line and column of the cursor.
    pub(super) fn cursor(&self) -> (usize, usize) {
        let point = self.term.grid().cursor.point;
        (usize::try_from(point.line.0).unwrap_or_default(), point.column.0)
    }

    /// Moves up, at most to the top of the scroll region, from within or below it.
    pub(super) fn up(&mut self, count: usize, column: usize) {
        let (line, _) = self.cursor();
        let top = if line >= self.margins.region.start { self.margins.region.start } else { 0 };
        self.place(line.saturating_sub(count).max(top), column);
    }

    /// Moves down, at most to the bottom of the scroll region, from within or above it.
    pub(super) fn down(&mut self, count: usize, column: usize) {
        let (line, _) = self.cursor();
        let end = self.margins.region.end;
        let bottom = if line < end { end } else { self.term.grid().screen_lines() } - 1;
        self.place(line.saturating_add(count).min(bottom), column);
    }

    /// What saving the cursor saves beside it.
    pub(super) fn to_save(&self) -> Saved {
        Saved { origin: self.has_origin(), charset: self.margins.charset }
    }

    pub(super) fn enter_alternate(&mut self, by: u16) {
        if !self.is_alternate() {
            if by == 1049 {
                self.save_cursor_position();
            }
            // The grid takes the cursor for the saved one.
            self.primary_saved = self.term.grid().saved_cursor.clone();
            self.term.swap_alt();
            // The grid has cleared it, but for what it has forgotten since.
            self.settle();
            self.term.grid_mut().reset_region(..);
            // What a program before had saved there is not this one's.
            self.term.grid_mut().saved_cursor = Default::default();
            self.margins.saved[1] = Saved::default();
            self.alternate = Some(by);
        }
    }

    pub(super) fn leave_alternate(&mut self, by: u16) {
        if self.is_alternate() {
            let cursor = self.term.grid().cursor.clone();
            self.term.swap_alt();
            self.margins.saved[1] = Saved::default();
            let grid = self.term.grid_mut();
            // The one that 1049 saved is where the grid had it, also if its lines are broken elsewhere since.
            let kept = (self.alternate.take() == Some(1049)).then(|| grid.cursor.clone());
            grid.saved_cursor = kept.unwrap_or(mem::take(&mut self.primary_saved));
            // The other modes leave the cursor where it was.
            grid.cursor = cursor;
            self.settle();
        }
        if by == 1049 {
            self.restore_cursor_position();
        }
    }

    /// Whether the character left of the cursor can carry one more that adds to it.
    pub(super) fn carries_more(&self) -> bool {
        let cursor = &self.term.grid().cursor;
        let row = &self.term.grid()[cursor.point.line];
        let back = usize::from(!cursor.input_needs_wrap);
        let mut column = cursor.point.column.0.saturating_sub(back);
        if row[Column(column)].flags.contains(Flags::WIDE_CHAR_SPACER) {
            column = column.saturating_sub(1);
        }
        row[Column(column)].zerowidth().is_none_or(|more| more.len() < COMBINING)
    }

    /// DECSTR, as the VT510 has it.
    pub(super) fn soft_reset(&mut self) {
        self.term.unset_private_mode(PrivateMode::Named(NamedPrivateMode::Origin));
        self.term.set_private_mode(PrivateMode::Named(NamedPrivateMode::LineWrap));
        self.terminal_attribute(Attr::Reset);
        for index in [CharsetIndex::G0, CharsetIndex::G1, CharsetIndex::G2, CharsetIndex::G3] {
            self.configure_charset(index, StandardCharset::Ascii);
        }
        self.set_active_charset(CharsetIndex::G0);
        let (line, column) = self.cursor();
        self.set_scrolling_region(1, None);
        self.place(line, column);
        self.term.grid_mut().saved_cursor = Default::default();
        self.margins.saved[usize::from(self.is_alternate())] = Saved::default();
        self.modes.soft_reset();
    }
}
