use super::{super::REDACTED, *};

fn transcript(capacity: usize, output: &[u8]) -> Transcript {
    let mut transcript = Transcript::new(capacity);
    transcript.feed(0, output);
    transcript
}

fn bounds(lines: usize, bytes: usize) -> Bounds {
    Bounds { lines, bytes }
}

/// Lines of seven bytes each.
fn numbers(count: usize) -> String {
    (0..count).map(|number| format!("{number:06}\n")).collect()
}

#[test]
fn lines_are_given_whole_as_long_as_they_fit() {
    let output = numbers(1000);
    let transcript = transcript(1 << 20, output.as_bytes());
    let (mut all, mut next, mut pieces) = (String::new(), 0, 0);
    loop {
        let lines = transcript.lines(Some(next), bounds(2000, MIN_BYTES));
        assert_eq!((lines.first, lines.total, lines.cut), (next, 1000, false));
        assert!(lines.truncated && lines.text.len() <= MIN_BYTES && lines.text.ends_with('\n'));
        all.push_str(&lines.text);
        (next, pieces) = (lines.next, pieces + 1);
        if next == lines.total {
            break;
        }
    }
    assert_eq!((all, pieces), (output, 7));
    let last = transcript.lines(None, bounds(2000, MIN_BYTES));
    assert_eq!((last.first, last.next, last.truncated), (1000 - 146, 1000, true));
    assert!(last.text.starts_with("000854\n") && last.text.len() == 146 * 7);
    let all = transcript.lines(None, bounds(2000, 9000));
    assert_eq!((all.first, all.next, all.truncated, all.cut), (0, 1000, false, false));
}

#[test]
fn of_a_line_that_does_not_fit_a_part_is_given_and_told() {
    let long = format!("one\n{}\nthree\n", "é".repeat(5000));
    let transcript = transcript(1 << 20, long.as_bytes());
    let whole = transcript.lines(Some(0), bounds(9, MIN_BYTES));
    assert_eq!((whole.text.as_str(), whole.next, whole.cut), ("one\n", 1, false));
    let part = transcript.lines(Some(1), bounds(9, 1025));
    assert_eq!((part.first, part.next, part.truncated, part.cut), (1, 2, true, true));
    assert_eq!(part.text, "é".repeat(512));
    assert_eq!(transcript.lines(Some(2), bounds(9, MIN_BYTES)).text, "three\n");
    let last = transcript.lines(None, bounds(2, MIN_BYTES));
    assert_eq!((last.text.as_str(), last.first, last.cut), ("three\n", 2, false));
}

#[test]
fn of_a_last_line_that_does_not_fit_the_end_is_given() {
    let mut transcript = transcript(1 << 20, format!("{}end\n", "x".repeat(5000)).as_bytes());
    let last = transcript.lines(None, bounds(9, MIN_BYTES));
    assert_eq!((last.text.len(), last.truncated, last.cut), (MIN_BYTES, true, true));
    assert!(last.text.ends_with("xend\n"));
    transcript.finish();
    assert_eq!(transcript.lines(None, bounds(9, MIN_BYTES)), last);
}

#[test]
fn a_cut_splits_no_mark() {
    let output = format!("{}token=abcdefgh {}\n", "x".repeat(1010), "y".repeat(900));
    let transcript = transcript(1 << 20, output.as_bytes());
    for bytes in MIN_BYTES..1100 {
        for offset in [Some(0), None] {
            let text = transcript.lines(offset, bounds(9, bytes)).text;
            assert!(text.len() <= bytes);
            assert_eq!(text.contains('['), text.contains(REDACTED), "{text}");
            assert_eq!(text.contains(']'), text.contains(REDACTED), "{text}");
        }
    }
}

#[test]
fn a_line_that_is_being_written_is_given_again_once_it_is_whole() {
    let mut transcript = transcript(1 << 20, b"one\ntw");
    let lines = transcript.lines(None, bounds(9, 9000));
    assert_eq!((lines.text.as_str(), lines.next, lines.total), ("one\ntw", 1, 2));
    assert!(!lines.truncated);
    transcript.feed(6, b"o\nthree");
    transcript.finish();
    let lines = transcript.lines(Some(lines.next), bounds(9, 9000));
    assert_eq!((lines.text.as_str(), lines.next, lines.total), ("two\nthree", 3, 3));
}

#[test]
fn a_tail_tells_that_there_was_more_before_it() {
    let one_line = transcript(1 << 20, "x".repeat(5000).as_bytes());
    let tail = one_line.tail(bounds(9, MIN_BYTES));
    assert_eq!((tail.text.len(), tail.truncated), (MIN_BYTES, true));
    let output = numbers(1000);
    let tail = transcript(1 << 20, output.as_bytes()).tail(bounds(3, 9000));
    assert_eq!((tail.text.as_str(), tail.truncated), ("000997\n000998\n000999\n", true));
    assert_eq!((tail.begin, tail.next, tail.more), (6979, 7000, false));
    let tail = transcript(1 << 20, output.as_bytes()).tail(bounds(1000, 9000));
    assert_eq!((tail.text, tail.begin, tail.truncated), (output, 0, false));
}

#[test]
fn more_after_a_tail_is_what_a_read_gives_at_once() {
    let mut transcript = transcript(1 << 20, b"one\ntwo");
    let tail = transcript.tail(bounds(9, 9000));
    assert_eq!((tail.text.as_str(), tail.next, tail.more), ("one\ntwo", 4, true));
    assert_eq!(transcript.read(tail.next, bounds(9, 9000)).text, "two");
    let tail = transcript.tail(bounds(9, 9000));
    assert_eq!((tail.text.as_str(), tail.next, tail.more), ("one\ntwo", 7, false));
}

#[test]
fn a_tail_begins_where_a_read_goes_on() {
    let output = "漢字 and\tmore\r\n".repeat(200);
    let mut transcript = transcript(1 << 20, output.as_bytes());
    for bytes in MIN_BYTES..MIN_BYTES + 40 {
        let tail = transcript.tail(bounds(999, bytes));
        let read = transcript.read(tail.begin, bounds(999, 1 << 20));
        assert_eq!((read.text, read.next), (tail.text, tail.next));
    }
}

#[test]
fn what_is_kept_of_a_line_is_told_as_a_part() {
    let mut transcript = transcript(16 << 10, "x".repeat(30_000).as_bytes());
    transcript.finish();
    let lines = transcript.lines(None, bounds(9, 1 << 20));
    assert_eq!((lines.first, lines.total, lines.truncated, lines.cut), (0, 1, true, true));
    let tail = transcript.tail(bounds(9, 1 << 20));
    assert!(tail.truncated && tail.begin > 0 && tail.next == 30_000);
    assert_eq!(tail.begin, 30_000 - tail.text.len() as u64);
    assert_eq!(transcript.read(0, bounds(9, 1 << 20)).lost, tail.begin);
}

#[test]
fn text_of_which_nothing_is_kept_is_lost_and_its_cursor_stays() {
    let output = [b"\x1b[900Gx\r\n".repeat(2), vec![b'y'; 1500], b"\n".to_vec()].concat();
    let mut transcript = transcript(MIN_BYTES, &output);
    let end = output.len() as u64;
    let piece = transcript.read(0, bounds(9, 9000));
    assert_eq!((piece.text.as_str(), piece.next, piece.lost), ("", end, end));
    let tail = transcript.tail(bounds(9, 9000));
    assert_eq!((tail.begin, tail.next, tail.truncated), (end, end, true));
    let lines = transcript.lines(None, bounds(9, 9000));
    assert_eq!((lines.first, lines.next, lines.total, lines.truncated), (3, 3, 3, true));
}

#[test]
fn empty_lines_without_end_cost_no_more_rows_than_are_kept() {
    let mut transcript = Transcript::new(MIN_BYTES);
    for round in 0..100_u64 {
        transcript.feed(round * 1000, &[b'\n'; 1000]);
        assert!(transcript.rows.len() <= MIN_BYTES / BYTES_A_ROW);
    }
    assert!(transcript.rows.capacity() <= 4000, "{}", transcript.rows.capacity());
    let piece = transcript.read(0, bounds(MIN_BYTES, MIN_BYTES));
    assert_eq!((piece.text.len(), piece.lost, piece.next), (256, 99_744, 100_000));
    assert_eq!(transcript.lines(None, bounds(9, MIN_BYTES)).total, 100_000);
}
