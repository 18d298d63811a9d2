//! Whoever is shown the baseline and then the live bytes sees what it would have seen from the beginning.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use proptest::prelude::*;
use st2_tools::{host::pty::Size, terminal::screen::Screen};

use crate::judge::{Judge, cuts};

/// What a program wrote to a terminal of a size.
struct Recording {
    name: String,
    columns: u16,
    rows: u16,
    bytes: Vec<u8>,
}

fn recordings() -> Vec<Recording> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let files = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    let recordings = files.filter_map(|path| {
        let name = path.file_name()?.to_str()?.to_owned();
        let (columns, rows) = name.rsplit_once('-')?.1.split_once('x')?;
        let (columns, rows) = (columns.parse().ok()?, rows.parse().ok()?);
        Some(Recording { columns, rows, bytes: fs::read(&path).ok()?, name })
    });
    recordings.collect()
}

/// Shows how two verdicts differ.
fn difference(wanted: &[String], got: &[String]) -> Option<String> {
    let at = wanted.iter().zip(got).position(|(wanted, got)| wanted != got)?;
    Some(format!("wanted {:?}\n   got {:?}", wanted[at], got[at]))
}

/// The model in the broker, and a client that has seen everything.
struct Both<'a> {
    bytes: &'a [u8],
    size: (u16, u16),
    cells: bool,
    screen: Screen,
    drawn: usize,
    witness: Judge,
    seen: usize,
}

impl<'a> Both<'a> {
    fn new(bytes: &'a [u8], columns: u16, rows: u16) -> Self {
        let cells = !bytes.windows(3).any(|three| three == b"\x1b(0" || three == b"\x1b)0");
        Self {
            bytes,
            size: (columns, rows),
            cells,
            screen: Screen::new(Size::new(columns, rows)),
            drawn: 0,
            witness: Judge::new(columns, rows, cells),
            seen: 0,
        }
    }

    /// Lets both go on to this byte.
    fn go_on(&mut self, to: usize) {
        let late = Instant::now() + Duration::from_secs(1000);
        self.drawn += self.screen.draw(&self.bytes[self.drawn..to], false, late);
        self.witness.feed(&self.bytes[self.seen..to]);
        self.seen = to;
    }

    /// A client that attaches now.
    fn newcomer(&mut self) -> Judge {
        let (columns, rows) = self.size;
        let mut newcomer = Judge::new(columns, rows, self.cells);
        newcomer.feed(&self.screen.baseline());
        newcomer.feed(&self.bytes[self.drawn..self.seen]);
        newcomer
    }
}

#[test]
fn recordings_of_real_programs_are_there() {
    let names: Vec<_> = recordings().into_iter().map(|recording| recording.name).collect();
    for program in
        ["lazygit", "vim", "less", "htop", "bash", "git-diff", "progress", "dialog", "tmux"]
    {
        assert!(
            names.iter().any(|name| name.starts_with(program)),
            "{program} is not in {names:?}"
        );
    }
}

#[test]
fn a_baseline_in_the_middle_of_a_real_program_changes_nothing() {
    let cases: usize =
        std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    let mut differing = Vec::new();
    for Recording { name, columns, rows, bytes } in recordings() {
        let mut both = Both::new(&bytes, columns, rows);
        for cut in cuts(bytes.len(), cases) {
            both.go_on(cut);
            let newcomer = both.newcomer();
            if let Some(how) = difference(&both.witness.verdict(), &newcomer.verdict()) {
                differing.push(format!("{name} at {cut}: {how}"));
            }
        }
    }
    assert!(
        differing.is_empty(),
        "{} screens differ\n{}",
        differing.len(),
        differing[..differing.len().min(5)].join("\n")
    );
}

/// What a client saw at a cut and what it sees at the end, both like one that saw everything.
#[test]
fn a_client_that_came_in_the_middle_ends_like_one_from_the_beginning() {
    for Recording { name, columns, rows, bytes } in recordings() {
        let mut both = Both::new(&bytes, columns, rows);
        let mut newcomers = Vec::new();
        for cut in cuts(bytes.len(), 5) {
            both.go_on(cut);
            newcomers.push((cut, both.newcomer()));
        }
        let wanted = both.witness.verdict();
        for (cut, mut newcomer) in newcomers {
            newcomer.feed(&bytes[cut..]);
            assert_eq!(difference(&wanted, &newcomer.verdict()), None, "{name} from {cut}");
        }
    }
}

/// Text and sequences that terminals agree about. They do not about what happens to a cursor past the last column, so
/// that what edits or moves is done from a position.
fn output() -> impl Strategy<Value = String> {
    let modes = prop::sample::select(vec![1, 25, 1000, 1006, 2004]);
    let sgr = prop::sample::select(vec![
        "0",
        "22;1",
        "22;2",
        "3",
        "4",
        "7",
        "9",
        "22",
        "23",
        "24",
        "27",
        "29",
        "31",
        "39",
        "42",
        "49",
        "95",
        "106",
        "38;5;99",
        "48;5;7",
        "38;2;1;2;3",
        "48;2;4;5;6",
    ]);
    let anywhere = prop::sample::select(vec![
        "\r\n",
        "\r",
        "\x1b[r",
        "\x1b[2;4r",
        "\x1b[3;6r",
        "\x1b=",
        "\x1b>",
        "\x1b[3 q",
        "\x1b]2;title\x07",
        "\x1b]0;other\x1b\\",
        "\x1bPignored\x1b\\",
        "\x1bc",
    ]);
    let placed = prop::sample::select(vec![
        "\x08",
        "\x1b[?6l\x1b[3;3H\x1bM",
        "\x1b8",
        "\x1bH",
        "\x1b[g",
        "\x1b[3g",
        "\x1b[J",
        "\x1b[1J",
        "\x1b[2J",
        "\x1b[K",
        "\x1b[1K",
        "\x1b[2K",
        "\x1b[#A",
        "\x1b[#B",
        "\x1b[#C",
        "\x1b[#D",
        "\x1b[#E",
        "\x1b[#F",
        "\x1b[#G",
        "\x1b[#d",
        "\x1b[#@",
        "\x1b[#P",
        "\x1b[#X",
        "\x1b[r\x1b[3;2H\x1b[#L",
        "\x1b[r\x1b[3;2H\x1b[#M",
        "\x1b[#S",
        "\x1b[#T",
    ]);
    let place = (1_u16..7, 1_u16..14).prop_map(|(row, column)| format!("\x1b[{row};{column}H"));
    let piece = prop_oneof![
        8 => "[a-zA-Z0-9 ]{1,15}",
        2 => "[é─ñ█]{1,6}",
        2 => "\r\x1b\\[\\?1049h[a-z]{1,20}\x1b\\[7;3[1-7]m\x1b\\[2;5H[a-z]{1,20}\x1b\\[\\?25l\x1b\\[\\?1049l",
        4 => anywhere.prop_map(str::to_owned),
        8 => (place, placed, 1_u16..12).prop_map(|(place, what, n)| place + &what.replace('#', &n.to_string())),
        4 => sgr.prop_map(|sgr| format!("\x1b[{sgr}m")),
        2 => (modes, any::<bool>()).prop_map(|(n, on)| format!("\x1b[?{n}{}", if on { 'h' } else { 'l' })),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn a_baseline_in_the_middle_of_anything_changes_nothing(text in output(), places in prop::collection::vec(0.0..1.0, 4)) {
        let bytes = text.as_bytes();
        let mut both = Both { cells: false, witness: Judge::new(14, 6, false), ..Both::new(bytes, 14, 6) };
        let mut cuts: Vec<usize> = places.iter().map(|place: &f64| (place * bytes.len() as f64) as usize).collect();
        cuts.sort_unstable();
        let mut newcomers = Vec::new();
        for cut in cuts {
            both.go_on(cut);
            let newcomer = both.newcomer();
            prop_assert_eq!(difference(&both.witness.verdict(), &newcomer.verdict()), None, "at {}", cut);
            newcomers.push((cut, newcomer));
        }
        both.go_on(bytes.len());
        for (cut, mut newcomer) in newcomers {
            newcomer.feed(&bytes[cut..]);
            prop_assert_eq!(difference(&both.witness.verdict(), &newcomer.verdict()), None, "from {}", cut);
        }
    }
}
