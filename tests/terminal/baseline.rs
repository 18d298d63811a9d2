//! Whoever is shown the baseline and then the live bytes sees what it would have seen from the beginning.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use proptest::prelude::*;
use st2_tools::{host::pty::Size, terminal::screen::Screen};

use crate::{
    judge::{Judge, cuts},
    random::sequences,
};

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

/// Cuts `text` at these parts of its length: a client that comes there sees what one from the beginning sees, then and
/// until the end.
fn check(text: &str, places: &[f64]) -> Result<(), TestCaseError> {
    let bytes = text.as_bytes();
    let mut both =
        Both { cells: false, witness: Judge::new(14, 6, false), ..Both::new(bytes, 14, 6) };
    let mut cuts: Vec<usize> =
        places.iter().map(|place| (place * bytes.len() as f64) as usize).collect();
    cuts.sort_unstable();
    let mut newcomers = Vec::new();
    for cut in cuts {
        both.go_on(cut);
        let newcomer = both.newcomer();
        let difference = difference(&both.witness.verdict(), &newcomer.verdict());
        prop_assert_eq!(difference, None, "at {}", cut);
        newcomers.push((cut, newcomer));
    }
    both.go_on(bytes.len());
    for (cut, mut newcomer) in newcomers {
        newcomer.feed(&bytes[cut..]);
        let difference = difference(&both.witness.verdict(), &newcomer.verdict());
        prop_assert_eq!(difference, None, "from {}", cut);
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_baseline_in_the_middle_of_anything_changes_nothing(text in sequences(), places in prop::collection::vec(0.0..1.0, 4)) {
        check(&text, &places)?;
    }
}
