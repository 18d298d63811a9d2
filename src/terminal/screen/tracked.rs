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
    vte::ansi::{
        Attr, CharsetIndex, Handler, Mode, NamedMode, NamedPrivateMode, PrivateMode,
        StandardCharset,
    },
};

use super::{
    margins::{Margins, Saved},
    modes::Modes,
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

    pub(super) fn enter_alternate(&mut self, by: u16) {
        if !self.is_alternate() {
            if by == 1049 {
                self.save_cursor_position();
            }
            // The grid takes the cursor for the saved one.
            self.primary_saved = self.term.grid().saved_cursor.clone();
            self.term.swap_alt();
            self.alternate = Some(by);
        }
    }

    pub(super) fn leave_alternate(&mut self, by: u16) {
        if self.is_alternate() {
            let cursor = self.term.grid().cursor.clone();
            self.term.swap_alt();
            self.alternate = None;
            let grid = self.term.grid_mut();
            grid.saved_cursor = mem::take(&mut self.primary_saved);
            // The other modes leave the cursor where it was.
            grid.cursor = cursor;
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
        self.unset_mode(Mode::Named(NamedMode::Insert));
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
