//! Output that is written to make a reader hold much, or stop: what is held of it is bounded, and reading goes on.

use proptest::prelude::*;

use super::{
    Bounds, MIN_BYTES, Transcript,
    line::{Cell, Line},
    parser::Parser,
    row::Row,
    tests::{anything, read},
    writer::WINDOW,
};

/// Output that makes much of little, and how often it is repeated.
const GREEDY: &[(&str, &[u8], usize)] = &[
    ("wide moves to other lines", b"\x1b[H\x1b[1000Gx", 8000),
    ("wide moves within a line", b"\x1b[999Cx", 8000),
    ("wide moves back", b"\x1b[1000Gx\rx", 8000),
    ("moves by columns of lines", b"\x1b[1;1000Hx", 8000),
    ("inserted blanks", b"x\r\x1b[999@", 8000),
    ("inserted blanks on other lines", b"xy\x08\x1b[999@\x0b", 8000),
    ("repeated characters", b"x\x1b[65535b", 8000),
    ("repeated characters on other lines", "漢\x1b[65535b\x0b".as_bytes(), 8000),
    ("characters on other lines", b"x\x0b", 40_000),
    ("erased characters", b"x\x1b[500b\x1b[1K\x0b", 8000),
    ("what could be of a secret", b"\x1b[Hhttp://\x1b[1000Gx", 8000),
    ("a line without end", b"x", 100_000),
    ("a secret without end", b"token=\x1b[9bx", 8000),
    ("a title without end", b"\x1b]0;x", 100_000),
    ("a device control string without end", b"\x1bPx", 100_000),
    ("parameters without end", b"\x1b[1;", 100_000),
    ("a C1 string without end", "\u{9d}x".as_bytes(), 50_000),
    ("beginnings of characters", b"\xf0\x9f", 50_000),
];

/// How much is held at most while output is taken in pieces of half a KiB, in bytes: cells and the window, each with as much again
/// for the vector that it grows in, and the rows of one piece. The string that the crate's parser holds comes to it.
const MAX_HELD: usize = 2 * (Line::MAX_CELLS * size_of::<Cell>() + WINDOW) + (128 << 10);
/// As [`MAX_HELD`], between two lines.
const MAX_HELD_BETWEEN: usize = 48 << 10;

/// What a parser and the rows that it makes of some output hold at most at any time, in bytes, and after the output.
fn held(output: &[u8]) -> (usize, Parser) {
    let mut parser = Parser::default();
    let mut most = 0;
    for piece in output.chunks(512) {
        parser.feed(piece);
        most = most.max(parser.held());
        let rows = parser.writer().take_rows();
        assert!(rows.iter().all(|row| row.text.capacity() == row.text.len()));
    }
    (most, parser)
}

#[test]
fn what_is_held_is_bounded_whatever_is_written() {
    for (name, piece, count) in GREEDY {
        let (most, mut parser) = held(&piece.repeat(*count));
        assert!(most <= MAX_HELD, "{name}: {most} bytes");
        parser.feed(b"\x18\x1b\\\n");
        let _ = parser.writer().take_rows();
        assert!(parser.held() <= MAX_HELD_BETWEEN, "{name}: {}", parser.held());
        parser.finish();
        let _ = parser.writer().take_rows();
        assert_eq!(parser.held(), 0, "{name}");
    }
}

#[test]
fn cells_are_bounded_at_every_byte() {
    for (name, piece, _) in GREEDY {
        let mut parser = Parser::default();
        for byte in piece.repeat(3000) {
            parser.feed(&[byte]);
            let cells = parser.writer().line().0.cells().len();
            assert!(cells <= Line::MAX_CELLS, "{name}: {cells} cells");
            let _ = parser.writer().take_rows();
        }
    }
}

/// Reads all that there is in steps, and asserts that each comes further.
fn read_on(transcript: &mut Transcript, bounds: Bounds) -> String {
    let (mut cursor, mut all) = (0, String::new());
    loop {
        let piece = transcript.read(cursor, bounds);
        assert!(piece.lost == 0 && piece.text.len() <= bounds.bytes);
        all.push_str(&piece.text);
        if !piece.more {
            assert!(piece.next <= transcript.position(), "a cursor is ahead of the output");
            return all;
        }
        assert!(piece.next > cursor && !piece.text.is_empty(), "stays at {cursor}: {piece:?}");
        cursor = piece.next;
    }
}

/// As [`read_on`], of output that is fed in pieces which are settled, and then again at once.
fn assert_goes_on(pieces: &[&[u8]], bounds: Bounds) {
    let mut transcript = Transcript::new(64 << 20);
    for piece in pieces {
        transcript.feed(transcript.position(), piece);
        let _ = transcript.read(transcript.position(), bounds);
    }
    let before = read_on(&mut transcript, bounds);
    transcript.finish();
    let all = read_on(&mut transcript, bounds);
    assert!(all.starts_with(&before));
    let whole = Bounds { lines: usize::MAX, bytes: usize::MAX };
    assert_eq!(transcript.read(0, whole).text, all);
    assert_eq!(read(pieces, true), all);
}

const SMALL: Bounds = Bounds { lines: usize::MAX, bytes: MIN_BYTES };

#[test]
fn a_long_line_after_many_repeated_characters_can_be_read() {
    let mut bytes = b"A".to_vec();
    bytes.extend(b"\x1b[255b".repeat(22));
    bytes.extend(b"\x1b[H");
    bytes.extend(b"B".repeat(2000));
    assert_goes_on(&[&bytes], SMALL);
}

#[test]
fn reading_goes_on_whatever_is_written() {
    for (_, piece, _) in GREEDY {
        let bytes = piece.repeat(3000 / piece.len());
        assert_goes_on(&[&bytes], SMALL);
        let (begin, end) = bytes.split_at(bytes.len() / 2);
        assert_goes_on(&[begin, end, b"\n"], SMALL);
    }
}

#[test]
fn the_last_byte_of_a_sequence_is_enough_for_what_it_makes() {
    for repeated in ["x", "─", "漢", "🙂"] {
        let begin = format!("{repeated}\x1b[65535");
        let ends: [&[&[u8]]; 4] = [&[], &[b"\n"], &[b"\x0b", b"x"], &[b"\r", b"y", b"\r", b"z"]];
        for end in ends {
            assert_goes_on(&[&[begin.as_bytes(), b"b"], end].concat(), SMALL);
        }
    }
}

#[test]
fn a_row_can_be_cut_wherever_it_has_a_byte() {
    for (text, bytes) in [("x".repeat(5000), 6), ("[redacted]x".repeat(500), 7), ("ab".into(), 9)] {
        let row = Row { begin: 100, end: 100 + bytes, text };
        let mut at = 0;
        while at < row.text.len() {
            let (to, next) = row.cut(at, MIN_BYTES);
            assert!(to > at && to - at <= MIN_BYTES && row.text.is_char_boundary(to));
            assert_eq!(row.text_from(next), to);
            at = to;
        }
    }
}

/// What is drawn with more text than bytes, or leaves lines that follow each other in other ways than by line feeds.
const DRAWING: &[&[u8]] = &[
    b"\x1b[255b",
    b"\x1b[b",
    b"\x1b[999C",
    b"\x1b[1000G",
    b"\x1b[999@",
    b"\x1b[3X",
    b"\x1b[500X",
    b"\x1b[400P",
    b"\x1b[H",
    b"\x1b[7;30H",
    b"\x0b",
    b"\x08",
    b"\x08\x08x",
    b"\r",
    b"\rx",
    b"\x1b[1K",
    b"\x1b[2K",
    b"\n",
];

fn drawing() -> impl Strategy<Value = Vec<u8>> {
    let times = |what: &'static [&'static [u8]], most: usize| {
        (proptest::sample::select(what), 1..most).prop_map(|(piece, count)| piece.repeat(count))
    };
    let pieces = prop_oneof![
        4 => times(DRAWING, 3),
        1 => times(DRAWING, 24),
        2 => "[a-z漢─🙂]{1,3}".prop_map(String::into_bytes),
        1 => (1000_usize..3000).prop_map(|length| vec![b'y'; length]),
        1 => anything(),
    ];
    proptest::collection::vec(pieces, 1..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn reading_on_ends_and_gives_all(
        bytes in drawing(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        lines in prop_oneof![1_usize..5, Just(usize::MAX)], size in MIN_BYTES..4096,
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let ends = cuts.iter().copied().chain([bytes.len()]);
        let pieces: Vec<&[u8]> = ends.scan(0, |at, end| Some(&bytes[std::mem::replace(at, end)..end])).collect();
        assert_goes_on(&pieces, Bounds { lines, bytes: size });
    }

    #[test]
    fn no_output_makes_more_cells_than_are_allowed(bytes in drawing()) {
        let (most, mut parser) = held(&bytes);
        prop_assert!(most <= MAX_HELD);
        prop_assert!(parser.writer().line().0.cells().len() <= Line::MAX_CELLS);
    }
}
