//! The names of keys, and what kind of sequence each has.

/// A key without modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// What types this character.
    Character(char),
    /// What sends a control code, and what else with Shift or Ctrl, where that is something of its own.
    Control { plain: &'static [u8], shift: Option<&'static [u8]>, control: Option<&'static [u8]> },
    /// A sequence with this end, that follows the mode of the cursor keys.
    Cursor(u8),
    /// SS3 with this end, in every mode.
    Ss3(u8),
    /// CSI with this number and a tilde.
    Tilde(u8),
    /// Of the keypad.
    Keypad { printed: u8, end: u8 },
}

const fn only(plain: &'static [u8]) -> Base {
    Base::Control { plain, shift: None, control: None }
}

const fn keypad(printed: u8, end: u8) -> Base {
    Base::Keypad { printed, end }
}

const TAB: Base = Base::Control { plain: b"\t", shift: Some(b"\x1b[Z"), control: None };
const BACKSPACE: Base = Base::Control { plain: b"\x7f", shift: None, control: Some(b"\x08") };

/// Every name, in lower case. Beside those of the contract, the spellings of tmux(1), which scripts are used to.
pub(super) const NAMES: &[(&str, Base)] = &[
    ("enter", only(b"\r")),
    ("return", only(b"\r")),
    ("tab", TAB),
    ("escape", only(b"\x1b")),
    ("esc", only(b"\x1b")),
    ("space", Base::Character(' ')),
    ("backspace", BACKSPACE),
    ("bspace", BACKSPACE),
    ("delete", Base::Tilde(3)),
    ("del", Base::Tilde(3)),
    ("dc", Base::Tilde(3)),
    ("insert", Base::Tilde(2)),
    ("ins", Base::Tilde(2)),
    ("ic", Base::Tilde(2)),
    ("up", Base::Cursor(b'A')),
    ("down", Base::Cursor(b'B')),
    ("right", Base::Cursor(b'C')),
    ("left", Base::Cursor(b'D')),
    ("begin", Base::Cursor(b'E')),
    ("end", Base::Cursor(b'F')),
    ("home", Base::Cursor(b'H')),
    ("pageup", Base::Tilde(5)),
    ("pgup", Base::Tilde(5)),
    ("ppage", Base::Tilde(5)),
    ("pagedown", Base::Tilde(6)),
    ("pgdown", Base::Tilde(6)),
    ("pgdn", Base::Tilde(6)),
    ("npage", Base::Tilde(6)),
    ("f1", Base::Ss3(b'P')),
    ("f2", Base::Ss3(b'Q')),
    ("f3", Base::Ss3(b'R')),
    ("f4", Base::Ss3(b'S')),
    ("f5", Base::Tilde(15)),
    ("f6", Base::Tilde(17)),
    ("f7", Base::Tilde(18)),
    ("f8", Base::Tilde(19)),
    ("f9", Base::Tilde(20)),
    ("f10", Base::Tilde(21)),
    ("f11", Base::Tilde(23)),
    ("f12", Base::Tilde(24)),
    ("kp0", keypad(b'0', b'p')),
    ("kp1", keypad(b'1', b'q')),
    ("kp2", keypad(b'2', b'r')),
    ("kp3", keypad(b'3', b's')),
    ("kp4", keypad(b'4', b't')),
    ("kp5", keypad(b'5', b'u')),
    ("kp6", keypad(b'6', b'v')),
    ("kp7", keypad(b'7', b'w')),
    ("kp8", keypad(b'8', b'x')),
    ("kp9", keypad(b'9', b'y')),
    ("kp*", keypad(b'*', b'j')),
    ("kp+", keypad(b'+', b'k')),
    ("kp,", keypad(b',', b'l')),
    ("kp-", keypad(b'-', b'm')),
    ("kp.", keypad(b'.', b'n')),
    ("kp/", keypad(b'/', b'o')),
    ("kp=", keypad(b'=', b'X')),
    ("kpenter", keypad(b'\r', b'M')),
];

/// The name of Shift and Tab together.
const BACK_TAB: &str = "btab";

/// The key of a name in any case, and whether the name stands for the key with Shift.
pub(super) fn find(name: &str) -> Option<(Base, bool)> {
    if name.eq_ignore_ascii_case(BACK_TAB) {
        return Some((TAB, true));
    }
    let found = NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
    found.map(|(_, base)| (*base, false))
}
