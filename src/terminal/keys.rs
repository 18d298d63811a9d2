//! Keys by name, as the bytes that xterm sends for them (ctlseqs, "PC-Style Function Keys"; terminfo `xterm-256color`).
//!
//! A key is a name in any case (`enter`, `PageUp`, `f5`), one character, or `^X`; before it each of `C-`, `M-` and `S-` at
//! most once, in any order. `C-` and `M-` of a character are its control code and an escape before it; `S-` is the
//! upper case of a letter. Function and cursor keys carry modifiers as a parameter.
//!
//! What xterm has no sequence for, such as `C-enter`, `S-1` or `C-S-a`, is refused: the plain key would be another.

use super::InputModes;

mod table;

use table::Base;

/// Keys of one call, each known to mean something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys(Vec<Code>);

/// Keys of which none was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// No key has this name.
    #[error(
        "key {0:?} is no name of a key, no single character and no ^X, each after C-, M-, S- at most once"
    )]
    Unknown(String),
    /// The key is known, but not with these modifiers.
    #[error("key {0:?} has modifiers that a terminal has no sequence for with this key")]
    Impossible(String),
    /// More than one call may have.
    #[error("{count} keys are more than {limit}")]
    TooMany {
        /// Keys of this call.
        count: usize,
        /// Keys that a call may have.
        limit: usize,
    },
}

/// What is sent for one key.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Code {
    /// The same in every mode.
    Fixed(Vec<u8>),
    /// A sequence that begins with CSI, or in application mode with SS3, and has this end.
    Cursor(u8),
    /// Of the keypad: what is printed on the key, or in application mode SS3 and this end.
    Keypad { printed: u8, end: u8 },
}

/// Modifiers, as far as a terminal tells them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Modifiers {
    shift: bool,
    meta: bool,
    control: bool,
}

const ESCAPE: u8 = 0x1b;

impl Keys {
    /// Keys that one call may have.
    pub const MAX: usize = 1024;

    /// Reads names of keys.
    ///
    /// # Errors
    /// [`KeyError`] for the first that cannot be sent.
    pub fn parse(names: &[String]) -> Result<Self, KeyError> {
        if names.len() > Self::MAX {
            return Err(KeyError::TooMany { count: names.len(), limit: Self::MAX });
        }
        names.iter().map(|name| code(name)).collect::<Result<_, _>>().map(Self)
    }

    /// What a terminal in these modes sends, for each key by itself.
    #[must_use]
    pub fn encode(&self, modes: InputModes) -> Vec<Vec<u8>> {
        self.0.iter().map(|code| code.bytes(modes)).collect()
    }
}

impl Code {
    fn bytes(&self, modes: InputModes) -> Vec<u8> {
        match self {
            Self::Fixed(bytes) => bytes.clone(),
            Self::Cursor(end) if modes.application_cursor => vec![ESCAPE, b'O', *end],
            Self::Cursor(end) => vec![ESCAPE, b'[', *end],
            Self::Keypad { end, .. } if modes.application_keypad => vec![ESCAPE, b'O', *end],
            Self::Keypad { printed, .. } => vec![*printed],
        }
    }
}

impl Modifiers {
    /// Takes prefixes off a name; `None` where one comes twice.
    fn take(mut name: &str) -> Option<(Self, &str)> {
        let mut modifiers = Self::default();
        while let Some((prefix, rest)) = name.split_at_checked(2)
            && !rest.is_empty()
            && let Some(modifier) = modifiers.of(prefix)
        {
            if std::mem::replace(modifier, true) {
                return None;
            }
            name = rest;
        }
        Some((modifiers, name))
    }

    fn of(&mut self, prefix: &str) -> Option<&mut bool> {
        match prefix {
            "C-" | "c-" => Some(&mut self.control),
            "M-" | "m-" => Some(&mut self.meta),
            "S-" | "s-" => Some(&mut self.shift),
            _ => None,
        }
    }

    /// The parameter of a sequence; 1 is none.
    fn parameter(self) -> u8 {
        1 + u8::from(self.shift) + 2 * u8::from(self.meta) + 4 * u8::from(self.control)
    }
}

/// What is sent for the key of a name.
fn code(name: &str) -> Result<Code, KeyError> {
    let shown = || name.chars().take(64).collect();
    let unknown = || KeyError::Unknown(shown());
    let (mut modifiers, rest) = Modifiers::take(name).ok_or_else(unknown)?;
    let base = match (single(rest), caret(rest)) {
        (Some(c), _) => Base::Character(c),
        (None, Some(c)) if !modifiers.control => {
            modifiers.control = true;
            Base::Character(c)
        }
        (None, _) => {
            let (base, shift) = table::find(rest).ok_or_else(unknown)?;
            if shift && modifiers.shift {
                return Err(KeyError::Impossible(shown()));
            }
            modifiers.shift |= shift;
            base
        }
    };
    modified(base, modifiers).ok_or_else(|| KeyError::Impossible(shown()))
}

fn single(text: &str) -> Option<char> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// The character of `^X`.
fn caret(text: &str) -> Option<char> {
    let c = text.strip_prefix('^').and_then(single)?;
    matches!(c, '?'..='_' | 'a'..='z').then_some(c)
}

/// A key with modifiers; `None` where xterm has no sequence for it.
fn modified(base: Base, modifiers: Modifiers) -> Option<Code> {
    let parameter = modifiers.parameter();
    let is_plain = parameter == 1;
    let sequence = |text: String| Some(Code::Fixed(text.into_bytes()));
    match base {
        Base::Character(c) => character(c, modifiers).map(|bytes| meta(bytes, modifiers)),
        Base::Control { plain, shift, control } => {
            let bytes = match (modifiers.shift, modifiers.control) {
                (false, false) => plain,
                (true, false) => shift?,
                (false, true) => control?,
                (true, true) => return None,
            };
            Some(meta(bytes.to_vec(), modifiers))
        }
        Base::Cursor(end) if is_plain => Some(Code::Cursor(end)),
        Base::Ss3(end) if is_plain => sequence(format!("\x1bO{}", char::from(end))),
        Base::Cursor(end) | Base::Ss3(end) => {
            sequence(format!("\x1b[1;{parameter}{}", char::from(end)))
        }
        Base::Tilde(number) if is_plain => sequence(format!("\x1b[{number}~")),
        Base::Tilde(number) => sequence(format!("\x1b[{number};{parameter}~")),
        Base::Keypad { printed, end } => is_plain.then_some(Code::Keypad { printed, end }),
    }
}

fn meta(mut bytes: Vec<u8>, modifiers: Modifiers) -> Code {
    if modifiers.meta {
        bytes.insert(0, ESCAPE);
    }
    Code::Fixed(bytes)
}

fn character(c: char, modifiers: Modifiers) -> Option<Vec<u8>> {
    let c = match (modifiers.shift, modifiers.control) {
        (false, false) => c,
        (true, false) => upper_case(c)?,
        (false, true) => return control_code(c).map(|code| vec![code]),
        (true, true) => return None,
    };
    Some(c.to_string().into_bytes())
}

/// The upper case of a letter, where that is one character too.
fn upper_case(c: char) -> Option<char> {
    let mut upper = c.to_uppercase();
    upper.next().filter(|_| c.is_alphabetic() && upper.next().is_none())
}

/// The control code of a character, with those that a keyboard of the VT220 gives digits and the slash.
fn control_code(c: char) -> Option<u8> {
    match c {
        'a'..='z' | 'A'..='Z' => u8::try_from(c).ok().map(|letter| letter & 0x1f),
        ' ' | '@' | '2' => Some(0x00),
        '[' | '3' => Some(0x1b),
        '\\' | '4' => Some(0x1c),
        ']' | '5' => Some(0x1d),
        '^' | '6' => Some(0x1e),
        '_' | '7' | '/' => Some(0x1f),
        '?' | '8' => Some(0x7f),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
