//! The attributes of a character, as the sequence that sets them (SGR).

use alacritty_terminal::{
    term::cell::{Cell, Flags},
    vte::ansi::{Color, NamedColor},
};

use super::{handler::BLINK, modes::put};

/// What a character looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pen {
    foreground: Color,
    background: Color,
    flags: Flags,
    underline: Option<Color>,
}

/// Each attribute and the parameter that sets it, after ECMA-48 and, for the underlines, kitty.
const ATTRIBUTES: [(Flags, &str); 12] = [
    (Flags::BOLD, "1"),
    (Flags::DIM, "2"),
    (Flags::ITALIC, "3"),
    (Flags::UNDERLINE, "4"),
    (Flags::DOUBLE_UNDERLINE, "4:2"),
    (Flags::UNDERCURL, "4:3"),
    (Flags::DOTTED_UNDERLINE, "4:4"),
    (Flags::DASHED_UNDERLINE, "4:5"),
    (BLINK, "5"),
    (Flags::INVERSE, "7"),
    (Flags::HIDDEN, "8"),
    (Flags::STRIKEOUT, "9"),
];

impl Pen {
    /// The attributes of a cell.
    pub(super) fn of(cell: &Cell) -> Self {
        let known = ATTRIBUTES.iter().fold(Flags::empty(), |all, (flag, _)| all | *flag);
        Self {
            foreground: cell.fg,
            background: cell.bg,
            flags: cell.flags & known,
            underline: cell.underline_color(),
        }
    }

    /// The bytes that set it, whatever was set before.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(b"\x1b[0");
        for (flag, parameter) in ATTRIBUTES {
            if self.flags.contains(flag) {
                put(out, format_args!(";{parameter}"));
            }
        }
        color(out, self.foreground, 30);
        color(out, self.background, 40);
        match self.underline {
            Some(Color::Indexed(index)) => put(out, format_args!(";58:5:{index}")),
            Some(Color::Spec(rgb)) => {
                put(out, format_args!(";58:2::{}:{}:{}", rgb.r, rgb.g, rgb.b))
            }
            Some(Color::Named(_)) | None => {}
        }
        out.push(b'm');
    }
}

impl Default for Pen {
    fn default() -> Self {
        Self::of(&Cell::default())
    }
}

/// The parameters of a colour; `base` is 30 for the foreground, 40 for the background.
fn color(out: &mut Vec<u8>, color: Color, base: u16) {
    let extended = base + 8;
    match color {
        Color::Indexed(index) => put(out, format_args!(";{extended};5;{index}")),
        Color::Spec(rgb) => put(out, format_args!(";{extended};2;{};{};{}", rgb.r, rgb.g, rgb.b)),
        Color::Named(name) => match name as u16 {
            dark @ 0..8 => put(out, format_args!(";{}", base + dark)),
            bright @ 8..16 => put(out, format_args!(";{}", base + 60 + bright - 8)),
            _ => debug_assert!(matches!(name, NamedColor::Foreground | NamedColor::Background)),
        },
    }
}

#[cfg(test)]
mod tests {
    use alacritty_terminal::vte::ansi::Rgb;

    use super::*;

    fn written(cell: &Cell) -> String {
        let mut out = Vec::new();
        Pen::of(cell).write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_attribute_and_colour_has_its_parameter() {
        assert_eq!(written(&Cell::default()), "\x1b[0m");
        let mut cell = Cell {
            fg: Color::Named(NamedColor::Red),
            bg: Color::Named(NamedColor::BrightBlue),
            flags: Flags::BOLD | Flags::UNDERCURL | BLINK | Flags::WRAPLINE | Flags::WIDE_CHAR,
            ..Cell::default()
        };
        assert_eq!(written(&cell), "\x1b[0;1;4:3;5;31;104m");
        cell.fg = Color::Indexed(9);
        cell.bg = Color::Spec(Rgb { r: 1, g: 2, b: 3 });
        cell.flags = Flags::INVERSE | Flags::HIDDEN | Flags::STRIKEOUT | Flags::DIM | Flags::ITALIC;
        cell.set_underline_color(Some(Color::Indexed(4)));
        assert_eq!(written(&cell), "\x1b[0;2;3;7;8;9;38;5;9;48;2;1;2;3;58:5:4m");
    }
}
