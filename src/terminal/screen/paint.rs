//! From a screen to the bytes that make it on a reset terminal.

use alacritty_terminal::{
    grid::{Cursor, Dimensions, Grid, Row},
    index::{Column, Line},
    term::{
        TermMode,
        cell::{Cell, Flags},
    },
    vte::ansi::{CharsetIndex, NamedColor, StandardCharset},
};

use super::{margins::Saved, modes::put, pen::Pen, tracked::Tracked};

/// What painting relies on, for a terminal that was not reset after all: the primary screen is clear, nothing is
/// shifted, translated or kept from wrapping, and the whole screen scrolls.
pub const BLANK: &[u8] = b"\x1b[m\x1b[r\x1b[?6l\x1b[4l\x1b[?7h\x0f\x1b(B\x1b[H\x1b[2J";

/// Unwritten cells in a row that are stepped over rather than written.
const STEP: usize = 8;

/// Bytes that paint, and what the terminal is like after them.
struct Painter {
    out: Vec<u8>,
    pen: Pen,
    /// Whether the cursor is where a character was just written.
    just_printed: bool,
}

/// The bytes that paint the screen and set every mode.
pub(super) fn baseline(tracked: &mut Tracked) -> Vec<u8> {
    let mut painter = Painter { out: BLANK.to_vec(), pen: Pen::default(), just_printed: false };
    match tracked.alternate {
        Some(by) => painter.primary_beneath(tracked, by),
        None => tracked.modes.write_left_keyboard(&mut painter.out),
    }
    painter.grid(tracked.term.grid());
    // While all of the screen scrolls: then origin mode changes no position.
    let saved = tracked.margins.saved[usize::from(tracked.alternate.is_some())];
    painter.save(tracked.term.grid(), &tracked.term.grid().saved_cursor, saved);
    painter.margins(tracked);
    painter.colors(tracked);
    painter.modes(tracked);
    painter.cursor(tracked);
    // Last, as the cursor may be put where it is by writing a character.
    if tracked.modes.inserts {
        painter.out.extend(b"\x1b[4h");
    }
    painter.out
}

impl Painter {
    /// Paints the primary screen, and goes on to the alternate one as the tool did.
    fn primary_beneath(&mut self, tracked: &mut Tracked, by: u16) {
        // The grid that is not shown can be had by showing it only, which clears the other on the way back.
        let shown = tracked.term.grid().clone();
        tracked.term.swap_alt();
        let (primary, saved) = (tracked.term.grid(), tracked.margins.saved[0]);
        self.grid(primary);
        tracked.modes.write_primary_keyboard(&mut self.out);
        if by == 1049 {
            // Saves the cursor by itself.
            self.place(primary, &primary.cursor, saved, 0);
            put(&mut self.out, format_args!("\x1b[?{by}h"));
            self.forget(saved);
        } else {
            self.save(primary, &tracked.primary_saved, saved);
            put(&mut self.out, format_args!("\x1b[?{by}h"));
        }
        // It may have been cleared in the background colour of the cursor, or not at all.
        self.out.extend(b"\x1b[m\x1b[2J");
        self.pen = Pen::default();
        tracked.term.swap_alt();
        *tracked.term.grid_mut() = shown;
    }

    fn grid(&mut self, grid: &Grid<Cell>) {
        let lines = i32::try_from(grid.screen_lines()).unwrap_or(i32::MAX);
        let mut wrapped = None;
        for line in 0..lines {
            let next = (line + 1 < lines).then(|| &grid[Line(line + 1)][Column(0)]);
            let (row, continues) = (&grid[Line(line)], wrapped.is_some());
            wrapped = wraps(&row[Column(row.len() - 1)], next);
            self.row(row, line, continues, wrapped);
        }
    }

    /// Paints a row. One that continues the row before is begun by wrapping, so that the terminal takes both for
    /// one line as well; `wraps` tells whether this one is continued, and by a wide character that did not fit.
    fn row(&mut self, row: &Row<Cell>, line: i32, continues: bool, wraps: Option<bool>) {
        let cells: Vec<&Cell> = (0..row.len()).map(|column| &row[Column(column)]).collect();
        let end = match wraps {
            Some(true) => cells.len() - 1,
            Some(false) => cells.len(),
            None => cells.iter().rposition(|cell| !is_unwritten(cell)).map_or(0, |last| last + 1),
        };
        if end == 0 && !continues {
            return;
        }
        if !continues {
            put(&mut self.out, format_args!("\x1b[{};1H", line + 1));
        }
        let mut column = 0;
        while column < end.max(usize::from(continues)) {
            let unwritten =
                cells[column..end.max(column)].iter().take_while(|cell| is_unwritten(cell)).count();
            if unwritten >= STEP && column + unwritten < end && !(continues && column == 0) {
                put(&mut self.out, format_args!("\x1b[{unwritten}C"));
                column += unwritten;
            } else {
                self.cell(cells[column]);
                column += if is_wide(cells[column]) { 2 } else { 1 };
            }
        }
    }

    fn cell(&mut self, cell: &Cell) {
        let pen = Pen::of(cell);
        if pen != self.pen {
            pen.write(&mut self.out);
            self.pen = pen;
        }
        let characters = std::iter::once(&cell.c).chain(cell.zerowidth().into_iter().flatten());
        for c in characters {
            self.out.extend(c.encode_utf8(&mut [0; 4]).bytes());
        }
    }

    /// Sets what the cursor writes with.
    fn stroke(&mut self, cursor: &Cursor<Cell>) {
        let pen = Pen::of(&cursor.template);
        if pen != self.pen {
            pen.write(&mut self.out);
            self.pen = pen;
        }
    }

    /// Goes where a cursor is. `line` is its line as a terminal is told it. Where a character was just written
    /// it is written again: that it is the last one, and that the cursor is past it, cannot be said otherwise.
    fn goto(&mut self, grid: &Grid<Cell>, cursor: &Cursor<Cell>, line: usize) {
        let row = &grid[cursor.point.line];
        let column = cursor.point.column.0;
        let mut start = column;
        let is_past = cursor.input_needs_wrap;
        if is_past {
            start = if is_spacer(&row[Column(column)]) { column.saturating_sub(1) } else { column };
        } else if self.just_printed && column > 0 {
            let before = column - 1;
            start = if is_spacer(&row[Column(before)]) { before.saturating_sub(1) } else { before };
        }
        put(&mut self.out, format_args!("\x1b[{};{}H", line + 1, start + 1));
        if start < column || is_past {
            self.cell(&row[Column(start)]);
        }
    }

    fn charsets(&mut self, cursor: &Cursor<Cell>, active: CharsetIndex) {
        let sets = [
            (CharsetIndex::G0, '('),
            (CharsetIndex::G1, ')'),
            (CharsetIndex::G2, '*'),
            (CharsetIndex::G3, '+'),
        ];
        for (index, designator) in sets {
            if cursor.charsets[index] == StandardCharset::SpecialCharacterAndLineDrawing {
                put(&mut self.out, format_args!("\x1b{designator}0"));
            }
        }
        if active == CharsetIndex::G1 {
            self.out.push(0x0e);
        }
    }

    fn margins(&mut self, tracked: &Tracked) {
        if let Some(tabs) = tracked.margins.tabs() {
            self.out.extend(b"\x1b[3g");
            for column in tabs {
                put(&mut self.out, format_args!("\x1b[{}G\x1bH", column + 1));
            }
        }
        if tracked.margins.has_region() {
            let region = &tracked.margins.region;
            put(&mut self.out, format_args!("\x1b[{};{}r", region.start + 1, region.end));
        }
    }

    fn colors(&mut self, tracked: &Tracked) {
        let colors = tracked.term.colors();
        for index in 0..=NamedColor::Cursor as usize {
            let Some(rgb) = colors[index] else { continue };
            match index {
                0..256 => put(&mut self.out, format_args!("\x1b]4;{index};")),
                // OSC 10, 11 and 12 are foreground, background and cursor.
                dynamic => put(&mut self.out, format_args!("\x1b]{};", dynamic - 246)),
            }
            put(&mut self.out, format_args!("rgb:{:02x}/{:02x}/{:02x}\x1b\\", rgb.r, rgb.g, rgb.b));
        }
    }

    /// Sets the cursor in force.
    fn cursor(&mut self, tracked: &Tracked) {
        let (grid, top) = (tracked.term.grid(), tracked.margins.region.start);
        self.just_printed = tracked.just_printed;
        let origin = tracked.term.mode().contains(TermMode::ORIGIN);
        self.place(grid, &grid.cursor, Saved { origin, charset: tracked.margins.charset }, top);
    }

    /// Has the terminal save a cursor, where it is not what is saved after a reset.
    fn save(&mut self, grid: &Grid<Cell>, cursor: &Cursor<Cell>, with: Saved) {
        if *cursor != Cursor::default() || with != Saved::default() {
            self.place(grid, cursor, with, 0);
            self.out.extend(b"\x1b7");
            self.forget(with);
        }
    }

    /// Sets a cursor and what goes with it. `top` is the first line of the scroll region.
    fn place(&mut self, grid: &Grid<Cell>, cursor: &Cursor<Cell>, with: Saved, top: usize) {
        let mut line = usize::try_from(cursor.point.line.0).unwrap_or_default();
        if with.origin {
            self.out.extend(b"\x1b[?6h");
            line = line.saturating_sub(top);
        }
        self.goto(grid, cursor, line);
        self.stroke(cursor);
        self.charsets(cursor, with.charset);
    }

    /// Undoes what would disturb painting.
    fn forget(&mut self, with: Saved) {
        self.out.extend(b"\x0f\x1b(B\x1b)B\x1b*B\x1b+B");
        if with.origin {
            self.out.extend(b"\x1b[?6l");
        }
    }

    fn modes(&mut self, tracked: &Tracked) {
        let modes = tracked.term.mode();
        if modes.contains(TermMode::LINE_FEED_NEW_LINE) {
            self.out.extend(b"\x1b[20h");
        }
        if !modes.contains(TermMode::LINE_WRAP) {
            self.out.extend(b"\x1b[?7l");
        }
        tracked.modes.write(&mut self.out, tracked.alternate.is_some());
    }
}

/// Whether a row goes on on the next one by wrapping, from its last cell to the first of the next; and if so, whether
/// by a wide character that did not fit.
fn wraps(last: &Cell, next: Option<&Cell>) -> Option<bool> {
    if !last.flags.contains(Flags::WRAPLINE) {
        return None;
    }
    let by_wide = last.flags.contains(Flags::LEADING_WIDE_CHAR_SPACER);
    let is_so = || is_unwritten(last) && next.is_some_and(is_wide);
    (!by_wide || is_so()).then_some(by_wide)
}

fn is_wide(cell: &Cell) -> bool {
    cell.flags.contains(Flags::WIDE_CHAR)
}

fn is_spacer(cell: &Cell) -> bool {
    cell.flags.contains(Flags::WIDE_CHAR_SPACER)
}

/// Whether a cell is as the clear screen has it.
pub(super) fn is_unwritten(cell: &Cell) -> bool {
    let spacer = Flags::WRAPLINE | Flags::LEADING_WIDE_CHAR_SPACER;
    cell.c == ' '
        && Pen::of(cell) == Pen::default()
        && (cell.flags - spacer).is_empty()
        && cell.zerowidth().is_none_or(<[char]>::is_empty)
}
