//! Where a piece of output may be cut: between characters and outside of escape sequences.

use alacritty_terminal::vte::{Params, Parser, Perform};

const ESCAPE: u8 = 0x1b;
/// These two end any sequence.
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;

/// Unfinished sequences that are looked at, back from the end. A string of controls can hold one more, the
/// beginning of its terminator; more of them are no sequences that a terminal obeys.
const LOOKED_AT: usize = 8;

/// How many bytes, from the first, are whole characters and sequences; they begin outside of any.
pub(super) fn whole(bytes: &[u8]) -> usize {
    let mut end = bytes.len();
    for _ in 0..LOOKED_AT {
        let Some(at) = memchr::memrchr(ESCAPE, &bytes[..end]) else {
            return end - unfinished_character(&bytes[..end]);
        };
        match length(&[], &bytes[at..end]) {
            Some(length) => return end - unfinished_character(&bytes[at + length..end]),
            None => end = at,
        }
    }
    0
}

/// Where the last sequence of whole bytes ends, or later; 0 where there is none.
pub(super) fn last_end(bytes: &[u8]) -> usize {
    let Some(at) = memchr::memrchr(ESCAPE, bytes) else { return 0 };
    length(&[], &bytes[at..]).map_or(bytes.len(), |length| at + length)
}

/// The length of the sequence that `bytes` begin with or, after `begun`, go on with; `None` where they do not end it.
pub(super) fn length(begun: &[u8], bytes: &[u8]) -> Option<usize> {
    let (mut parser, mut end) = (Parser::new(), End(false));
    parser.advance(&mut Ignore, begun);
    let length = parser.advance_until_terminated(&mut end, bytes);
    end.0.then_some(length)
}

/// Bytes at the end that begin a character and do not end it.
fn unfinished_character(text: &[u8]) -> usize {
    let tail = &text[text.len().saturating_sub(4)..];
    (1..=tail.len().min(3))
        .find(|&count| {
            let last = &tail[tail.len() - count..];
            std::str::from_utf8(last)
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .unwrap_or(0)
}

/// A sequence too long to be looked at as a whole, in the middle of which the output goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Overlong([u8; 2]);

impl Overlong {
    /// That which begins with these bytes: ESC, and what kind of sequence it is.
    pub(super) fn begun(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [ESCAPE, kind, ..] => Some(Self([ESCAPE, *kind])),
            _ => None,
        }
    }

    /// How many of these bytes still belong to it; `None` where it goes on after them.
    pub(super) fn rest(&self, bytes: &[u8]) -> Option<usize> {
        length(&self.0, bytes)
    }

    /// What makes a terminal pass over the rest of it: the beginning of a sequence of the same kind that
    /// nobody obeys.
    pub(super) fn inert(&self) -> Vec<u8> {
        let more: &[u8] = match self.0[1] {
            b']' => b"9999;",
            b'P' => b"9999z",
            // After a digit, the parameter prefix `<` is wrong, and the sequence is ignored to its end.
            b'[' => b"0<",
            _ => b"",
        };
        [&self.0, more].concat()
    }
}

/// Notes the end of a sequence. Other controls within it are obeyed and do not end it; ESC ends it and begins
/// another, such as the terminator of a string. A sequence that is wrong ends unseen, with the next character.
struct End(bool);

impl Perform for End {
    fn print(&mut self, _: char) {
        self.0 = true;
    }

    fn csi_dispatch(&mut self, _: &Params, _: &[u8], _: bool, _: char) {
        self.0 = true;
    }

    fn esc_dispatch(&mut self, _: &[u8], _: bool, _: u8) {
        self.0 = true;
    }

    fn osc_dispatch(&mut self, _: &[&[u8]], by_bell: bool) {
        self.0 |= by_bell;
    }

    fn execute(&mut self, control: u8) {
        self.0 |= matches!(control, CANCEL | SUBSTITUTE);
    }

    fn terminated(&self) -> bool {
        self.0
    }
}

struct Ignore;

impl Perform for Ignore {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_cut_before_what_is_unfinished() {
        for unfinished in [
            "\x1b",
            "\x1b[",
            "\x1b[1;2",
            "\x1b[?\n10",
            "\x1b(",
            "\x1b]0;title",
            "\x1b]0;title\x1b",
            "\x1bP1$r",
            "\x1bPq#0\x1b",
            "\x1b_app",
            "\x1b^\x1b",
        ] {
            for before in ["", "text", "\x1b[31mred", "漢\x1b]2;x\x07", "\x1bPz\x1b\\"] {
                let bytes = [before, unfinished].concat();
                assert_eq!(whole(bytes.as_bytes()), before.len(), "{bytes:?}");
            }
        }
    }

    #[test]
    fn what_is_finished_is_whole() {
        for text in [
            "",
            "a",
            "\x1b[m",
            "\x1b]0;a\x07",
            "\x1b]0;a\x1b\\",
            "\x1b[1\x18",
            "\x1b(0qqq",
            "é漢🦀\r\n",
        ] {
            assert_eq!(whole(text.as_bytes()), text.len(), "{text:?}");
        }
    }

    #[test]
    fn characters_are_not_cut() {
        let text = "aé漢🦀".as_bytes();
        for end in 0..=text.len() {
            let whole = whole(&text[..end]);
            assert_eq!(std::str::from_utf8(&text[..whole]).map(str::len), Ok(whole));
            assert!(end - whole < 4);
        }
        assert_eq!(whole(b"a\xff\xff\xe2"), 3, "bytes that begin none are passed over");
    }

    #[test]
    fn many_escapes_are_no_work() {
        assert_eq!(whole(&[ESCAPE; 1 << 18]), 0);
    }

    #[test]
    fn the_rest_of_an_overlong_sequence_is_found() {
        for (begun, rest) in [
            ("\x1b]52;c;AAAA", "BBBB\x07"),
            ("\x1b]52;c;AAAA", "BBBB\x1b\\"),
            ("\x1bP0;1q#0", "??-\x1b\\"),
            ("\x1b[1;1", ";2;3m"),
            ("\x1b_G", "abc\x1b\\"),
            ("\x1b\x1b\x1b", "\x1b7"),
        ] {
            let overlong = Overlong::begun(begun.as_bytes()).unwrap();
            let bytes = [rest, "text"].concat();
            assert_eq!(overlong.rest(bytes.as_bytes()), Some(rest.len()), "{begun:?}");
            assert_eq!(overlong.rest(&rest.as_bytes()[..rest.len() - 1]), None, "{begun:?}");
            let (mut judge, mut wanted) =
                (avt::Terminal::new(20, 2).unwrap(), avt::Terminal::new(20, 2).unwrap());
            let inert = String::from_utf8(overlong.inert()).unwrap();
            judge.feed([inert.as_str(), &bytes]);
            wanted.feed(if begun.ends_with('\x1b') { "\x1b7text" } else { "text" });
            assert_eq!(judge.dump(), wanted.dump(), "{begun:?}");
        }
        assert_eq!(Overlong::begun(b"text"), None);
    }
}
