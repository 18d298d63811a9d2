//! A screen that was fed a baseline is in every respect the one that the baseline was made of, and stays so.
//!
//! Terminals disagree about many of these sequences, so that no other emulator can judge all of them. Here the model
//! judges itself: not by what it paints, which may lack what the baseline lacks, but by all that it knows.

use std::fmt::Write;

use alacritty_terminal::grid::{Cursor, Grid};

use super::*;
use crate::terminal::screen::pen::Pen;

/// What happens to a screen.
#[derive(Debug, Clone)]
enum Step {
    Output(String),
    Resize(u16, u16),
}

impl Step {
    /// REP repeats the character right before it; where there is none, or none that was shown, each terminal does
    /// something else (ECMA-48, 8.3.103).
    fn is_defined(&self, before: Option<&Self>, screen: &Screen) -> bool {
        let repeats = |text: &str| text.starts_with("\x1b[") && text.ends_with('b');
        let is_text = |text: &str| !text.chars().any(char::is_control);
        !matches!(self, Self::Output(text) if repeats(text))
            || screen.tracked.just_printed
                && matches!(before, Some(Self::Output(text)) if is_text(text))
    }

    fn happen(&self, screen: &mut Screen) {
        match self {
            Self::Output(text) => assert_eq!(screen.draw(text.as_bytes(), true, far()), text.len()),
            Self::Resize(columns, rows) => screen.resize(Size::new(*columns, *rows)),
        }
    }
}

fn cursor(cursor: &Cursor<Cell>) -> String {
    let Cursor { point, template, charsets, input_needs_wrap } = cursor;
    format!("{point:?} {:?} {charsets:?} wraps {input_needs_wrap}", Pen::of(template))
}

/// The rows of a grid, each cell that is not blank with all that can be seen of it. Whether a row goes on on the next
/// one cannot be seen but in another width: [`a_newcomer_breaks_the_lines_of_another_width_alike`].
fn rows(grid: &Grid<Cell>) -> Vec<String> {
    let lines = 0..i32::try_from(grid.screen_lines()).unwrap();
    let row = |line| {
        let (row, mut text) = (&grid[Line(line)], String::new());
        for column in 0..row.len() {
            let cell = &row[Column(column)];
            let wide = cell.flags & (Flags::WIDE_CHAR | Flags::WIDE_CHAR_SPACER);
            let (pen, more) = (Pen::of(cell), cell.zerowidth().unwrap_or_default());
            if cell.c != ' ' || pen != Pen::default() || !wide.is_empty() || !more.is_empty() {
                write!(text, "{column} {}{more:?} {wide:?} {pen:?} ", cell.c).unwrap();
            }
        }
        text
    };
    lines.map(row).collect()
}

/// All that a screen knows.
fn state(screen: &mut Screen) -> Vec<String> {
    let tracked = &mut screen.tracked;
    let mut state = vec![
        format!("{:?} {:?}", tracked.term.mode(), tracked.alternate),
        format!("{:?}", tracked.margins),
        format!("{:?}", tracked.modes),
        cursor(&tracked.term.grid().cursor),
        cursor(&tracked.term.grid().saved_cursor),
    ];
    state.extend(rows(tracked.term.grid()));
    if let Some(by) = tracked.alternate {
        let shown = tracked.term.grid().clone();
        tracked.term.swap_alt();
        let saved = if by == 1049 { &tracked.term.grid().cursor } else { &tracked.primary_saved };
        state.push(cursor(saved));
        state.extend(rows(tracked.term.grid()));
        tracked.term.swap_alt();
        *tracked.term.grid_mut() = shown;
    }
    state
}

/// Everything that the model follows, in any order. `#` is a number.
fn output() -> impl Strategy<Value = String> {
    const SEQUENCES: &[&str] = &[
        // Where the cursor is.
        "\r",
        "\n",
        "\r\n",
        "\x08",
        "\t",
        "\x0b",
        "\x1b[#Z",
        "\x1b[#I",
        "\x1bM",
        "\x1bD",
        "\x1bE",
        "\x1b[#;#H",
        "\x1b[#G",
        "\x1b[#d",
        "\x1b[#A",
        "\x1b[#B",
        "\x1b[#C",
        "\x1b[#D",
        "\x1b[#E",
        "\x1b[#F",
        "\x1b[#;#r",
        "\x1b[r",
        // What is kept beside it.
        "\x1b7",
        "\x1b8",
        "\x1b[s",
        "\x1b[u",
        "\x1bH",
        "\x1b[g",
        "\x1b[3g",
        "\x1b[?6h",
        "\x1b[?6l",
        "\x1b[?7h",
        "\x1b[?7l",
        "\x1b[4h",
        "\x1b[4l",
        "\x1b[20h",
        "\x1b[20l",
        "\x1b(0",
        "\x1b(B",
        "\x1b)0",
        "\x1b)B",
        "\x1b*0",
        "\x1b+0",
        "\x0e",
        "\x0f",
        // What is on the screen.
        "\x1b[J",
        "\x1b[1J",
        "\x1b[2J",
        "\x1b[K",
        "\x1b[1K",
        "\x1b[2K",
        "\x1b[#@",
        "\x1b[#P",
        "\x1b[#X",
        "\x1b[#L",
        "\x1b[#M",
        "\x1b[#S",
        "\x1b[#T",
        "\x1b[#b",
        "\x1b#8",
        "\x1bc",
        "\x1b[!p",
        // Which screen it is.
        "\x1b[?47h",
        "\x1b[?47l",
        "\x1b[?1047h",
        "\x1b[?1047l",
        "\x1b[?1048h",
        "\x1b[?1048l",
        "\x1b[?1049h",
        "\x1b[?1049l",
        // What characters look like.
        "\x1b[m",
        "\x1b[1;31m",
        "\x1b[2;3m",
        "\x1b[4:3;58:5:9m",
        "\x1b[5;7m",
        "\x1b[8;9m",
        "\x1b[38;5;99m",
        "\x1b[48;2;1;2;3m",
        "\x1b[44m",
        "\x1b[49m",
        "\x1b[22;24;25m",
        "\x1b[97;107m",
        // What it tells and sends.
        "\x1b=",
        "\x1b>",
        "\x1b[?1h",
        "\x1b[?1l",
        "\x1b[?25h",
        "\x1b[?25l",
        "\x1b[?1000h",
        "\x1b[?1000l",
        "\x1b[?1002h",
        "\x1b[?1002l",
        "\x1b[?1003h",
        "\x1b[?1003l",
        "\x1b[?1006h",
        "\x1b[?1006l",
        "\x1b[?1004h",
        "\x1b[?2004h",
        "\x1b[?2004l",
        "\x1b[?5h",
        "\x1b[?45h",
        "\x1b[# q",
        "\x1b[>#u",
        "\x1b[=#u",
        "\x1b[<#u",
        "\x1b[>4;1m",
        "\x1b]2;title\x07",
        "\x1b]2;\x07",
        "\x1b[22t",
        "\x1b[23t",
        "\x1b]4;#;#010203\x07",
        "\x1b]104\x07",
        "\x1b]11;#fff\x07",
        "\x1b]8;;file:///x\x07",
        "\x1b]8;;\x07",
    ];
    let sequence =
        (prop::sample::select(SEQUENCES), 1_u16..12, 1_u16..6).prop_map(|(text, n, m)| {
            text.replacen('#', &n.to_string(), 1).replacen('#', &m.to_string(), 1)
        });
    prop_oneof![
        3 => "[a-z ]{1,12}",
        2 => "[a-zé漢字─]{1,7}",
        1 => "[a漢]\u{301}\u{302}?",
        8 => sequence,
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        40 => output().prop_map(Step::Output),
        1 => (2_u16..14, 1_u16..7).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
    ];
    prop::collection::vec(step, 0..40)
}

/// The first of what differs.
fn difference(newcomer: &mut Screen, witness: &mut Screen) -> Option<String> {
    let (newcomer, witness) = (state(newcomer), state(witness));
    let at = newcomer.iter().zip(&witness).position(|(newcomer, witness)| newcomer != witness)?;
    Some(format!("newcomer {}\n witness {}", newcomer[at], witness[at]))
}

proptest! {
    #[test]
    fn a_newcomer_knows_all_that_a_witness_knows_and_goes_on_alike(before in steps(), after in prop::collection::vec(output(), 0..40)) {
        let mut witness = Screen::new(Size::new(10, 4));
        let mut last = None;
        for step in before {
            if step.is_defined(last.as_ref(), &witness) {
                step.happen(&mut witness);
                last = Some(step);
            }
        }
        let mut newcomer = Screen::new(witness.size());
        let baseline = witness.baseline();
        newcomer.draw(&baseline, true, far());
        prop_assert_eq!(difference(&mut newcomer, &mut witness), None, "at once, by {:?}", String::from_utf8_lossy(&baseline));
        for step in after.into_iter().map(Step::Output) {
            if !step.is_defined(last.as_ref(), &witness) {
                continue;
            }
            step.happen(&mut newcomer);
            step.happen(&mut witness);
            prop_assert_eq!(difference(&mut newcomer, &mut witness), None, "after {:?}", step);
            last = Some(step);
        }
    }
}

#[test]
fn a_wide_character_that_did_not_fit_is_not_the_one_that_is_repeated() {
    for text in [" a a    a\x1b[?7la\u{301}漢", "\x1b[10G\x1b[?7l漢"] {
        let mut witness = Screen::new(Size::new(10, 2));
        witness.draw(text.as_bytes(), true, far());
        assert!(!witness.tracked.just_printed);
        let mut newcomer = Screen::new(witness.size());
        newcomer.draw(&witness.baseline(), true, far());
        assert_eq!(difference(&mut newcomer, &mut witness), None, "{text:?}");
    }
}

/// Text of which lines are broken by the width alone.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zé漢字]{1,25}", 2 => "\r\n", 1 => Just("\x1b[31m".to_owned()), 1 => Just("\x1b[m".to_owned()),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// The cursor is moved first: painting may write the character before it again, and a wide one that had not fitted
    /// on the row before then looks like one that begins a row.
    #[test]
    fn a_newcomer_breaks_the_lines_of_another_width_alike(
        before in text(),
        sizes in prop::collection::vec((2_u16..30, 1_u16..8, text()), 1..4),
    ) {
        let mut witness = drawn(12, 5, format!("{before}\r").as_bytes());
        let mut newcomer = drawn(12, 5, &witness.baseline());
        for (columns, rows, more) in sizes {
            for step in [Step::Resize(columns, rows), Step::Output(more)] {
                step.happen(&mut newcomer);
                step.happen(&mut witness);
                prop_assert_eq!(difference(&mut newcomer, &mut witness), None, "after {:?}", step);
            }
        }
    }
}
