//! Pasted text, as a terminal brings it to a program.
//!
//! A program that asked for it (mode 2004, `CSI ? 2004 h`) gets the text as it is between two marks, and can tell it from
//! what is typed (xterm's ctlseqs, "Bracketed Paste Mode"). Any other gets it as if it were typed: each end of a line is
//! what Enter sends.

use vte::{Params, Parser, Perform};

const BEGIN: &str = "\x1b[200~";
const END: &str = "\x1b[201~";
/// CSI as one control character, which some programs take for the other form.
const CSI: char = '\u{9b}';

/// Text that is not pasted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PasteError {
    /// What comes after it would be typed, in the name of who pasted.
    #[error("the text holds the sequence that ends a paste (ESC [ 201 ~)")]
    HoldsEnd,
}

/// The bytes that bring a text to a program.
///
/// # Errors
/// [`PasteError::HoldsEnd`], bracketed or not: the program may decide otherwise before it reads the text.
pub(super) fn paste(text: &str, bracketed: bool) -> Result<Vec<u8>, PasteError> {
    if holds_end(text) {
        return Err(PasteError::HoldsEnd);
    }
    Ok(if bracketed {
        [BEGIN, text, END].concat().into_bytes()
    } else {
        text.replace("\r\n", "\r").replace('\n', "\r").into_bytes()
    })
}

/// Whether a program could find the end of a paste in a text: by its bytes, or by parsing it in any other spelling.
fn holds_end(text: &str) -> bool {
    let text = text.replace(CSI, "\x1b[");
    let mut search = Search(false);
    Parser::new().advance(&mut search, text.as_bytes());
    search.0 || text.contains(END)
}

/// Looks for the sequence whatever its parameters are padded with.
struct Search(bool);

impl Perform for Search {
    fn csi_dispatch(&mut self, params: &Params, _: &[u8], _: bool, action: char) {
        let first = params.iter().next().and_then(|first| first.first());
        self.0 |= action == '~' && first == Some(&201);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_bracketed_text_is_as_it_is_and_another_is_typed() {
        assert_eq!(paste("a\r\nb\nü\t", true).unwrap(), "\x1b[200~a\r\nb\nü\t\x1b[201~".as_bytes());
        assert_eq!(paste("a\r\nb\nü\t\x1b[A", false).unwrap(), "a\rb\rü\t\x1b[A".as_bytes());
        assert_eq!(paste("", true).unwrap(), b"\x1b[200~\x1b[201~");
    }

    #[test]
    fn an_embedded_end_is_refused_however_it_is_written() {
        for end in [
            "\x1b[201~",
            "\u{9b}201~",
            "\x1b[0201~",
            "\x1b[201;1~",
            "\x1b[2\r01~",
            "\x1b]0;\x1b[201~",
            "\x1b\x1b[201~",
        ] {
            for bracketed in [true, false] {
                let text = format!("ls{end}rm -rf ~\r");
                assert_eq!(paste(&text, bracketed), Err(PasteError::HoldsEnd), "{end:?}");
            }
        }
        for text in ["201~", "[201~", "\x1b[200~", "\x1b[201m", "\x1b[2010~", "\x1b[1;201~"] {
            assert!(paste(text, true).is_ok(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_accepted_text_ends_its_own_paste(text in "[\x1b\u{9b}\\[2019~;0a\n]{0,20}") {
            let Ok(bytes) = paste(&text, true) else { return Ok(()) };
            let inside = &bytes[BEGIN.len()..bytes.len() - END.len()];
            prop_assert_eq!(inside, text.as_bytes());
            prop_assert_eq!(memchr::memmem::find(&bytes, END.as_bytes()), Some(bytes.len() - END.len()));
        }
    }
}
