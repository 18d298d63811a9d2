use std::time::Duration;

use proptest::prelude::*;

use super::*;

mod state;

fn far() -> Instant {
    Instant::now() + Duration::from_secs(1000)
}

fn drawn(columns: u16, rows: u16, bytes: &[u8]) -> Screen {
    let mut screen = Screen::new(Size::new(columns, rows));
    let count = screen.draw(bytes, false, far());
    assert_eq!(count, bytes.len(), "{:?}", String::from_utf8_lossy(&bytes[count..]));
    screen
}

fn view(bytes: &[u8]) -> View {
    drawn(10, 3, bytes).view()
}

#[test]
fn a_view_is_what_a_person_would_read() {
    let shown = view("one\r\n漢字 e\u{301} \x1b[31mx\x1b]2;name\x07".as_bytes());
    assert_eq!(shown.rows, ["one", "漢字 e\u{301} x", ""]);
    assert_eq!((shown.cursor, shown.title.as_str(), shown.alternate), ((8, 1), "name", false));
    let alternate = view(b"under\x1b[?1049h\x1b[2;3Hover");
    assert_eq!(
        (alternate.rows, alternate.alternate),
        (vec![String::new(), "  over".into(), String::new()], true)
    );
    assert_eq!(view(b"under\x1b[?1049hover\x1b[?1049l").rows[0], "under");
}

#[test]
fn a_baseline_of_a_baseline_is_the_same() {
    for bytes in [
        "",
        "text",
        "0123456789",
        "0123456789a",
        "漢字漢字漢字",
        "\x1b[1;31;44mx\x1b[K\r\n\x1b[4:3;58:5:3my",
        "\x1b(0lqk\x0e\x1b)0x",
        "\x1b[2;3r\x1b[?6h\x1b[2;2Hq\x1b7\x1b[1;1H",
        "\x1b[3g\x1b[4G\x1bH\x1b[?7l\x1b[4h",
        "a\x1b[?1049hb\x1b[?1000;1006;2004h\x1b[?25l\x1b[>5u\x1b]0;t\x07",
        "\x1b]4;1;#010203\x07\x1b]11;#fff\x07",
        "ab\x1b[?47hcd",
        "\x1b[5mblink\x1b[25m\x1b[9mout",
        "123456789漢x",
        "e\u{301}\u{302}",
    ] {
        let baseline = drawn(10, 3, bytes.as_bytes()).baseline();
        let again = drawn(10, 3, &baseline).baseline();
        assert_eq!(
            String::from_utf8(again).unwrap(),
            String::from_utf8(baseline).unwrap(),
            "{bytes:?}"
        );
    }
}

#[test]
fn what_the_grid_gets_wrong_is_right() {
    assert_eq!(view(b"0123456789\x1b[9G\x1b[5P").rows[0], "01234567", "DCH near the margin");
    assert_eq!(view(b"aa\r\nbb\x1b[1J").rows, ["", "", ""], "ED 1 on the second line");
    assert_eq!(
        view(b"a\x1b[2;3r\x1b[?6h\x1b[2;2H\x1b[Ax").rows,
        ["a", " x", ""],
        "CUU with origin mode"
    );
    assert_eq!(view(b"\x1b[2;3r\x1b[3;1H\x1b[9Ax").rows, ["", "x", ""], "CUU stops at the margin");
    assert_eq!(view(b"0123456789\tx").rows, ["0123456789", "x", ""], "a tab does not wrap");
    assert_eq!(view(b"0123456789\x1b[Zx").rows[0], "01234567x9", "CBT ends the wait for a wrap");
    assert_eq!(view(b"ab\x1b[3g\x1b[Zx").rows[0], "xb", "CBT without a stop");
    assert_eq!(view(b"\x1b[5;9rx").rows, ["x", "", ""], "a region outside is none");
    assert_eq!(view(b"ab\x1b[?1047hcd\x1b[?1047le").rows[0], "ab  e", "1047 keeps the cursor");
    assert_eq!(
        view("ab漢\x1b[4h\x1b[3Gx".as_bytes()).rows[0],
        "abx漢",
        "IRM before a wide character"
    );
    assert_eq!(view("a漢b\x1b[4h\x1b[3Gx".as_bytes()).rows[0], "a x b", "IRM in one");
    assert_eq!(
        view("12345678漢\x1b[4h\x1b[GA".as_bytes()).rows[0],
        "A12345678",
        "IRM pushes half out"
    );
    assert_eq!(
        view("ab\r\x1b[4h12345678漢漢".as_bytes()).rows,
        ["12345678漢", "漢", ""],
        "IRM on the next line"
    );
    assert_eq!(
        view("\x1b[2;1Hab\x1b[H123456789\x1b[4h漢".as_bytes()).rows,
        ["123456789", "漢ab", ""]
    );
    assert_eq!(view("123456789漢\x1b[HA\x1b[P".as_bytes()).rows[0], "A3456789", "DCH of a gap");
    assert_eq!(view(b"\x1b[4h\x1b[2;3r\x1b[!pab\x1b[Gc").rows[0], "cb", "DECSTR ends insert mode");
}

#[test]
fn a_hostile_tool_takes_no_memory() {
    let marks = "\u{301}".repeat(100_000);
    let mut screen = drawn(10, 3, format!("a{marks}漢{marks}").as_bytes());
    assert!(screen.baseline().len() < 200);
    let mut overlong = Screen::new(Size::new(10, 3));
    let text =
        b"\x1b]2;".iter().chain(std::iter::repeat_n(&b'x', 1 << 20)).copied().collect::<Vec<_>>();
    assert_eq!(overlong.draw(&text[..4096], false, far()), 0, "its end may come");
    let mut at = 0;
    while at < text.len() {
        at += overlong.draw(&text[at..(at + 4096).min(text.len())], true, far());
    }
    assert_eq!(overlong.title(), "");
    assert!(overlong.baseline().ends_with(b"\x1b]9999;"));
    assert_eq!(overlong.draw(b"x\x07after", false, far()), 7);
    assert_eq!(overlong.view().rows[0], "after");
    drawn(10, 3, &b"\x1b[>1u\x1b[22t".repeat(5000));
}

#[test]
fn drawing_stops_when_it_is_late() {
    let text = "line\r\n\x1b[m".repeat(10_000);
    let mut screen = Screen::new(Size::new(80, 24));
    let (mut at, mut turns) = (0, 0);
    while at < text.len() {
        at += screen.draw(&text.as_bytes()[at..], false, Instant::now());
        turns += 1;
    }
    assert!(turns > 10, "{turns}");
    assert_eq!(screen.view(), drawn(80, 24, text.as_bytes()).view());
}

#[test]
fn a_size_of_one_is_survived_and_a_huge_one_has_no_model() {
    drawn(1, 1, "漢a\r\n漢\x1b[2;2H\x1b[L\x1b[P漢".as_bytes()).baseline();
    assert_eq!(Screen::cost(Size::new(1000, 1000)), None);
    assert_eq!(Screen::cost(Size::new(80, 24)), Some(4096 + 2 * 24 * 1920));
}

/// Text and what is between it.
fn lines() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        20 => "[a-z \t]{0,30}\r\n", 2 => "[a-z]{60}", 1 => "\n", 1 => "\r",
        1 => "\x1b\\[(1m|m|7m|A|5;9r|r|\\?1049h|\\?1049l|44m|\\?7l|4h)",
    ];
    prop::collection::vec(piece, 0..120).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// Drawn byte by byte, nothing is ever skipped.
    #[test]
    fn what_is_not_drawn_cannot_be_seen(text in lines()) {
        let mut whole = drawn(20, 5, text.as_bytes());
        let mut single = Screen::new(Size::new(20, 5));
        let mut at = 0;
        for end in 1..=text.len() {
            at += single.draw(&text.as_bytes()[at..end], false, far());
        }
        prop_assert_eq!(whole.baseline(), single.baseline());
    }

    #[test]
    fn anything_is_survived(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0x1b), Just(b'['), 0x20_u8..0x40], 0..500),
        sizes in prop::collection::vec((1_u16..40, 1_u16..20), 1..4),
    ) {
        let mut screen = Screen::new(Size::new(sizes[0].0, sizes[0].1));
        for (piece, (columns, rows)) in bytes.chunks(100).zip(sizes.iter().cycle()) {
            screen.resize(Size::new(*columns, *rows));
            screen.draw(piece, true, far());
            let baseline = screen.baseline();
            let mut again = Screen::new(screen.size());
            again.draw(&baseline, false, far());
            prop_assert_eq!(again.view(), screen.view());
        }
    }
}
