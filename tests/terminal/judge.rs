//! Emulators that are not the broker's, as judges of what two streams of bytes show.

use avt::ScreenKind;
use proptest::{
    prelude::prop,
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};

/// All that can be seen of a terminal, and all that decides what it does next.
pub struct Judge {
    /// Cells with their attributes, both screens, cursor, saved cursor, margins, tab stops, character sets.
    avt: avt::Terminal,
    /// What it sends for keys, pastes and the mouse; title; cells with combining characters.
    vt100: vt100::Parser<Title>,
    /// Whether vt100 judges cells too. It knows no character sets and no background of what is inserted, and wraps
    /// after a line feed. Its cursor is not asked: new margins take it to the first row between them, not home.
    cells: bool,
    /// Bytes of a character that is not whole.
    rest: Vec<u8>,
}

#[derive(Default)]
struct Title(String);

impl vt100::Callbacks for Title {
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.0 = String::from_utf8_lossy(title).into_owned();
    }
}

impl Judge {
    /// A reset terminal.
    pub fn new(columns: u16, rows: u16, cells: bool) -> Self {
        let size = |count: u16| std::num::NonZero::new(count).unwrap();
        Self {
            avt: avt::Terminal::new(columns.into(), rows.into()).unwrap(),
            vt100: vt100::Parser::new_with_callbacks(
                size(rows),
                size(columns),
                0,
                Title::default(),
            ),
            cells,
            rest: Vec::new(),
        }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.vt100.process(bytes);
        self.rest.extend(bytes);
        let whole = match std::str::from_utf8(&self.rest) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.rest.len(),
        };
        let text: Vec<u8> = self.rest.drain(..whole).collect();
        // avt gives combining characters a cell of their own; vt100 judges them.
        let combining = |c: char| ('\u{300}'..'\u{370}').contains(&c);
        self.avt.feed(String::from_utf8_lossy(&text).replace(combining, "").as_str());
    }

    /// What is judged, to be compared.
    pub fn verdict(&self) -> Vec<String> {
        let screen = self.vt100.screen();
        let modes = format!(
            "{:?} keys {} keypad {} paste {} mouse {:?} {:?} hidden {} style {:?}",
            self.vt100.callbacks().0,
            screen.application_cursor(),
            screen.application_keypad(),
            screen.bracketed_paste(),
            screen.mouse_protocol_mode(),
            screen.mouse_protocol_encoding(),
            screen.hide_cursor(),
            screen.cursor_style(),
        );
        let mut verdict = vec![modes, self.state(), format!("unfinished {:?}", self.rest)];
        verdict.push(format!("{:?} {:?}", self.avt.cursor(), self.avt.active_screen_kind()));
        let screens = [self.avt.screen(), self.avt.primary_screen()];
        verdict.extend(screens.into_iter().flat_map(|screen| screen.visible_lines().map(line)));
        if self.cells {
            verdict.extend((0..screen.size().0.get()).map(|row| self.row(row)));
        }
        verdict
    }

    /// All that avt knows but for the cells: what is left when both screens are cleared.
    fn state(&self) -> String {
        let (columns, rows) = self.avt.size();
        let mut copy = avt::Terminal::new(columns, rows).unwrap();
        copy.feed([self.avt.dump().as_str(), "\x18\x1b[2J"]);
        if self.avt.active_screen_kind() == ScreenKind::Alternate {
            copy.feed("\x1b[?1047l\x1b[2J");
        }
        // avt does not restore a character set that is not in use with the cursor; xterm and VTE do.
        copy.dump().replace("\x1b)0", "")
    }

    /// A row of cells; written and unwritten blanks look the same.
    fn row(&self, row: u16) -> String {
        let screen = self.vt100.screen();
        let cells = (0..screen.size().1.get()).filter_map(|column| screen.cell(row, column));
        let shown = cells.map(|cell| match cell.contents() {
            "" | " " => format!(" {:?}", cell.bgcolor()),
            text => format!(
                "{text} {:?} {:?} {} {} {} {} {}",
                cell.fgcolor(),
                cell.bgcolor(),
                cell.bold(),
                cell.dim(),
                cell.italic(),
                cell.underline(),
                cell.inverse()
            ),
        });
        shown.collect::<Vec<_>>().join("|")
    }
}

/// A row of avt's. Of a blank, what cannot be seen is not compared: erased cells have all of the pen there, in the
/// broker and in xterm its background.
fn line(line: &avt::Line) -> String {
    let cells = line.cells().iter().map(|cell| match (cell.char(), cell.pen()) {
        (' ', pen) => format!(" {:?}", pen.background()),
        (c, pen) => format!("{c}{} {pen:?}", cell.width()),
    });
    cells.collect::<Vec<_>>().join("|")
}

/// Where to cut so many bytes: at `count` places, others each time, and at both ends.
pub fn cuts(length: usize, count: usize) -> Vec<usize> {
    let mut runner = TestRunner::default();
    let places = prop::collection::vec(0..=length, count);
    let mut cuts = places.new_tree(&mut runner).unwrap().current();
    cuts.extend([0, length]);
    cuts.sort_unstable();
    cuts
}
