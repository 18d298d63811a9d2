//! Output as plain text.

use vte::{Parser, Perform};

/// What is left of the output: characters, and the controls that lay out lines.
struct Plain(String);

impl Perform for Plain {
    fn print(&mut self, character: char) {
        // The parser takes DEL for a character.
        if character != '\x7f' {
            self.0.push(character);
        }
    }

    fn execute(&mut self, control: u8) {
        if matches!(control, b'\t' | b'\n' | b'\r') {
            self.0.push(control.into());
        }
    }
}

/// Output as plain text: without control sequences, strings such as titles, and controls but tab, line feed and
/// carriage return. What is not UTF-8 becomes U+FFFD, and so it is three times as long at most. Where it begins
/// inside a sequence, nothing tells the rest of that from text.
pub(super) fn plain(output: &[u8]) -> String {
    // The parser is given valid text only: of what is not it may lose a neighbour.
    let output = String::from_utf8_lossy(output);
    let mut text = Plain(String::with_capacity(output.len()));
    let mut parser: Parser = Parser::new();
    parser.advance(&mut text, output.as_bytes());
    text.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_the_layout_of_lines_are_left() {
        for (output, text) in [
            (&b""[..], ""),
            (b"a\tb\r\n\n", "a\tb\r\n\n"),
            (b"\x1b[1;31mred\x1b[m\x1b[2J\x1b(0q\x1bMend", "redqend"),
            (
                b"\x1b]2;title\x07one\x1b]8;;https://st2.dev\x1b\\two\x1bP$qm\x1b\\three",
                "onetwothree",
            ),
            (b"\x00\x07\x08\x0b\x0e\x7f\xc2\x85", ""),
            (b"\xc3\xa9\xff\xe2\x82a\xc3", "\u{e9}\u{fffd}\u{fffd}a\u{fffd}"),
            (b"until the end\x1b[31", "until the end"),
        ] {
            assert_eq!(plain(output), text, "{output:?}");
        }
    }
}
