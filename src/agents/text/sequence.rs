//! What the characters and control sequences of a terminal do to the line that is being written.

use vte::{Params, Perform};

use super::{ignorable::is_ignorable, transcript::MIN_BYTES, writer::Writer};

/// How much text REP makes at most, in bytes. The last byte of a sequence may come alone, and what it makes is cut at that byte.
const MAX_REPEATED: usize = MIN_BYTES / 2;
/// The longest control sequence and the longest string that begin with a C1 character, in characters.
const MAX_SEQUENCE: u16 = 64;
const MAX_STRING: u16 = 4 << 10;

/// Takes what the parser makes of the output.
#[derive(Debug, Default)]
pub(super) struct Interpreter {
    pub(super) writer: Writer,
    /// What a C1 character began, which the parser knows in its seven-bit form alone.
    begun: Option<Begun>,
    /// Something was understood since this was last set to `false`.
    pub(super) moved: bool,
}

/// A sequence that is dropped, and how much more of it may come.
#[derive(Clone, Copy, Debug)]
enum Begun {
    Sequence(u16),
    String(u16),
}

impl Interpreter {
    /// Forgets what was begun.
    pub(super) fn reset(&mut self) {
        self.begun = None;
    }

    /// Whether a character belongs to what a C1 character began.
    fn swallows(&mut self, character: char) -> bool {
        self.begun = match self.begun {
            None => return false,
            Some(Begun::Sequence(left)) if left > 0 && matches!(character, ' '..='?') => {
                Some(Begun::Sequence(left - 1))
            }
            Some(Begun::Sequence(_)) => {
                self.begun = None;
                return matches!(character, '@'..='~');
            }
            Some(Begun::String(left)) if left > 0 => Some(Begun::String(left - 1)),
            Some(Begun::String(_)) => None,
        };
        self.begun.is_some()
    }

    fn repeat(&mut self, count: usize) {
        if let Some(character) = self.writer.line().0.previous() {
            let count = count.min(MAX_REPEATED / character.len_utf8());
            (0..count).for_each(|_| self.writer.print(character));
        }
    }

    fn go(&mut self, column: Option<u16>) {
        let (line, written) = self.writer.line();
        line.go(column.map(|column| usize::from(column.max(1)) - 1), written);
    }

    fn erase_in_line(&mut self, what: u16) {
        let (line, written) = self.writer.line();
        match what {
            0 => line.erase_after(written),
            1 => line.erase_before(),
            2 => line.erase_all(written),
            _ => {}
        }
    }

    /// DECSET and DECRST: those that switch to another screen leave the line.
    fn mode(&mut self, params: &Params) {
        if params.iter().any(|param| matches!(param, [47 | 1047 | 1049])) {
            self.go(None);
        }
    }
}

impl Perform for Interpreter {
    fn print(&mut self, character: char) {
        self.moved = true;
        if !self.swallows(character) && !is_ignorable(character) {
            self.writer.print(if matches!(character, '\u{2028}' | '\u{2029}') {
                ' '
            } else {
                character
            });
        }
    }

    fn execute(&mut self, byte: u8) {
        self.moved = true;
        if byte != b'\t' {
            self.begun = None;
        }
        match byte {
            b'\n' => self.writer.line_feed(),
            b'\r' => self.writer.line().0.move_to(0),
            b'\t' => self.print('\t'),
            0x08 => self.writer.line().0.left(1),
            // VT, FF, IND, RI; and NEL.
            0x0b | 0x0c | 0x84 | 0x8d => self.go(None),
            0x85 => self.go(Some(1)),
            0x9b => self.begun = Some(Begun::Sequence(MAX_SEQUENCE)),
            // DCS, SOS, OSC, PM, APC.
            0x90 | 0x98 | 0x9d..=0x9f => self.begun = Some(Begun::String(MAX_STRING)),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: char) {
        self.moved = true;
        let first = params.iter().next().map_or(0, |param| param[0]);
        let second = params.iter().nth(1).map_or(1, |param| param[0]);
        let count = usize::from(first.max(1));
        match (intermediates, action) {
            _ if ignore => {}
            (b"?", 'h' | 'l') => self.mode(params),
            (b"", 'C' | 'a') => self.writer.line().0.right(count),
            (b"", 'D') => self.writer.line().0.left(count),
            (b"", 'G' | '`') => self.writer.line().0.move_to(count - 1),
            (b"", 'K') => self.erase_in_line(first),
            (b"", 'J') if first == 0 => self.erase_in_line(0),
            (b"", 'X') => self.writer.line().0.erase(count),
            (b"", 'P') => self.writer.line().0.delete(count),
            (b"", '@') => {
                let (line, written) = self.writer.line();
                line.insert(count, written);
            }
            (b"", 'b') => self.repeat(count),
            (b"", 'H' | 'f') => self.go(Some(second)),
            (b"", 'E' | 'F' | 'r') => self.go(Some(1)),
            (b"", 'A' | 'B' | 'J' | 'L' | 'M' | 'd' | 'e' | 'k' | 'u') => self.go(None),
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _ignore: bool, byte: u8) {
        self.moved = true;
        match (intermediates, byte) {
            // DECRC, IND, RI; and NEL, RIS.
            (b"", b'8' | b'D' | b'M') => self.go(None),
            (b"", b'E' | b'c') => self.go(Some(1)),
            _ => {}
        }
    }
}
