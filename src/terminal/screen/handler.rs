//! What each sequence does: the grid's part is forwarded, the rest is followed beside it.
//!
//! Where the grid departs from xterm, whose terminfo tools are given, it is done here as xterm does it.

use std::time::Duration;

use alacritty_terminal::{
    grid::Dimensions,
    index::Line,
    term::cell::Flags,
    vte::ansi::{
        Attr, CharsetIndex, ClearMode, CursorStyle, Handler, Hyperlink, KeyboardModes,
        KeyboardModesApplyBehavior, LineClearMode, Mode, ModifyOtherKeys, NamedMode,
        NamedPrivateMode, PrivateMode, Rgb, StandardCharset, TabulationClearMode, Timeout,
    },
};
use unicode_width::UnicodeWidthChar;

use super::{
    margins::Margins,
    tracked::{Query, Tracked},
};

/// Blinking text. The grid knows no such attribute, and carries this unused bit along with those it knows.
pub(super) const BLINK: Flags = Flags::from_bits_retain(1 << 15);

/// Private modes that lead to the alternate screen.
const ALTERNATE: [u16; 3] = [47, 1047, 1049];

/// Bytes of a synchronized update are not held back: the screen is to be exactly where the output is.
#[derive(Debug, Default)]
pub(super) struct Unsynchronized;

impl Timeout for Unsynchronized {
    fn set_timeout(&mut self, _: Duration) {}
    fn clear_timeout(&mut self) {}
    fn pending_timeout(&self) -> bool {
        false
    }
}

/// Forwards to the grid. Every such sequence ends what [`Tracked::just_printed`] tells.
macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*);)+) => {$(
        #[inline]
        fn $name(&mut self, $($argument: $type),*) {
            self.just_printed = false;
            Handler::$name(&mut self.term, $($argument),*);
        }
    )+};
}

impl Handler for Tracked {
    forward! {
        goto(line: i32, column: usize);
        goto_line(line: i32);
        move_forward(columns: usize);
        move_backward(columns: usize);
        move_forward_tabs(count: u16);
        backspace();
        carriage_return();
        scroll_up(count: usize);
        scroll_down(count: usize);
        insert_blank_lines(count: usize);
        delete_lines(count: usize);
    }
    #[inline]
    fn input(&mut self, c: char) {
        // The first that adds to another is U+0300.
        if c < '\u{300}' || c.width() != Some(0) || self.carries_more() {
            // The first that is wide is U+1100.
            let fits = !(self.modes.inserts || c >= '\u{1100}') || self.make_room(c);
            self.term.input(c);
            self.just_printed = fits;
        }
    }

    fn linefeed(&mut self) {
        self.end_wait();
        self.term.linefeed();
    }

    fn newline(&mut self) {
        self.end_wait();
        self.term.newline();
    }

    fn reverse_index(&mut self) {
        self.end_wait();
        self.term.reverse_index();
    }

    /// Without going down where the cursor is past the last column: a tab there does nothing.
    fn put_tab(&mut self, count: u16) {
        self.move_forward_tabs(count);
    }

    /// To the first column where there is no stop before; and the grid would still wrap before the next character.
    fn move_backward_tabs(&mut self, count: u16) {
        let (line, mut column) = self.cursor();
        for _ in 0..count.min(Margins::MOST_TABS) {
            column = self.margins.tab_before(column);
        }
        self.place(line, column);
    }

    fn goto_col(&mut self, column: usize) {
        let (line, _) = self.cursor();
        self.place(line, column.min(self.term.grid().columns() - 1));
    }

    fn move_up(&mut self, lines: usize) {
        self.up(lines, self.cursor().1);
    }

    fn move_down(&mut self, lines: usize) {
        self.down(lines, self.cursor().1);
    }

    fn move_up_and_cr(&mut self, lines: usize) {
        self.up(lines, 0);
    }

    fn move_down_and_cr(&mut self, lines: usize) {
        self.down(lines, 0);
    }

    fn insert_blank(&mut self, count: usize) {
        let (columns, column) = (self.term.grid().columns(), self.cursor().1);
        self.split(column);
        self.split(columns.saturating_sub(count).max(column));
        self.term.insert_blank(count);
    }

    fn erase_chars(&mut self, count: usize) {
        let column = self.cursor().1;
        self.split(column);
        self.split(column.saturating_add(count));
        self.term.erase_chars(count);
    }

    /// No more than there are right of the cursor: the grid would clear some left of it.
    fn delete_chars(&mut self, count: usize) {
        let column = self.cursor().1;
        let count = count.min(self.term.grid().columns() - column);
        self.split(column);
        self.split(column + count);
        self.term.delete_chars(count);
    }

    fn clear_line(&mut self, mode: LineClearMode) {
        let column = self.cursor().1;
        match mode {
            LineClearMode::Right => self.split(column),
            LineClearMode::Left => self.split(column + 1),
            LineClearMode::All => self.just_printed = false,
        }
        self.term.clear_line(mode);
    }

    fn clear_screen(&mut self, mode: ClearMode) {
        let column = self.cursor().1;
        match mode {
            ClearMode::Below => self.split(column),
            ClearMode::Above => self.split(column + 1),
            ClearMode::All | ClearMode::Saved => {}
        }
        match mode {
            // On the second line, the grid would leave the first as it is.
            ClearMode::Above if self.cursor().0 == 1 => {
                self.term.grid_mut().reset_region(..Line(1));
                self.term.clear_screen(mode);
            }
            // Where it lies, without scrolling it out first.
            ClearMode::All => self.term.grid_mut().reset_region(..),
            ClearMode::Above | ClearMode::Below | ClearMode::Saved => self.term.clear_screen(mode),
        }
        self.just_printed = false;
    }

    fn decaln(&mut self) {
        self.set_scrolling_region(1, None);
        self.term.decaln();
        self.place(0, 0);
    }

    fn save_cursor_position(&mut self) {
        self.margins.saved[usize::from(self.is_alternate())] = self.to_save();
        self.term.save_cursor_position();
    }

    fn restore_cursor_position(&mut self) {
        let saved = self.margins.saved[usize::from(self.is_alternate())];
        let origin = PrivateMode::Named(NamedPrivateMode::Origin);
        if saved.origin {
            self.term.set_private_mode(origin);
        } else {
            self.term.unset_private_mode(origin);
        }
        self.set_active_charset(saved.charset);
        self.term.restore_cursor_position();
        self.just_printed = false;
    }

    fn set_scrolling_region(&mut self, top: usize, bottom: Option<usize>) {
        if self.margins.set_region(top, bottom) {
            self.term.set_scrolling_region(top, bottom);
        }
        self.just_printed = false;
    }

    fn set_horizontal_tabstop(&mut self) {
        self.margins.set_tab(self.cursor().1);
        self.term.set_horizontal_tabstop();
    }

    fn clear_tabs(&mut self, mode: TabulationClearMode) {
        match mode {
            TabulationClearMode::Current => self.margins.clear_tab(self.cursor().1),
            TabulationClearMode::All => self.margins.clear_tabs(),
        }
        self.term.clear_tabs(mode);
    }

    fn terminal_attribute(&mut self, attribute: Attr) {
        let flags = &mut self.term.grid_mut().cursor.template.flags;
        match attribute {
            Attr::BlinkSlow | Attr::BlinkFast => flags.insert(BLINK),
            Attr::CancelBlink => flags.remove(BLINK),
            attribute => self.term.terminal_attribute(attribute),
        }
    }

    fn configure_charset(&mut self, index: CharsetIndex, charset: StandardCharset) {
        self.term.configure_charset(index, charset);
    }

    fn set_active_charset(&mut self, index: CharsetIndex) {
        self.margins.charset = index;
        self.term.set_active_charset(index);
    }

    /// The grid never learns of insert mode: it loses a wide character half of which it shifts.
    fn set_mode(&mut self, mode: Mode) {
        match mode {
            Mode::Named(NamedMode::Insert) => self.modes.inserts = true,
            mode => self.term.set_mode(mode),
        }
    }

    fn unset_mode(&mut self, mode: Mode) {
        match mode {
            Mode::Named(NamedMode::Insert) => self.modes.inserts = false,
            mode => self.term.unset_mode(mode),
        }
    }

    fn set_private_mode(&mut self, mode: PrivateMode) {
        match mode.raw() {
            by if ALTERNATE.contains(&by) => self.enter_alternate(by),
            1048 => self.save_cursor_position(),
            6 => self.term.set_private_mode(mode),
            7 => {
                // What was written while nothing wrapped does not wrap now.
                let wrapped = self.wraps();
                self.term.set_private_mode(mode);
                self.term.grid_mut().cursor.input_needs_wrap &= wrapped;
            }
            number => drop(self.modes.set(number, true)),
        }
        self.just_printed = false;
    }

    fn unset_private_mode(&mut self, mode: PrivateMode) {
        match mode.raw() {
            by if ALTERNATE.contains(&by) => self.leave_alternate(by),
            1048 => self.restore_cursor_position(),
            6 => {
                self.term.unset_private_mode(mode);
                self.place(0, 0);
            }
            7 => self.term.unset_private_mode(mode),
            number => drop(self.modes.set(number, false)),
        }
        self.just_printed = false;
    }

    fn reset_state(&mut self) {
        let (columns, lines) = (self.term.grid().columns(), self.term.grid().screen_lines());
        self.leave_alternate(47);
        self.term.reset_state();
        self.modes.reset();
        self.margins = Margins::new(columns, lines);
        self.just_printed = false;
    }

    fn set_keypad_application_mode(&mut self) {
        self.modes.application_keypad = true;
    }

    fn unset_keypad_application_mode(&mut self) {
        self.modes.application_keypad = false;
    }

    fn set_cursor_style(&mut self, style: Option<CursorStyle>) {
        self.modes.set_cursor_style(style);
    }

    fn set_modify_other_keys(&mut self, mode: ModifyOtherKeys) {
        self.modes.set_modify_other_keys(mode);
    }

    fn push_keyboard_mode(&mut self, mode: KeyboardModes) {
        self.modes.push_keyboard(self.is_alternate(), mode);
    }

    fn pop_keyboard_modes(&mut self, count: u16) {
        self.modes.pop_keyboard(self.is_alternate(), count);
    }

    fn set_keyboard_mode(&mut self, mode: KeyboardModes, apply: KeyboardModesApplyBehavior) {
        self.modes.set_keyboard(self.is_alternate(), mode, apply);
    }

    fn set_title(&mut self, title: Option<String>) {
        self.modes.names.set_title(title);
    }

    fn push_title(&mut self) {
        self.modes.names.push_title();
    }

    fn pop_title(&mut self) {
        self.modes.names.pop_title();
    }

    fn set_hyperlink(&mut self, link: Option<Hyperlink>) {
        self.modes.names.set_link(link);
    }

    fn set_color(&mut self, index: usize, color: Rgb) {
        self.term.set_color(index, color);
    }

    fn reset_color(&mut self, index: usize) {
        self.term.reset_color(index);
    }

    fn identify_terminal(&mut self, intermediate: Option<char>) {
        match intermediate {
            None => self.ask(Query::Attributes),
            Some('>') => self.ask(Query::SecondaryAttributes),
            Some(_) => {}
        }
    }

    fn device_status(&mut self, number: usize) {
        match number {
            5 => self.ask(Query::Status),
            6 => {
                let (line, column) = self.cursor();
                let top = if self.has_origin() { self.margins.region.start } else { 0 };
                self.ask(Query::Cursor { row: line.saturating_sub(top) + 1, column: column + 1 });
            }
            _ => {}
        }
    }
}
