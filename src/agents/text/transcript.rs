//! The text of a session, and the bytes that it was made of.

use std::collections::VecDeque;

use super::{begin_within, parser::Parser, row::Row};

/// The least that a read may be bounded to, in bytes: any piece that is never cut fits.
pub const MIN_BYTES: usize = 1 << 10;

/// For so many bytes of text one row is kept: one costs 72 bytes beside its text, which may be a line feed alone.
const BYTES_A_ROW: usize = 4;

/// How much is read at once. Both are at least 1 line, and [`MIN_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Lines, the one that is being written included.
    pub lines: usize,
    /// Bytes of text.
    pub bytes: usize,
}

impl Bounds {
    fn bytes(&self) -> usize {
        self.bytes.max(MIN_BYTES)
    }

    fn lines(&self) -> usize {
        self.lines.max(1)
    }
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The text, without secrets.
    pub text: String,
    /// The cursor that reads on after it, and never earlier than the one that was read from.
    pub next: u64,
    /// Bytes of output after the cursor whose text is not kept any more.
    pub lost: u64,
    /// More could be read at once from `next`.
    pub more: bool,
}

/// The newest text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// The text, without secrets.
    pub text: String,
    /// The cursor that it begins at.
    pub begin: u64,
    /// The cursor that reads on after what is certain of it.
    pub next: u64,
    /// Something could be read at once from `next`: the line that is being written, as the text ends with it already.
    pub more: bool,
    /// There was older text than this.
    pub truncated: bool,
}

/// Some of the lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// The lines, each with its line feed; the one that is being written has none.
    pub text: String,
    /// The number of the first, counted from 0 since the session began.
    pub first: u64,
    /// The number to go on at: of the first line after these, or of the last of these while it is being written.
    pub next: u64,
    /// How many there have been, the one that is being written included.
    pub total: u64,
    /// There was other text than this.
    pub truncated: bool,
    /// Of a line that is longer than the bounds, or that has lost its beginning, only a part is given.
    pub cut: bool,
}

/// A session's output as text, read by cursors that are offsets in the bytes of that output.
///
/// Fed with what the broker's `Read` gives, in order, it keeps the newest text. A cursor is 0, or one that was returned; a cursor
/// inside a line counts its characters from where the line begins.
///
/// [`Self::read`] gives the unfinished line too, as far as it is certain: what a tool then overwrites of it is a line of its
/// own. [`Self::settle`] does that alone; [`Self::tail`] and [`Self::lines`] change nothing.
#[derive(Debug)]
pub struct Transcript {
    parser: Parser,
    position: u64,
    rows: VecDeque<Row>,
    /// Bytes of text in the rows, and how many are kept.
    size: usize,
    capacity: usize,
    /// Where the text begins that is kept.
    begin: u64,
    /// Lines that are not kept any more.
    dropped: u64,
    /// The first line that is kept has lost its beginning.
    headless: bool,
    /// Nothing follows.
    finished: bool,
}

impl Transcript {
    /// An empty one, that keeps so many bytes of text, in at most a quarter as many rows.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.max(MIN_BYTES);
        Self {
            parser: Parser::default(),
            position: 0,
            rows: VecDeque::new(),
            size: 0,
            capacity,
            begin: 0,
            dropped: 0,
            headless: false,
            finished: false,
        }
    }

    /// The offset of the byte that is wanted next.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Takes output that begins at an offset. What is already known is passed over; what is missing in between is noted in the
    /// text, and hides what follows up to the next line.
    pub fn feed(&mut self, begin: u64, bytes: &[u8]) {
        let known = self.position.saturating_sub(begin);
        let Some(new) = usize::try_from(known).ok().and_then(|known| bytes.get(known..)) else {
            return;
        };
        if begin > self.position {
            self.parser.skip_to(begin);
            self.position = begin;
        }
        self.parser.feed(new);
        self.position += new.len() as u64;
        self.keep();
    }

    /// The output is at its end: the last line is finished, and what was held back is decided.
    pub fn finish(&mut self) {
        self.parser.finish();
        self.finished = true;
        self.keep();
    }

    /// Gives out what is certain of the line that is being written.
    pub fn settle(&mut self) {
        self.parser.writer().settle();
        self.keep();
    }

    /// Reads on from a cursor.
    pub fn read(&mut self, cursor: u64, bounds: Bounds) -> Piece {
        self.settle();
        let mut piece = Piece {
            next: cursor.max(self.begin),
            lost: self.begin.saturating_sub(cursor),
            ..Piece::default()
        };
        let first = self.rows.partition_point(|row| row.end <= piece.next);
        let mut lines = bounds.lines();
        for row in self.rows.range(first..) {
            let (from, left) = (row.text_from(piece.next), bounds.bytes() - piece.text.len());
            let (to, next) = row.cut(from, left);
            piece.text.push_str(&row.text[from..to]);
            piece.more = to < row.text.len();
            if to > from || !piece.more {
                piece.next = next;
            }
            lines -= usize::from(row.ends_line() && !piece.more);
            if piece.more || lines == 0 {
                break;
            }
        }
        piece.more = self.rows.back().is_some_and(|row| row.end > piece.next);
        piece
    }

    /// The last lines, with the one that is being written; of the oldest as much as fits. Reading on from `next` gives
    /// the one that is being written again, as it is by then.
    #[must_use]
    pub fn tail(&self, bounds: Bounds) -> Tail {
        let preview = self.parser.preview();
        let lines = self.numbered(&preview);
        let mut kept: Vec<&str> = Vec::new();
        let mut left = bounds.bytes();
        for line in lines.iter().rev().take(bounds.lines()) {
            let from = if line.len() > left { end_within(line, left) } else { 0 };
            kept.push(&line[from..]);
            if from > 0 {
                break;
            }
            left -= line.len();
        }
        kept.reverse();
        let text = kept.concat();
        let older = self.size + preview.len() - text.len();
        Tail {
            text,
            begin: self.cursor_at(older),
            next: self.given(),
            more: !preview.is_empty(),
            truncated: older > 0 || self.begin > 0,
        }
    }

    /// Lines by number, from `offset` on; the last ones where none is given. Whole lines, as many as fit; of one that alone
    /// does not fit a part, of the last its end. Lines that are not kept any more are passed over.
    #[must_use]
    pub fn lines(&self, offset: Option<u64>, bounds: Bounds) -> Lines {
        let lines = self.numbered(&self.parser.preview());
        let total = self.dropped + lines.len() as u64;
        let shown = match offset {
            Some(offset) => {
                let first = offset.clamp(self.dropped, total) - self.dropped;
                let first = usize::try_from(first).unwrap_or(lines.len());
                first..first + fitting(lines[first..].iter(), bounds)
            }
            None => lines.len() - fitting(lines.iter().rev(), bounds)..lines.len(),
        };
        let mut text = lines[shown.clone()].concat();
        let too_long = text.len() > bounds.bytes();
        if too_long && offset.is_some() {
            text.truncate(begin_within(&text, bounds.bytes()));
        } else if too_long {
            text.drain(..end_within(&text, bounds.bytes()));
        }
        let unfinished = !self.finished
            && shown.end == lines.len()
            && lines[shown.clone()].last().is_some_and(|line| !line.ends_with('\n'));
        Lines {
            text,
            first: self.dropped + shown.start as u64,
            next: self.dropped + shown.end as u64 - u64::from(unfinished),
            total,
            truncated: (shown.len() as u64) < total || too_long || self.headless,
            cut: too_long || (self.headless && shown.start == 0 && !shown.is_empty()),
        }
    }

    fn given(&self) -> u64 {
        self.rows.back().map_or(self.begin, |row| row.end)
    }

    /// The cursor at a place in the text that is kept, or one shortly before it.
    fn cursor_at(&self, place: usize) -> u64 {
        let mut left = place;
        for row in &self.rows {
            if left < row.text.len() {
                return row.cut(0, left).1;
            }
            left -= row.text.len();
        }
        self.given()
    }

    /// The lines that are kept, with the one that is being written.
    fn numbered(&self, preview: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = String::new();
        let ahead = preview.split_inclusive('\n');
        for text in self.rows.iter().flat_map(|row| row.text.split_inclusive('\n')).chain(ahead) {
            line.push_str(text);
            if line.ends_with('\n') {
                lines.push(std::mem::take(&mut line));
            }
        }
        lines.extend((!line.is_empty()).then_some(line));
        lines
    }

    fn keep(&mut self) {
        for row in self.parser.writer().take_rows() {
            self.size += row.text.len();
            self.rows.push_back(row);
        }
        while self.size > self.capacity || self.rows.len() > self.capacity / BYTES_A_ROW {
            let Some(row) = self.rows.pop_front() else { return };
            self.size -= row.text.len();
            self.dropped += row.text.matches('\n').count() as u64;
            self.begin = row.end;
            self.headless = !row.ends_line();
        }
    }
}

/// How many of these lines fit together; the first counts as one that does.
fn fitting<'a>(lines: impl Iterator<Item = &'a String>, bounds: Bounds) -> usize {
    let mut left = bounds.bytes();
    let fit = lines.take(bounds.lines()).enumerate().take_while(|(index, line)| {
        let fits = *index == 0 || line.len() <= left;
        left = left.saturating_sub(line.len());
        fits
    });
    fit.count()
}

/// Where the last `bytes` of a line begin, without cutting what stands for a secret.
fn end_within(line: &str, bytes: usize) -> usize {
    let at = line.len() - bytes;
    super::row::places(line).find(|&place| place >= at).unwrap_or(line.len())
}

#[cfg(test)]
mod tests;
