//! Which private modes a tool's output has left on in this terminal, so that they can be turned off when the
//! session is left or ends without cleaning up.

/// A private mode (DECSET, `CSI ? N h`) that outlives the program that set it, and whether it is on at rest.
/// From xterm's ctlseqs: cursor keys, cursor, mouse reporting and its encodings, focus, alternate screens, paste.
const WATCHED: [(u16, bool); 15] = [
    (1, false),
    (25, true),
    (9, false),
    (1000, false),
    (1001, false),
    (1002, false),
    (1003, false),
    (1004, false),
    (1005, false),
    (1006, false),
    (1015, false),
    (47, false),
    (1047, false),
    (1049, false),
    (2004, false),
];

/// Most numbers of one sequence that are looked at.
const NUMBERS: usize = 16;

/// Reads output as it passes, in any pieces, and remembers the watched modes.
#[derive(Debug, Default)]
pub(super) struct Modes {
    state: State,
    numbers: Vec<u16>,
    /// For each watched mode, whether it differs from its rest.
    changed: [bool; WATCHED.len()],
    keypad: bool,
    colored: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Escape,
    Csi,
    Private,
}

impl Modes {
    /// Looks at a piece of output.
    pub(super) fn see(&mut self, output: &[u8]) {
        for &byte in output {
            self.state = self.next(byte);
        }
    }

    fn next(&mut self, byte: u8) -> State {
        match (self.state, byte) {
            (_, 0x1b) => State::Escape,
            (State::Text, _) => State::Text,
            (State::Escape, b'[') => State::Csi,
            (State::Escape, _) => self.escape(byte),
            (State::Csi, b'?') => {
                self.numbers.clear();
                self.numbers.push(0);
                State::Private
            }
            (State::Csi, b'0'..=b'9' | b';' | b':') => State::Csi,
            (State::Csi, _) => {
                self.colored |= byte == b'm';
                State::Text
            }
            (State::Private, b'0'..=b'9') => self.digit(byte - b'0'),
            (State::Private, b';') => self.separator(),
            (State::Private, _) => self.end(byte),
        }
    }

    /// DECKPAM and DECKPNM switch the keypad; RIS resets all.
    fn escape(&mut self, byte: u8) -> State {
        match byte {
            b'=' => self.keypad = true,
            b'>' => self.keypad = false,
            b'c' => *self = Self::default(),
            _ => {}
        }
        State::Text
    }

    fn digit(&mut self, digit: u8) -> State {
        if let Some(number) = self.numbers.last_mut() {
            *number = number.saturating_mul(10).saturating_add(digit.into());
        }
        State::Private
    }

    fn separator(&mut self) -> State {
        if self.numbers.len() < NUMBERS {
            self.numbers.push(0);
        }
        State::Private
    }

    fn end(&mut self, byte: u8) -> State {
        let on = match byte {
            b'h' => true,
            b'l' => false,
            _ => return State::Text,
        };
        for (changed, (mode, rest)) in self.changed.iter_mut().zip(WATCHED) {
            if self.numbers.contains(&mode) {
                *changed = on != rest;
            }
        }
        State::Text
    }

    /// The bytes that bring the terminal to rest; empty where it is.
    pub(super) fn to_rest(&self) -> Vec<u8> {
        let mut bytes = self.switch(|rest| rest);
        if self.keypad {
            bytes.extend(b"\x1b>");
        }
        if self.colored && !bytes.is_empty() {
            bytes.extend(b"\x1b[0m");
        }
        bytes
    }

    /// The bytes that set the modes again after a rest.
    pub(super) fn again(&self) -> Vec<u8> {
        let mut bytes = self.switch(|rest| !rest);
        if self.keypad {
            bytes.extend(b"\x1b=");
        }
        bytes
    }

    fn switch(&self, to: impl Fn(bool) -> bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (changed, (mode, rest)) in self.changed.iter().zip(WATCHED) {
            if *changed {
                let last = if to(rest) { 'h' } else { 'l' };
                bytes.extend(format!("\x1b[?{mode}{last}").bytes());
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest_after(output: &[u8]) -> String {
        let mut whole = Modes::default();
        whole.see(output);
        let mut pieces = Modes::default();
        output.iter().for_each(|byte| pieces.see(&[*byte]));
        assert_eq!(whole.to_rest(), pieces.to_rest(), "pieces change nothing");
        String::from_utf8(whole.to_rest()).unwrap()
    }

    #[test]
    fn a_tool_that_cleans_up_leaves_nothing_to_do() {
        assert_eq!(rest_after(b"\x1b[?1049h\x1b[?25l\x1b[1;31mx\x1b[0m\x1b[?25h\x1b[?1049l"), "");
        assert_eq!(rest_after(b"plain \x1b[31m colours \x1b[0m"), "");
    }

    #[test]
    fn what_a_killed_tool_left_is_turned_off() {
        assert_eq!(
            rest_after(b"\x1b[?1049h\x1b[?1;25;1000l\x1b[?1000;1006h\x1b[?2004h\x1b[7m"),
            "\x1b[?25h\x1b[?1000l\x1b[?1006l\x1b[?1049l\x1b[?2004l\x1b[0m"
        );
        assert_eq!(rest_after(b"\x1b="), "\x1b>");
    }

    #[test]
    fn a_reset_and_odd_sequences_are_understood() {
        assert_eq!(rest_after(b"\x1b[?1049h\x1bc"), "");
        assert_eq!(rest_after(b"\x1b[?1049$p\x1b[?99999999999h\x1b[?h\x1b[?25\x1b[?25h"), "");
        let many = format!("\x1b[?{}1049h", "3;".repeat(100));
        assert_eq!(rest_after(many.as_bytes()), "", "numbers beyond the bound are passed over");
    }

    #[test]
    fn modes_come_back_after_a_stop() {
        let mut modes = Modes::default();
        modes.see(b"\x1b[?1049h\x1b[?25l");
        assert_eq!(modes.again(), b"\x1b[?25l\x1b[?1049h");
    }
}
