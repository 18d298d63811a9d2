//! The text of a session, and the bytes that it was made of.

use std::collections::VecDeque;

use super::{parser::Parser, row::Row};

/// The least that a read may be bounded to, in bytes: any piece that is never cut fits.
pub const MIN_BYTES: usize = 1 << 10;

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

/// Some of the lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// The lines, each with its line feed; the one that is being written has none.
    pub text: String,
    /// The number of the first, counted from 0 since the session began.
    pub first: u64,
    /// How many there have been, the one that is being written included.
    pub total: u64,
    /// There are others than these.
    pub truncated: bool,
}

/// A session's output as text, read by cursors that are offsets in the bytes of that output.
///
/// Fed with what the broker's `Read` gives, in order, it keeps the newest text. A cursor is 0, or one that was returned; a cursor
/// inside a line counts its characters from where the line begins.
///
/// [`Self::read`] gives the unfinished line too, as far as it is certain: what a tool then overwrites of it is a line of its
/// own. [`Self::tail`] and [`Self::lines`] change nothing.
#[derive(Debug)]
pub struct Transcript {
    parser: Parser,
    position: u64,
    rows: VecDeque<Row>,
    /// Bytes of text in the rows, and how many are kept.
    size: usize,
    capacity: usize,
    /// Lines that are not kept any more.
    dropped: u64,
}

impl Transcript {
    /// An empty one, that keeps so many bytes of text.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.max(MIN_BYTES);
        Self {
            parser: Parser::default(),
            position: 0,
            rows: VecDeque::new(),
            size: 0,
            capacity,
            dropped: 0,
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
        self.keep();
    }

    /// Reads on from a cursor.
    pub fn read(&mut self, cursor: u64, bounds: Bounds) -> Piece {
        self.parser.writer().settle();
        self.keep();
        let begin = self.rows.front().map_or(cursor, |row| row.begin);
        let mut piece = Piece {
            next: cursor.max(begin),
            lost: begin.saturating_sub(cursor),
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

    /// The last lines, with the one that is being written; reading on from `next` gives what came after them, and what of
    /// that line was not yet certain.
    #[must_use]
    pub fn tail(&self, bounds: Bounds) -> Piece {
        let lines = self.numbered();
        let total = lines.len();
        let mut kept: Vec<&str> = Vec::new();
        let mut left = bounds.bytes();
        for line in lines.iter().rev().take(bounds.lines()) {
            if line.len() > left {
                kept.push(&line[end_within(line, left)..]);
                break;
            }
            left -= line.len();
            kept.push(line);
        }
        let more = kept.len() < total || self.dropped > 0;
        kept.reverse();
        Piece { text: kept.concat(), next: self.given(), lost: 0, more }
    }

    /// Lines by number; the last `limit` where no offset is given. Lines that are not kept any more are passed over.
    #[must_use]
    pub fn lines(&self, offset: Option<u64>, limit: usize) -> Lines {
        let lines = self.numbered();
        let total = self.dropped + lines.len() as u64;
        let wanted = offset.unwrap_or(total.saturating_sub(limit as u64));
        let first = wanted.clamp(self.dropped, total);
        let skipped = usize::try_from(first - self.dropped).unwrap_or(usize::MAX);
        let shown: Vec<String> = lines.into_iter().skip(skipped).take(limit).collect();
        let truncated = (shown.len() as u64) < total;
        Lines { text: shown.concat(), first, total, truncated }
    }

    fn given(&self) -> u64 {
        self.rows.back().map_or(0, |row| row.end)
    }

    /// The lines that are kept, with the one that is being written.
    fn numbered(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = String::new();
        let preview = self.parser.preview();
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
        while self.size > self.capacity {
            let Some(row) = self.rows.pop_front() else { return };
            self.size -= row.text.len();
            self.dropped += row.text.matches('\n').count() as u64;
        }
    }
}

/// Where the last `bytes` of a line begin, without cutting what stands for a secret.
fn end_within(line: &str, bytes: usize) -> usize {
    let at = line.len() - bytes;
    super::row::places(line).find(|&place| place >= at).unwrap_or(line.len())
}
