//! What a tool writes, character by character, and the rows that come of it.

use super::{
    line::{Cell, Line, MAX_BLANKS, Shown},
    row::{self, REDACTED, Row},
    secrets::{self, LOOK_AHEAD, Secrets, Until},
};

/// How much of a line is looked at for secrets at once, in bytes. Of a longer one all but the last [`LOOK_AHEAD`] is decided.
pub(super) const WINDOW: usize = 8 << 10;
/// Cells above which the decided part of a line is given out.
const LONG_LINE: usize = 4 << 10;
/// How much at most is hidden of what has an end that does not come: a private key, a quoted value, the rest of a line.
pub(super) const MAX_HIDDEN: usize = 64 << 10;

/// Makes rows of characters and movements. Secrets are looked for in what was written, in the order in which it was: so neither
/// colours nor movements of the cursor in between hide one; and, where the cursor went back, also in what can then be read.
#[derive(Debug, Default)]
pub(super) struct Writer {
    line: Line,
    /// What was written since the last line feed, as far as it is not decided.
    window: String,
    /// How many bytes of text went before the window.
    base: u64,
    inside: Option<(Until, usize)>,
    /// Output was lost: lines that could be of a private key are hidden until one comes that could not.
    suspect: bool,
    /// The end of the last row.
    given: u64,
    /// Bytes of output seen, the current one included.
    pub(super) offset: u64,
    /// The last row ends no line.
    open: bool,
    /// The last row ends with a secret.
    hidden: bool,
    rows: Vec<Row>,
}

impl Writer {
    pub(super) fn line(&mut self) -> (&mut Line, u64) {
        let written = self.written();
        (&mut self.line, written)
    }

    /// Writes a character.
    pub(super) fn print(&mut self, character: char) {
        self.line.print(character, self.base + self.window.len() as u64);
        self.window.push(character);
        if self.window.len() >= WINDOW {
            self.slide();
        }
        if self.line.is_crowded() {
            self.clear();
        }
    }

    /// Ends the line: nothing that comes changes it.
    pub(super) fn line_feed(&mut self) {
        self.decide_line();
        // The lines of a private key are one secret.
        let in_key = self.inside.is_some_and(|(until, _)| until == Until::KeyEnd);
        self.give(self.line.cells().len(), if in_key { Ending::Output } else { Ending::Line });
        self.line.reset();
    }

    /// Ends the output, or what is known of it before a gap: what may have been about to be a secret is hidden.
    pub(super) fn end(&mut self, lost: bool) {
        let begun = if lost { secrets::begun } else { secrets::shape_begun };
        let begun = self.base + begun(&self.window) as u64;
        self.decide_line();
        self.hide_from(begun);
        self.give(self.line.cells().len(), Ending::Output);
        self.line.reset();
    }

    /// Ends the output, and keeps nothing but the rows.
    pub(super) fn finish(&mut self) {
        self.end(false);
        (self.line, self.window) = (Line::default(), String::new());
    }

    /// Takes note that the output from here up to `offset` is not known. All is hidden up to the next line feed, or to the end of
    /// what was already being hidden.
    pub(super) fn skip_to(&mut self, offset: u64) {
        self.end(true);
        let note =
            format!("{}[{} bytes lost]\n", if self.open { "\n" } else { "" }, offset - self.offset);
        self.rows.push(Row { begin: self.given, end: offset, text: note });
        (self.offset, self.given, self.open, self.hidden) = (offset, offset, false, false);
        let key = self.inside.filter(|(until, _)| *until == Until::KeyEnd);
        self.suspect = key.is_none();
        self.inside = key.or(Some((Until::Line, MAX_HIDDEN)));
    }

    /// Gives out what is certain of the line that the tool is still writing.
    pub(super) fn settle(&mut self) {
        if self.line.cells().is_empty() {
            return;
        }
        let count = self.decided();
        let whole = count == self.line.cells().len();
        self.give(count, if whole { Ending::Pause } else { Ending::Part });
    }

    /// How much is held, in bytes.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let rows: usize = self.rows.iter().map(|row| row.text.capacity()).sum();
        self.line.held() + self.window.capacity() + rows + self.rows.capacity() * size_of::<Row>()
    }

    /// The rows since the last call.
    pub(super) fn take_rows(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.rows)
    }

    /// What [`Self::settle`] would give out.
    pub(super) fn preview(&self) -> String {
        let (line, window) = (self.line.clone(), self.window.clone());
        let mut ahead = Self { line, window, rows: Vec::new(), ..*self };
        ahead.settle();
        ahead.rows.into_iter().map(|row| row.text).collect()
    }

    fn written(&self) -> u64 {
        self.base + self.window.len() as u64
    }

    fn secrets(&self) -> Secrets {
        Secrets::of(&self.window, self.inside.map(|(until, _)| until))
    }

    /// Marks what is secret of the whole line, which is at its end.
    fn decide_line(&mut self) {
        if self.window.is_empty() && self.inside.is_none() {
            return;
        }
        let secrets = self.secrets();
        self.hide(&secrets);
        self.hide_read();
        self.judge_suspect();
        let inside = secrets.inside_at_end().filter(|until| *until == Until::KeyEnd);
        self.forget(self.window.len(), inside);
    }

    /// Marks what is secret so far, and counts the cells that are certain.
    fn decided(&mut self) -> usize {
        if self.suspect && secrets::may_be_of_key(&self.window) {
            return 0;
        }
        let secrets = self.secrets();
        self.hide(&secrets);
        let begun = self.base + secrets::begun(&self.window) as u64;
        let readable = self.hide_read();
        let written = self
            .line
            .cells()
            .iter()
            .take_while(|cell| cell.written < begun || !cell.is_text())
            .count();
        written.min(readable)
    }

    /// Decides all but the end of a long line, and gives it out.
    fn slide(&mut self) {
        let secrets = self.secrets();
        self.hide(&secrets);
        let readable = self.hide_read();
        let place = secrets::boundary(&self.window, self.window.len() - LOOK_AHEAD);
        let (place, inside) = secrets.cut(&self.window, place);
        if self.suspect && secrets::may_be_of_key(&self.window) {
            self.hide_from(self.base);
        }
        self.forget(place, inside);
        if self.line.cells().len() > LONG_LINE {
            let certain =
                self.line.cells().iter().take_while(|cell| cell.written < self.base).count();
            self.give(certain.min(readable), Ending::Part);
        }
    }

    /// Gives out all that there is of the line: the tool keeps going back to its beginning, or draws over and over.
    fn clear(&mut self) {
        let secrets = self.secrets();
        self.hide(&secrets);
        let readable = self.hide_read();
        let of_key = self.suspect && secrets::may_be_of_key(&self.window);
        let begun = if of_key { 0 } else { secrets::begun(&self.window) };
        self.hide_from(self.base + begun as u64);
        let open = self.line.cells_mut().iter_mut().skip(readable);
        open.filter(|cell| cell.is_text()).for_each(|cell| cell.secret = true);
        self.give(self.line.cells().len(), Ending::Part);
    }

    /// Forgets what is decided of the window; what follows may be inside a secret.
    fn forget(&mut self, count: usize, inside: Option<Until>) {
        let left = match self.inside {
            Some((until, left)) if Some(until) == inside => left.saturating_sub(count + 1),
            _ => MAX_HIDDEN,
        };
        let bounded = |until: &Until| !matches!(until, Until::Space | Until::Token);
        self.inside = inside.filter(|until| left > 0 || !bounded(until)).map(|until| (until, left));
        self.window.drain(..count);
        self.base += count as u64;
    }

    /// Marks the cells of secrets.
    fn hide(&mut self, secrets: &Secrets) {
        if secrets.is_empty() {
            return;
        }
        let ranges = secrets.ranges();
        for cell in self.line.cells_mut().iter_mut().filter(|cell| cell.written >= self.base) {
            let Ok(at) = usize::try_from(cell.written - self.base) else { continue };
            let after = ranges.partition_point(|range| range.end <= at);
            cell.secret |=
                cell.is_text() && ranges.get(after).is_some_and(|range| range.start <= at);
        }
    }

    /// Marks all cells written from a place on.
    fn hide_from(&mut self, written: u64) {
        self.hide_between(written, u64::MAX);
    }

    fn hide_between(&mut self, from: u64, to: u64) {
        let within = |cell: &&mut Cell| cell.is_text() && (from..to).contains(&cell.written);
        self.line.cells_mut().iter_mut().filter(within).for_each(|cell| cell.secret = true);
    }

    /// Marks what can be read as a secret where the cursor went back, and counts the cells before what may become one.
    fn hide_read(&mut self) -> usize {
        if !self.line.is_edited() {
            return self.line.cells().len();
        }
        let (text, places) = readable(self.line.cells());
        for range in Secrets::of(&text, None).ranges() {
            for &index in &places[range] {
                let cell = &mut self.line.cells_mut()[index];
                cell.secret |= cell.is_text();
            }
        }
        places.get(secrets::begun(&text)).copied().unwrap_or(self.line.cells().len())
    }

    /// After a gap: hides a line that could be of a private key. The line that the gap fell in decides nothing.
    fn judge_suspect(&mut self) {
        if !self.suspect || self.inside.is_some() {
            return;
        }
        let key_end = secrets::key_end(&self.window);
        let of_key = secrets::may_be_of_key(&self.window);
        let hidden = key_end.or(of_key.then_some(self.window.len())).unwrap_or(0) as u64;
        self.hide_between(self.base, self.base + hidden);
        self.suspect = of_key;
    }

    /// Makes rows of the first cells.
    ///
    /// Each row gets a byte of output for each unit of its text if there are as many, or else its part of those that there are,
    /// as the text to come gets its own: wherever a row is long, it has bytes to be cut at (see [`MIN_BYTES`]). Where there are
    /// not even enough for what is to come, nothing is given out until there are.
    ///
    /// [`MIN_BYTES`]: super::MIN_BYTES
    fn give(&mut self, count: usize, ending: Ending) {
        let (cells, rest) = self.line.cells().split_at(count);
        let (mut rows, mut hidden) = rows_of(cells, self.hidden);
        let mut ahead = 0;
        if ending == Ending::Part {
            ahead = rows_of(rest, hidden).0.iter().map(|row| row.len() as u64).sum();
            if !rest.is_empty() && self.bytes_left() <= rows.len() as u64 {
                return;
            }
        }
        if ending == Ending::Line {
            match rows.last_mut().filter(|row| !row.ends_with('\n')) {
                Some(row) => row.push('\n'),
                None => rows.push("\n".to_owned()),
            }
            hidden = false;
        }
        self.hidden = hidden;
        self.line.given(count);
        let spared = match ending {
            Ending::Line | Ending::Output => 0,
            Ending::Pause => u64::from(self.line.is_behind()),
            Ending::Part => 1,
        };
        self.add_all(rows, ahead, spared, ending != Ending::Part);
    }

    /// Adds rows, before as much more text as is `ahead`, and so many bytes of output that are `spared`; the last has all other
    /// bytes where it is `to_end`.
    fn add_all(&mut self, rows: Vec<String>, ahead: u64, spared: u64, to_end: bool) {
        let follows = ahead;
        let mut ahead = ahead + rows.iter().map(|row| row.len() as u64).sum::<u64>();
        // Plain text: each byte of it has its own, and so have those that are spared.
        let is_plain = follows >= spared && self.bytes_left() >= ahead;
        let mut later = rows.len() as u64;
        for row in rows {
            later -= 1;
            let left = self.bytes_left().saturating_sub(spared + later);
            let bytes = match to_end && later == 0 {
                true => left,
                false if is_plain => row::length(&row),
                false => row::share(left, row.len() as u64, ahead).max(1).min(row::length(&row)),
            };
            ahead -= row.len() as u64;
            self.add(row, self.given + bytes);
        }
    }

    /// Bytes of output that are of no row.
    fn bytes_left(&self) -> u64 {
        self.offset.saturating_sub(self.given)
    }

    fn add(&mut self, mut text: String, end: u64) {
        let end = end.max(self.given + 1);
        self.open = !text.ends_with('\n');
        text.shrink_to_fit();
        self.rows.push(Row { begin: self.given, end, text });
        self.given = end;
    }
}

/// What the rows given out end with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// A line.
    Line,
    /// All the output there was of a line that does not go on.
    Output,
    /// All the output that there is so far of a line that goes on.
    Pause,
    /// Part of what is known of a line.
    Part,
}

/// The text of a row, as it is made of cells.
#[derive(Debug)]
struct RowText {
    text: String,
    blanks: usize,
    hidden: bool,
}

impl RowText {
    /// Adds a cell; whether it ends the row.
    fn push(&mut self, cell: &Cell) -> bool {
        let hidden = std::mem::replace(&mut self.hidden, cell.secret);
        let blanks = std::mem::replace(&mut self.blanks, 0);
        match cell.shown {
            Shown::Character(_) if cell.secret && hidden => {}
            Shown::Character(_) if cell.secret => self.text.push_str(REDACTED),
            Shown::Character(character) => self.text.push(character),
            Shown::Blank => {
                self.blanks = blanks + 1;
                self.text.extend((blanks < MAX_BLANKS).then_some(' '));
            }
            Shown::Break => self.text.push('\n'),
        }
        cell.shown == Shown::Break
    }
}

/// The rows that cells make, none of them empty, and whether the last ends with a secret; `hidden` says it of what goes before.
fn rows_of(cells: &[Cell], hidden: bool) -> (Vec<String>, bool) {
    let mut text = RowText { text: String::new(), blanks: 0, hidden };
    let mut rows = Vec::new();
    for cell in cells {
        if text.push(cell) {
            rows.push(std::mem::take(&mut text.text));
        }
    }
    rows.extend((!text.text.is_empty()).then_some(text.text));
    (rows, text.hidden)
}

/// The text of cells, and of each of its bytes the cell.
fn readable(cells: &[Cell]) -> (String, Vec<usize>) {
    let mut text = String::with_capacity(cells.len());
    let mut places = Vec::with_capacity(cells.len());
    for (index, cell) in cells.iter().enumerate() {
        text.push(match cell.shown {
            Shown::Character(character) => character,
            Shown::Blank => ' ',
            Shown::Break => '\n',
        });
        places.resize(text.len(), index);
    }
    (text, places)
}
