//! The parser of a terminal, fed in any pieces.

use super::{sequence::Interpreter, writer::Writer};

/// How much is given to the parser at once: it looks through all of it for each byte that is not UTF-8.
const MAX_PIECE: usize = 1 << 10;
/// How much of the output a string (a title, say) may take that does not end: then it is taken for text.
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
    /// The writer, to take the rows from.
    pub(super) fn writer(&mut self) -> &mut Writer {
        &mut self.interpreter.writer
    }

    /// What the writer would give.
    pub(super) fn preview(&self) -> String {
        self.interpreter.writer.preview()
    }

    /// Takes the next bytes of output.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !self.partial.is_empty() && !rest.is_empty() {
            self.partial.push(rest[0]);
            rest = &rest[1..];
            if incomplete(&self.partial) == 0 {
                let piece = std::mem::take(&mut self.partial);
                self.advance(&piece);
            }
        }
        while !rest.is_empty() {
            let piece = piece(rest);
            if piece.is_empty() {
                self.partial.extend_from_slice(rest);
                return;
            }
            self.advance(piece);
            rest = &rest[piece.len()..];
        }
    }

    /// There is no more output.
    pub(super) fn finish(&mut self) {
        self.flush();
        self.interpreter.writer.end(false);
    }

    /// The output goes on at `offset`; what went before is not known, not even whether a sequence ended.
    pub(super) fn skip_to(&mut self, offset: u64) {
        self.flush();
        self.interpreter.writer.skip_to(offset);
        self.parser = vte::Parser::new();
        self.interpreter.reset();
    }

    fn flush(&mut self) {
        let partial = std::mem::take(&mut self.partial);
        if !partial.is_empty() {
            self.interpreter.writer.offset += partial.len() as u64;
            self.interpreter.writer.print(char::REPLACEMENT_CHARACTER);
        }
    }

    fn advance(&mut self, piece: &[u8]) {
        self.interpreter.writer.offset += piece.len() as u64;
        self.interpreter.moved = false;
        self.parser.advance(&mut self.interpreter, piece);
        self.silent = if self.interpreter.moved { 0 } else { self.silent + piece.len() };
        if self.silent > MAX_STRING {
            self.parser = vte::Parser::new();
            self.silent = 0;
        }
    }
}

/// The next piece: to the end of a line, or as much as is given at once, without the beginning of a character at its end.
fn piece(bytes: &[u8]) -> &[u8] {
    let most = &bytes[..bytes.len().min(MAX_PIECE)];
    match memchr::memchr(b'\n', most) {
        Some(at) => &most[..=at],
        None => &most[..most.len() - incomplete(most)],
    }
}

/// How many bytes at the end are the beginning of a character.
fn incomplete(bytes: &[u8]) -> usize {
    let lengths = bytes.iter().rev().take(3).zip(1..);
    let lead = lengths.map(|(&byte, length)| (byte, length)).find(|(byte, _)| byte & 0xc0 != 0x80);
    let wanted = |byte| match byte {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    lead.filter(|&(byte, length)| wanted(byte) > length).map_or(0, |(_, length)| length)
}
