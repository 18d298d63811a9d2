//! The parser of a terminal, fed in any pieces.

use super::{sequence::Interpreter, writer::Writer};

/// How much is given to the parser at once, bytes.
const MAX_PIECE: usize = 1 << 10;
const ESC: u8 = 0x1b;
/// What stands for bytes that are not UTF-8.
const REPLACEMENT: &str = "\u{fffd}";
/// How much of the output a string (a title, say) may take that does not end: then it is taken for text. The parser of the crate
/// holds what there is of it, and keeps the room until the output ends: as much again at most.
const MAX_STRING: usize = 64 << 10;

/// Bytes in, rows out.
#[derive(Default)]
pub(super) struct Parser {
    parser: vte::Parser,
    interpreter: Interpreter,
    /// The beginning of a character, whose end is in the next piece.
    partial: Vec<u8>,
    /// How much went by without anything being understood.
    silent: usize,
}

impl std::fmt::Debug for Parser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parser").field("interpreter", &self.interpreter).finish_non_exhaustive()
    }
}

impl Parser {
    /// How much is held, in bytes.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.partial.capacity() + self.interpreter.writer.held()
    }

    /// The writer, to take the rows from.
    pub(super) fn writer(&mut self) -> &mut Writer {
        &mut self.interpreter.writer
    }

    /// What the writer would give.
    pub(super) fn preview(&self) -> String {
        self.interpreter.writer.preview()
    }

    /// Takes the next bytes of output. The parser of the crate is given whole characters only: of one that is split it
    /// loses its neighbour.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut joined = std::mem::take(&mut self.partial);
        let bytes = match joined.is_empty() {
            true => bytes,
            false => {
                joined.extend_from_slice(bytes);
                &joined
            }
        };
        let mut left = bytes.len();
        for chunk in bytes.utf8_chunks() {
            let (valid, invalid) = (chunk.valid(), chunk.invalid());
            left -= valid.len() + invalid.len();
            pieces(valid).for_each(|piece| self.advance(piece, piece.len()));
            if left == 0 && is_beginning(invalid) {
                self.partial = invalid.to_vec();
            } else if !invalid.is_empty() {
                self.advance(REPLACEMENT, invalid.len());
            }
        }
    }

    /// There is no more output.
    pub(super) fn finish(&mut self) {
        self.flush();
        self.parser = vte::Parser::new();
        self.interpreter.writer.finish();
    }

    /// The output goes on at `offset`; what went before is not known, not even whether a sequence ended.
    pub(super) fn skip_to(&mut self, offset: u64) {
        self.flush();
        self.interpreter.writer.skip_to(offset);
        self.parser = vte::Parser::new();
        self.interpreter.reset();
    }

    /// Gives up on the rest of a character.
    fn flush(&mut self) {
        let partial = std::mem::take(&mut self.partial);
        if !partial.is_empty() {
            self.advance(REPLACEMENT, partial.len());
        }
    }

    /// Takes a piece of text that so many bytes of output were.
    fn advance(&mut self, piece: &str, bytes: usize) {
        self.interpreter.writer.offset += bytes as u64;
        self.interpreter.moved = false;
        self.parser.advance(&mut self.interpreter, piece.as_bytes());
        self.silent = if self.interpreter.moved { 0 } else { self.silent + bytes };
        if self.silent > MAX_STRING {
            self.parser = vte::Parser::new();
            self.silent = 0;
        }
    }
}

/// A text in pieces: each to the end of a line, up to a sequence, or as much as is given at once. What one sequence makes is so
/// known to be of its own bytes, however much it is, and takes none of the next.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut end = rest.len().min(MAX_PIECE);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let bytes = &rest.as_bytes()[..end];
        let end = match memchr::memchr2(b'\n', ESC, bytes.get(1..).unwrap_or_default()) {
            _ if bytes.first() == Some(&b'\n') => 1,
            Some(at) if bytes[at + 1] == ESC => at + 1,
            Some(at) => at + 2,
            None => end,
        };
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Whether these bytes may yet become a character.
fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use crate::agents::text::tests::read;

    #[test]
    fn what_is_not_utf_8_is_shown_as_one_wherever_it_is_cut() {
        for bytes in
            [&[0xc2, 0xc2, 0xc2][..], b"\xe2\x82a\xf0\x9f\xc2", b"\xf0\x9f\x98\x80\xe2\x28\xa1"]
        {
            let expected = format!("{}\n", String::from_utf8_lossy(bytes));
            for at in 0..=bytes.len() {
                for from in 0..=at {
                    let pieces = [&bytes[..from], &bytes[from..at], &bytes[at..]];
                    assert_eq!(read(&pieces, false).trim_end(), expected.trim_end(), "{from} {at}");
                }
            }
        }
    }
}
