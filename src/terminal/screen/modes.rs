//! The modes of a terminal that change nothing on its screen, as a tool has set them.

use std::io::Write;

use alacritty_terminal::vte::ansi::{
    CursorShape, CursorStyle, KeyboardModes, KeyboardModesApplyBehavior, ModifyOtherKeys,
};

use super::names::Names;

/// Private modes (DECSET) that are on or off by themselves, and what a reset terminal has; `None` where
/// terminals differ. From xterm's ctlseqs and, the last three, from terminal-wg and contour.
const FLAGS: [(u16, Option<bool>); 15] = [
    (1, Some(false)),    // application cursor keys
    (5, Some(false)),    // reverse video
    (12, None),          // blinking cursor
    (25, Some(true)),    // cursor visible
    (45, Some(false)),   // reverse wraparound
    (1004, Some(false)), // focus reports
    (1007, None),        // wheel as cursor keys on the alternate screen
    (1034, None),        // meta as the eighth bit
    (1036, None),        // meta as escape
    (1042, None),        // bell as urgency
    (2004, Some(false)), // bracketed paste
    (2027, None),        // grapheme clusters
    (2031, Some(false)), // reports of the colour scheme
    (2048, Some(false)), // reports of the size
    SYNCHRONIZED,
];

/// Updates shown at once: last, since what follows is not shown before its end.
const SYNCHRONIZED: (u16, Option<bool>) = (2026, Some(false));

/// Kinds of mouse reports, and their encodings.
const MOUSE: [u16; 9] = [9, 1000, 1001, 1002, 1003, 1005, 1006, 1015, 1016];

/// What a tool that crashed may have left on, and makes a terminal type by itself: mouse, focus, paste.
pub const RESET_INPUT_MODES: &[u8] =
    b"\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l\x1b[?1005l\
    \x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?1004l\x1b[?2004l";

/// Modes, title and open hyperlink; bounded.
#[derive(Debug, Default)]
pub(super) struct Modes {
    /// Each of [`FLAGS`] that is not as after a reset.
    flags: [Option<bool>; FLAGS.len()],
    /// When each of [`MOUSE`] was turned on and off for the last time, in this order, since all were off. Of two
    /// kinds that are on the last is in force, and what is when one is turned off is for each terminal to say.
    mouse: Vec<(u16, bool)>,
    /// Whether a character shifts what is right of it (IRM).
    pub(super) inserts: bool,
    pub(super) application_keypad: bool,
    cursor_style: Option<u8>,
    modify_other_keys: u8,
    /// Of the primary and of the alternate screen.
    keyboard: [Keyboard; 2],
    pub(super) names: Names,
}

/// Stack of the kitty keyboard protocol; its top is in force.
#[derive(Debug)]
struct Keyboard(Vec<u8>);

impl Default for Keyboard {
    fn default() -> Self {
        Self(vec![0])
    }
}

impl Keyboard {
    /// Entries beyond this push the oldest out, as the protocol has it.
    const DEPTH: usize = 16;

    fn push(&mut self, flags: u8) {
        if self.0.len() == Self::DEPTH {
            self.0.remove(0);
        }
        self.0.push(flags);
    }

    fn pop(&mut self, count: usize) {
        self.0.truncate(self.0.len().saturating_sub(count));
        if self.0.is_empty() {
            self.0.push(0);
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let Some((base, pushed)) = self.0.split_first() else { return };
        if *base != 0 {
            put(out, format_args!("\x1b[={base}u"));
        }
        for flags in pushed {
            put(out, format_args!("\x1b[>{flags}u"));
        }
    }
}

/// Writes to memory, which does not fail.
pub(super) fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

impl Modes {
    /// Notes a private mode; gives whether it is one that is kept here.
    pub(super) fn set(&mut self, mode: u16, on: bool) -> bool {
        if MOUSE.contains(&mode) {
            self.set_mouse(mode, on);
            return true;
        }
        self.set_flag(mode, on)
    }

    fn set_mouse(&mut self, mode: u16, on: bool) {
        self.mouse.retain(|(other, was_on)| *other != mode || (*was_on && !on));
        self.mouse.push((mode, on));
        // What was before all of them were off is over.
        let (mut are_on, mut over) = (Vec::new(), 0);
        for (at, (mode, on)) in self.mouse.iter().enumerate() {
            are_on.retain(|other| other != mode);
            are_on.extend(on.then_some(*mode));
            if are_on.is_empty() {
                over = at + 1;
            }
        }
        self.mouse.drain(..over);
    }

    fn set_flag(&mut self, mode: u16, on: bool) -> bool {
        if mode == 66 {
            self.application_keypad = on;
            return true;
        }
        let at = FLAGS.iter().position(|(number, _)| *number == mode);
        if let Some(at) = at {
            self.flags[at] = Some(on).filter(|_| FLAGS[at].1 != Some(on));
        }
        at.is_some()
    }

    /// Whether a private mode that is on or off by itself was turned on.
    pub(super) fn is_on(&self, mode: u16) -> bool {
        let at = FLAGS.iter().position(|(number, _)| *number == mode);
        at.is_some_and(|at| self.flags[at] == Some(true))
    }

    pub(super) fn set_cursor_style(&mut self, style: Option<CursorStyle>) {
        self.cursor_style = style.map(|style| {
            let steady = match style.shape {
                CursorShape::Underline => 4,
                CursorShape::Beam => 6,
                CursorShape::Block | CursorShape::HollowBlock | CursorShape::Hidden => 2,
            };
            steady - u8::from(style.blinking)
        });
    }

    pub(super) fn set_modify_other_keys(&mut self, mode: ModifyOtherKeys) {
        self.modify_other_keys = match mode {
            ModifyOtherKeys::Reset => 0,
            ModifyOtherKeys::EnableExceptWellDefined => 1,
            ModifyOtherKeys::EnableAll => 2,
        };
    }

    pub(super) fn push_keyboard(&mut self, alternate: bool, flags: KeyboardModes) {
        self.keyboard[usize::from(alternate)].push(flags.bits());
    }

    pub(super) fn pop_keyboard(&mut self, alternate: bool, count: u16) {
        self.keyboard[usize::from(alternate)].pop(count.into());
    }

    pub(super) fn set_keyboard(
        &mut self,
        alternate: bool,
        flags: KeyboardModes,
        apply: KeyboardModesApplyBehavior,
    ) {
        let Some(top) = self.keyboard[usize::from(alternate)].0.last_mut() else { return };
        match apply {
            KeyboardModesApplyBehavior::Replace => *top = flags.bits(),
            KeyboardModesApplyBehavior::Union => *top |= flags.bits(),
            KeyboardModesApplyBehavior::Difference => *top &= !flags.bits(),
        }
    }

    /// What RIS resets: all but the name of the window.
    pub(super) fn reset(&mut self) {
        let mut names = std::mem::take(&mut self.names);
        names.set_link(None);
        *self = Self { names, ..Self::default() };
    }

    /// What DECSTR resets of these (VT510, "Soft Terminal Reset").
    pub(super) fn soft_reset(&mut self) {
        self.set(1, false);
        self.set(25, true);
        self.inserts = false;
        self.application_keypad = false;
    }

    /// The keyboard of the primary screen, to be written while that is shown.
    pub(super) fn write_primary_keyboard(&self, out: &mut Vec<u8>) {
        self.keyboard[0].write(out);
    }

    /// What was left of the keyboard of the alternate screen, to be written while the primary one is shown.
    pub(super) fn write_left_keyboard(&self, out: &mut Vec<u8>) {
        if self.keyboard[1].0 != [0] {
            out.extend(b"\x1b[?1047h");
            self.keyboard[1].write(out);
            out.extend(b"\x1b[?1047l");
        }
    }

    /// The bytes that set all of it on a reset terminal; but for insert mode, and for the primary screen's keyboard, where the
    /// alternate one is shown.
    pub(super) fn write(&self, out: &mut Vec<u8>, alternate: bool) {
        self.names.write(out);
        if let Some(style) = self.cursor_style {
            put(out, format_args!("\x1b[{style} q"));
        }
        if self.application_keypad {
            out.extend(b"\x1b=");
        }
        if self.modify_other_keys > 0 {
            put(out, format_args!("\x1b[>4;{}m", self.modify_other_keys));
        }
        self.keyboard[usize::from(alternate)].write(out);
        for (mode, on) in &self.mouse {
            put(out, format_args!("\x1b[?{mode}{}", if *on { 'h' } else { 'l' }));
        }
        for ((mode, _), set) in FLAGS.iter().zip(self.flags) {
            if let Some(on) = set {
                put(out, format_args!("\x1b[?{mode}{}", if on { 'h' } else { 'l' }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(change: impl FnOnce(&mut Modes)) -> String {
        let (mut modes, mut out) = (Modes::default(), Vec::new());
        change(&mut modes);
        modes.write(&mut out, false);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_as_after_a_reset_is_not_written() {
        let all = [1, 5, 9, 45, 66, 1000, 1003, 1004, 1006, 2004, 2026];
        let there_and_back = |modes: &mut Modes| {
            for on in [true, false] {
                assert!(all.iter().all(|mode| modes.set(*mode, on)));
            }
            modes.set(25, false);
            modes.set(25, true);
            assert!(!modes.set(7, false), "autowrap is the grid's");
        };
        assert_eq!(written(there_and_back), "");
    }

    #[test]
    fn mouse_reports_are_turned_on_in_the_tools_order() {
        let vim = |modes: &mut Modes| {
            for mode in [1000, 1002, 1006, 1000, 2004, 25, 2026] {
                modes.set(mode, mode != 25);
            }
        };
        let written = written(vim);
        assert_eq!(written, "\x1b[?1002h\x1b[?1006h\x1b[?1000h\x1b[?25l\x1b[?2004h\x1b[?2026h");
    }

    #[test]
    fn what_mouse_mode_is_left_is_for_the_terminal_to_say() {
        let change = |changes: &[(u16, bool)]| {
            written(|modes| assert!(changes.iter().all(|(mode, on)| modes.set(*mode, *on))))
        };
        let two = [(1000, true), (1002, true)];
        let left = change(&[&two[..], &[(1002, false)]].concat());
        assert_eq!(left, "\x1b[?1000h\x1b[?1002h\x1b[?1002l");
        let again = change(&[&two[..], &[(1000, false), (1000, true)]].concat());
        assert_eq!(again, "\x1b[?1002h\x1b[?1000h");
        assert_eq!(change(&[&two[..], &[(1002, false), (1000, false)]].concat()), "");
    }

    #[test]
    fn the_keyboard_stack_is_bounded_and_its_top_is_set() {
        use KeyboardModesApplyBehavior::{Difference, Union};
        let flags = KeyboardModes::from_bits_truncate;
        let fish = |modes: &mut Modes| {
            modes.push_keyboard(false, flags(1));
            modes.push_keyboard(true, flags(31));
            modes.set_keyboard(false, flags(6), Union);
            modes.set_keyboard(false, flags(2), Difference);
        };
        assert_eq!(written(fish), "\x1b[>5u");
        let hostile = |modes: &mut Modes| {
            for _ in 0..100_000 {
                modes.push_keyboard(false, flags(1));
            }
            modes.pop_keyboard(false, 14);
        };
        assert_eq!(written(hostile), "\x1b[=1u\x1b[>1u");
        assert_eq!(written(|modes| modes.pop_keyboard(false, u16::MAX)), "");
    }

    #[test]
    fn the_reset_of_input_modes_resets_them() {
        let text = std::str::from_utf8(RESET_INPUT_MODES).unwrap();
        for mode in MOUSE.iter().chain(&[1004, 2004]) {
            assert!(text.contains(&format!("\x1b[?{mode}l")), "{mode}");
        }
    }
}
