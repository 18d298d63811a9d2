//! The screen of a session: what a terminal that was there from the beginning would show now.
//!
//! The parser and the grid are `alacritty_terminal`'s. What they do not keep, or do other than xterm, is in
//! `handler`, `modes` and `margins`; `paint` writes the bytes that make the same screen elsewhere.
//! Not kept: blank against written space, what scrolled out, hyperlinks and images that are already on the
//! screen. A baseline cannot always tell that a line goes on on the next row: where rows between were inserted
//! or removed, or the cursor is put by writing the last cell again; that shows where the width changes later.
//! Memory is bounded whatever a tool writes: 48 bytes a character cell for both buffers, and for cells that
//! hold combining characters or a colour of their underline 100 more.

use std::{fmt, time::Instant};

use alacritty_terminal::{
    event::VoidListener,
    grid::Dimensions,
    index::{Column, Line},
    term::{
        Config, Term,
        cell::{Cell, Flags},
    },
    vte::ansi::Processor,
};

use crate::host::pty::Size;

mod handler;
mod margins;
mod modes;
mod names;
mod paint;
mod pen;
mod sequence;
mod skim;
mod tracked;

pub use modes::RESET_INPUT_MODES;
pub use paint::BLANK;
pub use tracked::Query;

use handler::Unsynchronized;
use margins::Margins;
use modes::Modes;
use sequence::Overlong;
use tracked::Tracked;

/// A screen as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Each row, without the blanks at its end.
    pub rows: Vec<String>,
    /// Column and row of the cursor, from 0 on.
    pub cursor: (u16, u16),
    /// The size in force.
    pub size: Size,
    /// The title that the tool has set; empty where it has not.
    pub title: String,
    /// Whether it is the alternate screen, that of full-screen programs.
    pub alternate: bool,
}

/// What a tool has set of how keys and pastes reach it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InputModes {
    /// Cursor keys begin with SS3 (DECCKM).
    pub application_cursor: bool,
    /// Keys of the keypad send sequences of their own (DECKPAM).
    pub application_keypad: bool,
    /// A paste is marked as one (mode 2004).
    pub bracketed_paste: bool,
}

/// A screen that cannot be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScreenError {
    /// A direct holder reads what the tool writes.
    #[error("the session is held directly, and its screen known to the holder alone")]
    Held,
    /// There is no model of it.
    #[error("the memory for screens is used up, or this one is too large; Read still works")]
    NoModel,
}

/// The live model of a screen.
pub struct Screen {
    tracked: Tracked,
    processor: Processor<Unsynchronized>,
    size: Size,
    /// What the output is in the middle of, where that was too long to wait for its end.
    overlong: Option<Overlong>,
    /// How many bytes of the last output are drawn or passed over.
    at: usize,
    /// After how many bytes of it each query was found.
    asked_at: Vec<usize>,
}

/// A size as the grid asks for it; it has two columns at least, for a wide character.
struct Extent {
    columns: usize,
    lines: usize,
}

impl From<Size> for Extent {
    fn from(size: Size) -> Self {
        let columns = usize::from(size.columns).max(alacritty_terminal::term::MIN_COLUMNS);
        Self { columns, lines: size.rows.max(1).into() }
    }
}

impl Dimensions for Extent {
    fn total_lines(&self) -> usize {
        self.lines
    }

    fn screen_lines(&self) -> usize {
        self.lines
    }

    fn columns(&self) -> usize {
        self.columns
    }
}

impl Screen {
    /// Most character cells of a screen that has a model: eight times those of a large window.
    const MAX_CELLS: usize = 200_000;
    /// Cells that one piece of output may touch, by the count of its bytes: a few bytes can clear a screen.
    const PIECE_CELLS: usize = 8 << 20;
    /// Memory beside the cells.
    const FIXED: usize = 4 << 10;

    /// The memory that a screen of this size takes, bytes; `None` where it is too large for a model.
    #[must_use]
    pub fn cost(size: Size) -> Option<usize> {
        let Extent { columns, lines } = size.into();
        let cells = columns * lines;
        (cells <= Self::MAX_CELLS).then_some(Self::FIXED + 2 * cells * size_of::<Cell>())
    }

    /// A screen as it is after a reset.
    #[must_use]
    pub fn new(size: Size) -> Self {
        let extent = Extent::from(size);
        let config = Config { scrolling_history: 0, ..Config::default() };
        let tracked = Tracked {
            term: Term::new(config, &extent, VoidListener),
            modes: Modes::default(),
            margins: Margins::new(extent.columns, extent.lines),
            primary_saved: Default::default(),
            alternate: None,
            just_printed: false,
            queries: Vec::new(),
        };
        Self {
            tracked,
            processor: Processor::new(),
            size,
            overlong: None,
            at: 0,
            asked_at: Vec::new(),
        }
    }

    /// The size that it was given.
    #[must_use]
    pub fn size(&self) -> Size {
        self.size
    }

    /// Gives it another size, as a terminal that reflows the lines of the primary screen.
    pub fn resize(&mut self, size: Size) {
        let extent = Extent::from(size);
        self.tracked.margins.resize(extent.columns, extent.lines);
        self.tracked.resize_saved(extent.columns, extent.lines);
        self.tracked.term.resize(extent);
        // Rows that went are kept for later otherwise.
        self.tracked.term.grid_mut().truncate();
        self.tracked.settle();
        self.tracked.just_printed = false;
        self.size = size;
    }

    /// Draws output until all of it is drawn or it is late; gives how many bytes were. What follows them is to be
    /// shown next time, then with more behind it: a character or a sequence is drawn whole. Where `full`, no more
    /// can be waited for, and an unfinished sequence is passed over.
    pub fn draw(&mut self, bytes: &[u8], full: bool, late: Instant) -> usize {
        let passed = match self.pass_over(bytes) {
            Some(passed) => passed,
            None => return bytes.len() - usize::from(bytes.ends_with(b"\x1b")),
        };
        self.at = passed;
        let left = &bytes[passed..];
        let whole = sequence::whole(left);
        if whole > 0 || !full {
            return passed + self.draw_whole(&left[..whole], late);
        }
        let text = memchr::memchr(0x1b, left).unwrap_or(left.len());
        if text > 0 {
            return passed + self.draw_whole(&left[..text], late);
        }
        if let Some(first) = sequence::length(&[], left) {
            return passed + self.draw_whole(&left[..first], late);
        }
        self.overlong = Overlong::begun(left);
        passed + left.len().min(2)
    }

    /// How many of these bytes belong to what is passed over; `None` where all of them do.
    fn pass_over(&mut self, bytes: &[u8]) -> Option<usize> {
        let Some(overlong) = &self.overlong else { return Some(0) };
        let rest = overlong.rest(bytes)?;
        self.overlong = None;
        Some(rest)
    }

    /// Draws what is cut where it may be.
    fn draw_whole(&mut self, bytes: &[u8], late: Instant) -> usize {
        let (before, text) = bytes.split_at(skim::plain_from(bytes).max(sequence::last_end(bytes)));
        let drawn = self.draw_pieces(before, late);
        if drawn < before.len() || text.is_empty() {
            return drawn;
        }
        let lines = usize::from(self.size.rows);
        let unseen = if self.tracked.margins.has_region() { 0 } else { skim::unseen(text, lines) };
        if unseen > 0 {
            self.advance(b"\r");
            self.at += unseen;
        }
        drawn + unseen + self.draw_pieces(&text[unseen..], late)
    }

    fn draw_pieces(&mut self, bytes: &[u8], late: Instant) -> usize {
        let Extent { columns, lines } = self.size.into();
        let short = (Self::PIECE_CELLS / (columns * lines)).clamp(16, 4096);
        let (mut drawn, mut length) = (0, short);
        while drawn < bytes.len() {
            let left = &bytes[drawn..];
            let whole =
                if length < left.len() { sequence::whole(&left[..length]) } else { left.len() };
            if whole == 0 {
                // One sequence is longer than that.
                length *= 2;
                continue;
            }
            self.advance(&left[..whole]);
            drawn += whole;
            self.at += whole;
            self.asked_at.resize(self.tracked.queries.len(), self.at);
            length = short;
            if Instant::now() >= late {
                break;
            }
        }
        drawn
    }

    /// The parser of the grid does not know the soft reset (DECSTR). Nothing of a piece is cut, so what looks like
    /// one is one.
    fn advance(&mut self, mut bytes: &[u8]) {
        const SOFT_RESET: &[u8] = b"\x1b[!p";
        while let Some(at) = memchr::memmem::find(bytes, SOFT_RESET) {
            self.processor.advance(&mut self.tracked, &bytes[..at]);
            self.tracked.soft_reset();
            bytes = &bytes[at + SOFT_RESET.len()..];
        }
        self.processor.advance(&mut self.tracked, bytes);
    }

    /// The bytes that paint the screen and set its modes on a reset terminal of its size.
    pub fn baseline(&mut self) -> Vec<u8> {
        let mut bytes = paint::baseline(&mut self.tracked);
        bytes.extend(self.overlong.as_ref().map(Overlong::inert).unwrap_or_default());
        bytes
    }

    /// What terminals were asked in the output drawn last, each after how many bytes of it at most. To be taken after
    /// each [`Self::draw`].
    pub fn take_queries(&mut self) -> impl Iterator<Item = (usize, Query)> + use<> {
        let queries = std::mem::take(&mut self.tracked.queries);
        std::mem::take(&mut self.asked_at).into_iter().zip(queries)
    }

    /// The title that the tool has set; empty where it has not.
    #[must_use]
    pub fn title(&self) -> &str {
        self.tracked.modes.names.title()
    }

    /// How keys and pastes reach the tool.
    #[must_use]
    pub fn input_modes(&self) -> InputModes {
        let modes = &self.tracked.modes;
        InputModes {
            application_cursor: modes.is_on(1),
            application_keypad: modes.application_keypad,
            bracketed_paste: modes.is_on(2004),
        }
    }

    /// The screen as text.
    #[must_use]
    pub fn view(&self) -> View {
        let (line, column) = self.tracked.cursor();
        let number = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        View {
            rows: (0..i32::from(self.size.rows)).map(|line| self.row(Line(line))).collect(),
            cursor: (number(column), number(line)),
            size: self.size,
            title: self.title().to_owned(),
            alternate: self.tracked.alternate.is_some(),
        }
    }

    fn row(&self, line: Line) -> String {
        let row = &self.tracked.term.grid()[line];
        let cells = (0..row.len()).map(|column| &row[Column(column)]);
        let mut text = String::new();
        for cell in cells.filter(|cell| !cell.flags.contains(Flags::WIDE_CHAR_SPACER)) {
            text.push(cell.c);
            text.extend(cell.zerowidth().into_iter().flatten());
        }
        text.truncate(text.trim_end_matches(' ').len());
        text
    }
}

impl fmt::Debug for Screen {
    /// Shows the size only: terminal content is never logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Screen({} × {})", self.size.columns, self.size.rows)
    }
}

#[cfg(test)]
mod tests;
