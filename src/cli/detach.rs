//! The keys that leave a session without ending it: Ctrl-] and then d.

/// Ctrl-].
const PREFIX: u8 = 0x1d;
/// Ctrl-C, which leaves a session that is only observed.
const CTRL_C: u8 = 0x03;

/// How it is told to a person.
pub(super) const DETACH_KEYS: &str = "Ctrl-] d";

/// Looks for the keys in what is typed, in whatever pieces it comes.
///
/// Ctrl-] twice sends one Ctrl-]; before any other key it is sent with that key.
#[derive(Debug, Default)]
pub(super) struct DetachKeys {
    /// Whether a Ctrl-] waits for the key after it.
    prefixed: bool,
    /// Whether Ctrl-C leaves as well.
    ctrl_c: bool,
}

/// What was typed, without the keys that are not the tool's.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Typed {
    /// For the tool.
    pub(super) input: Vec<u8>,
    /// Whether the session is left after that.
    pub(super) detach: bool,
}

impl DetachKeys {
    /// The keys of a stream that is only observed: Ctrl-C as well.
    pub(super) fn of_observer() -> Self {
        Self { ctrl_c: true, ..Self::default() }
    }

    /// Looks at one piece; nothing that follows the keys is kept.
    pub(super) fn see(&mut self, typed: &[u8]) -> Typed {
        let mut input = Vec::with_capacity(typed.len() + 1);
        for &byte in typed {
            let prefixed = std::mem::take(&mut self.prefixed);
            match byte {
                b'd' | b'D' if prefixed => return Typed { input, detach: true },
                CTRL_C if self.ctrl_c => return Typed { input, detach: true },
                PREFIX if prefixed => input.push(PREFIX),
                PREFIX => self.prefixed = true,
                _ if prefixed => input.extend([PREFIX, byte]),
                _ => input.push(byte),
            }
        }
        Typed { input, detach: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(pieces: &[&[u8]]) -> (Vec<u8>, bool) {
        let mut keys = DetachKeys::default();
        let mut input = Vec::new();
        for piece in pieces {
            let typed = keys.see(piece);
            input.extend(typed.input);
            if typed.detach {
                return (input, true);
            }
        }
        (input, false)
    }

    #[test]
    fn the_keys_leave_whole_or_in_pieces() {
        assert_eq!(typed(&[b"ls\x1ddrest"]), (b"ls".to_vec(), true));
        assert_eq!(typed(&[b"ls\x1d", b"d"]), (b"ls".to_vec(), true));
        assert_eq!(typed(&[b"\x1d", b"", b"d"]), (vec![], true));
    }

    #[test]
    fn other_keys_reach_the_tool_unchanged() {
        assert_eq!(typed(&[b"d\x1b[Ad"]), (b"d\x1b[Ad".to_vec(), false));
        assert_eq!(typed(&[b"\x1dx"]), (b"\x1dx".to_vec(), false));
        assert_eq!(typed(&[b"\x1d", b"\x1d", b"d"]), (b"\x1dd".to_vec(), false));
    }

    #[test]
    fn ctrl_c_leaves_only_an_observer() {
        assert_eq!(typed(&[b"\x03"]), (b"\x03".to_vec(), false));
        let mut keys = DetachKeys::of_observer();
        assert!(keys.see(b"\x03").detach);
    }
}
