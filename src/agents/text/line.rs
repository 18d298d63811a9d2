//! The line that a tool is writing: what overwrote what.

use std::ops::Range;

/// The widest that a cursor is moved to by number: no terminal of ours has more columns.
const MAX_COLUMN: usize = 1000;
/// Blanks that the cursor was moved past are shown as at most so many spaces; of a line that is left no more are kept.
pub(super) const MAX_BLANKS: usize = 8;
/// Cells that an empty line keeps room for.
const KEPT: usize = 1 << 10;

/// What one cell shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// A character that the tool wrote.
    Character(char),
    /// What the cursor was moved past.
    Blank,
    /// The cursor went to another line.
    Break,
}

/// One cell, and the place in all that was written of the character in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) shown: Shown,
    /// Bytes of text written before it since the beginning of the stream.
    pub(super) written: u64,
    /// Part of a secret.
    pub(super) secret: bool,
}

impl Cell {
    /// Whether the tool wrote what is in it.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.shown, Shown::Character(_))
    }
}

/// Cells that have not been given out. Those before `base` are of earlier lines, and are not written to any more.
///
/// A tool writes to one terminal line at a time; the line that its cursor leaves other than by a line feed is kept as it was,
/// as a line of its own. So this is a log of what was drawn, not the screen that resulted. A tab is one column, as is a wide
/// character.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    cells: Vec<Cell>,
    base: usize,
    /// The column of the cell at `base`.
    start: usize,
    column: usize,
    /// Something of this line has been given out, and nothing that ends it.
    open: bool,
    /// Something was written other than at the end.
    edited: bool,
}

impl Line {
    pub(super) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Whether so many cells are held that all are to be given out, whatever may yet become of them.
    pub(super) fn is_crowded(&self) -> bool {
        self.cells.len() > Self::CROWD
    }

    /// Whether what is written next ends the line first, of which something was given out that it would overwrite.
    pub(super) fn is_behind(&self) -> bool {
        self.open && self.column < self.start
    }

    pub(super) fn cells_mut(&mut self) -> &mut [Cell] {
        &mut self.cells
    }

    /// Whether the order of the cells is another than that in which they were written.
    pub(super) fn is_edited(&self) -> bool {
        self.edited
    }

    /// Cells above which the line is crowded.
    const CROWD: usize = 16 << 10;
    /// The most cells there are, if they are given out where the line is crowded: what one character and one insertion add.
    #[cfg(test)]
    pub(super) const MAX_CELLS: usize = Self::CROWD + 4 * MAX_COLUMN;

    /// How much is held, in bytes.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.cells.capacity() * size_of::<Cell>()
    }

    /// Writes a character where the cursor is.
    pub(super) fn print(&mut self, character: char, written: u64) {
        if self.column < self.start {
            self.leave(written);
        }
        let cell = Cell { shown: Shown::Character(character), written, secret: false };
        let index = self.index();
        if index < self.cells.len() {
            self.cells[index] = cell;
            self.edited = true;
        } else {
            self.cells.resize(index, blank(written));
            self.cells.push(cell);
        }
        self.column += 1;
    }

    /// Moves the cursor within the line, to a column counted from 0.
    pub(super) fn move_to(&mut self, column: usize) {
        self.column = column.min(MAX_COLUMN);
    }

    /// Moves the cursor to the left.
    pub(super) fn left(&mut self, columns: usize) {
        self.column = self.column.saturating_sub(columns);
    }

    /// Moves the cursor to the right.
    pub(super) fn right(&mut self, columns: usize) {
        let bound = self.column.max(self.start + MAX_COLUMN);
        self.column = self.column.saturating_add(columns).min(bound);
    }

    /// The cursor goes to another line, to `column` where that is said.
    pub(super) fn go(&mut self, column: Option<usize>, written: u64) {
        if let Some(column) = column {
            self.move_to(column);
        }
        self.leave(written);
    }

    /// Erases from the cursor to the end of the line.
    pub(super) fn erase_after(&mut self, written: u64) {
        if self.column < self.start {
            return self.leave(written);
        }
        let index = self.index();
        if index < self.cells.len() {
            self.cells.truncate(index);
            self.edited = true;
        }
    }

    /// Erases from the beginning of the line to the cursor.
    pub(super) fn erase_before(&mut self) {
        let end = (self.index() + 1).min(self.cells.len());
        self.blank(end.saturating_sub(MAX_COLUMN).max(self.base)..end);
    }

    /// Erases the line.
    pub(super) fn erase_all(&mut self, written: u64) {
        if self.open {
            return self.leave(written);
        }
        self.edited |= self.base < self.cells.len();
        self.cells.truncate(self.base);
    }

    /// Erases so many cells from the cursor on.
    pub(super) fn erase(&mut self, count: usize) {
        let index = self.index();
        self.blank(index..(index + count.min(MAX_COLUMN)).min(self.cells.len()));
    }

    /// Deletes so many cells at the cursor. A line longer than any terminal's stays as it is.
    pub(super) fn delete(&mut self, count: usize) {
        let index = self.index();
        if index < self.cells.len() && self.is_short() {
            let end = index.saturating_add(count).min(self.cells.len());
            self.cells.drain(index..end);
            self.edited = true;
        }
    }

    /// Inserts so many blanks at the cursor. A line longer than any terminal's stays as it is.
    pub(super) fn insert(&mut self, count: usize, written: u64) {
        let index = self.index();
        if index < self.cells.len() && self.is_short() {
            let blanks = std::iter::repeat_n(blank(written), count.min(MAX_COLUMN));
            self.cells.splice(index..index, blanks);
            self.cells.truncate(self.base + 2 * MAX_COLUMN);
            self.edited = true;
        }
    }

    /// The character before the cursor.
    pub(super) fn previous(&self) -> Option<char> {
        let index = self.column.checked_sub(self.start + 1)? + self.base;
        match self.cells.get(index)?.shown {
            Shown::Character(character) => Some(character),
            Shown::Blank | Shown::Break => None,
        }
    }

    /// Forgets the first cells, which have been given out. What the tool overwrites of them is a line of its own.
    pub(super) fn given(&mut self, count: usize) {
        self.cells.drain(..count);
        let current = count.saturating_sub(self.base);
        self.base = self.base.saturating_sub(count);
        self.start += current;
        self.open |= current > 0;
        self.edited &= !self.cells.is_empty();
        self.cells.shrink_to(KEPT);
    }

    /// Begins the line after a line feed.
    pub(super) fn reset(&mut self) {
        let cells = std::mem::take(&mut self.cells);
        *self = Self { cells, ..Self::default() };
        self.cells.clear();
        self.cells.shrink_to(KEPT);
    }

    /// Ends the line where the cursor leaves it; one that has nothing is none.
    fn leave(&mut self, written: u64) {
        if self.open || self.base < self.cells.len() {
            self.drop_blanks();
            self.cells.push(Cell { shown: Shown::Break, written, secret: false });
            self.base = self.cells.len();
            self.open = false;
        }
        self.start = self.column;
    }

    /// Drops the blanks that are not shown: a few bytes make a thousand of them.
    fn drop_blanks(&mut self) {
        let (mut kept, mut blanks) = (self.base, 0);
        for index in self.base..self.cells.len() {
            let cell = self.cells[index];
            blanks = if cell.shown == Shown::Blank { blanks + 1 } else { 0 };
            if blanks <= MAX_BLANKS {
                self.cells[kept] = cell;
                kept += 1;
            }
        }
        self.cells.truncate(kept);
    }

    fn index(&self) -> usize {
        self.base + self.column.saturating_sub(self.start)
    }

    fn is_short(&self) -> bool {
        self.column >= self.start && self.cells.len() - self.base <= 2 * MAX_COLUMN
    }

    fn blank(&mut self, range: Range<usize>) {
        if range.start < range.end {
            self.cells[range].iter_mut().for_each(|cell| cell.shown = Shown::Blank);
            self.edited = true;
        }
    }
}

fn blank(written: u64) -> Cell {
    Cell { shown: Shown::Blank, written, secret: false }
}
