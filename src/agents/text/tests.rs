use proptest::prelude::*;

use super::*;

/// Names and values, and the text around them: each value is a secret.
const SECRETS: &[(&str, &str, &str)] = &[
    ("password: ", "hunter2-and-more", "\n"),
    ("PASSWORD=", "hunter2-and-more", " next\n"),
    ("{\"password\": \"", "two verbs \\\" and quotes", "\", \"user\": \"ada\"}\n"),
    ("{\\\"api_key\\\":\\\"", "inner/json+value", "\\\"}\n"),
    ("db.passwd = '", "it goes on", "' # comment\n"),
    ("password: '", "it''s all one", "', user: ada\n"),
    ("PASSWORD='", "it'\\''s all one", "' ./deploy\n"),
    ("password = \"", "\"\"it goes on\"\"", "\"\n"),
    ("Enter your API key: ", "0123456789abcdef", "\r\n"),
    ("AWS Secret Access Key [None]: ", "wJalrXUtnFEMI/K7MDENG", "\r\n"),
    ("AWS_SESSION_TOKEN=", "FwoGZXIvYXdzEJr+//8=", "\n"),
    ("aws_secret_access_key = ", "wJalrXUtnFEMI/K7MDENG", "\n"),
    ("api-key:      ", "0123456789abcdef", "\n"),
    ("Authorization: ", "Basic dXNlcjpwYXNz d29yZA==", "\r\n"),
    ("authorization: ", "Digest username, realm", "\n"),
    ("curl -H 'X: Bearer ", "mF_9.B5f-4.1JqM'", " x\n"),
    ("Set-Cookie: ", "session=31d4d96e407aad42; Path=/", "\n"),
    ("login --password ", "correct-horse", " --user ada\n"),
    ("id ", "AKIAIOSFODNN7EXAMPLE", " found\n"),
    ("(", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", ")\n"),
    ("pat ", "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz", "\n"),
    ("key=>", "sk-proj-abcdefghijklmnopqrstuvwxyz0123", "\n"),
    ("", "xoxb-263594206564-FGqddMF8t08v8N7Oq4i57vs1", "\n"),
    ("lab ", "glpat-ABCDEFGHIJKLMNOPQRST", "\n"),
    ("maps ", "AIzaSyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe", "\n"),
    ("jwt ", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN", "\n"),
    ("", "npm_abcdefghijklmnopqrstuvwxyz0123456789", "\n"),
    ("", "pypi-AgEIcHlwaS5vcmcCJDU2YzQ", "\n"),
    ("digital ", "dop_v1_0123456789abcdef0123456789abcdef", "\n"),
    ("age ", "AGE-SECRET-KEY-1QQPQYRXSWPQ2V8AGZ9ZKH2D3ADYTRG", "\n"),
    ("gcloud ", "ya29.a0AfH6SMBx-abcdefghijkl_mnop", "\n"),
    ("vault ", "hvs.CAESIJlWh0abcdefghijklmnop", "\n"),
    ("runner ", "glrt-ABCDEFGHIJKLMNOPQRST", "\n"),
    ("", "xapp-1-A0123456789-0123456789", "\n"),
    ("clone https://ada:", "s3cr3t-pa55", "@example.org/x.git\n"),
    (
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "\nb3BlbnNzaC1rZXktdjEA\nAAAAC3NzaC1lZDI1NTE5\nYWJj\n",
        "-----END OPENSSH PRIVATE KEY-----\n",
    ),
    (
        "\"k\": \"-----BEGIN PRIVATE KEY-----",
        "\\nMIIEvQIBADANBgkq\\nhkiG9w0BAQEF\\n",
        "-----END PRIVATE KEY-----\"\n",
    ),
];

/// What programs write between two characters, and what changes nothing of them.
const BETWEEN: &[&[u8]] = &[
    b"\x1b[31m",
    b"\x1b[0m",
    b"\x1b[38;5;1m",
    b"\x1b]0;title\x07",
    b"\x1b]8;;http://x\x1b\\",
    b"\x1bP1$r\x1b\\",
    b"\x1b_x\x1b\\",
    b"\x1b[A",
    b"\x1b[5;7H",
    b"\x1b[3D",
    b"\x1b[2C",
    b"\x1b[K",
    b"\x1b[2K",
    b"\x1b[2J",
    b"\x1b7\x1b8",
    b"\x1bM",
    b"\x1bc",
    b"\x1b[?1049h",
    b"\x00",
    b"\x07",
    b"\x0b",
    b"\x7f",
    b"\x08",
    b"\r",
    "\u{200b}".as_bytes(),
    "\u{202e}".as_bytes(),
    "\u{ad}".as_bytes(),
    "\u{e0041}".as_bytes(),
    "\u{9b}0;31m".as_bytes(),
    b"\x9b1m",
    "\u{9d}0;t\u{9c}".as_bytes(),
];

pub(super) fn read(pieces: &[&[u8]], settle: bool) -> String {
    let mut text = Text::new();
    let mut all = String::new();
    for piece in pieces {
        all.push_str(&text.feed(piece));
        if settle {
            all.push_str(&text.settle());
        }
    }
    all + &text.finish()
}

fn shown(bytes: &[u8]) -> String {
    read(&[bytes], false)
}

/// Panics if four characters in a row of a secret are to be seen.
fn assert_hidden(text: &str, secret: &str) {
    let characters: Vec<char> = secret.chars().collect();
    for fragment in characters.windows(4).filter(|f| f.iter().any(|c| c.is_ascii_alphanumeric())) {
        let fragment: String = fragment.iter().collect();
        assert!(!text.contains(&fragment), "{fragment:?} of {secret:?} is shown in {text:?}");
    }
}

#[test]
fn a_secret_is_hidden_and_what_is_around_it_is_not() {
    for (before, secret, after) in SECRETS {
        let text = shown(format!("{before}{secret}{after}").as_bytes());
        assert_hidden(&text, secret);
        // Of a private key, its mark is part.
        let name = before.split_once("-----BEGIN").map_or(*before, |(name, _)| name);
        let after = after.split_once("KEY-----").map_or(*after, |(_, after)| after);
        let rest = after.trim_end_matches("\r\n").trim_end_matches('\n');
        let shown_rest = text.strip_prefix(name).and_then(|text| text.strip_prefix(REDACTED));
        assert!(shown_rest.is_some_and(|shown| shown.trim_end() == rest), "{text:?}");
    }
}

#[test]
fn a_secret_that_is_cut_anywhere_is_hidden() {
    for (before, secret, after) in SECRETS {
        let whole = format!("one\n{before}{secret}{after}two\n");
        let bytes = whole.as_bytes();
        for at in 0..=bytes.len() {
            for settle in [false, true] {
                let text = read(&[&bytes[..at], &bytes[at..]], settle);
                assert_hidden(&text, secret);
            }
            assert_eq!(read(&[&bytes[..at], &bytes[at..]], false), shown(bytes));
        }
        let each: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_hidden(&read(&each, true), secret);
    }
}

#[test]
fn a_secret_with_sequences_in_between_is_hidden() {
    for (before, secret, after) in SECRETS {
        for between in BETWEEN {
            let mut bytes = before.as_bytes().to_vec();
            for byte in secret.bytes() {
                bytes.extend_from_slice(between);
                bytes.push(byte);
            }
            bytes.extend_from_slice(after.as_bytes());
            assert_hidden(&shown(&bytes), secret);
            let pieces: Vec<&[u8]> = bytes.chunks(3).collect();
            assert_hidden(&read(&pieces, true), secret);
        }
    }
}

#[test]
fn an_end_or_a_gap_inside_a_secret_shows_nothing_of_it() {
    for (before, secret, after) in SECRETS {
        let bytes = format!("{before}{secret}{after}").into_bytes();
        for at in 0..bytes.len() {
            if !before.contains("://") {
                assert_hidden(&read(&[&bytes[..at]], true), secret);
            }
            let mut transcript = Transcript::new(1 << 20);
            transcript.feed(0, &bytes[..at]);
            let _ = transcript.read(0, Bounds { lines: 9, bytes: 9000 });
            transcript.feed(at as u64 + 1, &bytes[at + 1..]);
            transcript.finish();
            assert_hidden(&transcript.read(0, Bounds { lines: 99, bytes: 9000 }).text, secret);
        }
    }
}

#[test]
fn a_secret_anywhere_in_a_line_without_end_is_hidden() {
    for (before, secret, after) in SECRETS {
        for filler in ["x", "x ", "漢", "{\"a\":1}, "] {
            for length in (WINDOW_EDGE - 40..WINDOW_EDGE + 40).step_by(11) {
                let mut bytes = filler.repeat(length / filler.len() + 1);
                bytes.truncate(secrets::boundary(&bytes, length));
                let whole = format!("{bytes} {before}{secret}{after}");
                assert_hidden(&shown(whole.as_bytes()), secret);
            }
        }
    }
}

/// Where the window of a long line is first cut.
const WINDOW_EDGE: usize = writer::WINDOW - secrets::LOOK_AHEAD;

#[test]
fn what_was_redacted_stays_as_it_is() {
    for (before, secret, after) in SECRETS {
        let once = shown(format!("{before}{secret}{after}").as_bytes());
        assert_eq!(redact(&once), once);
    }
}

#[test]
fn ordinary_text_is_left_alone() {
    for line in [
        "error: unexpected token `;`\n",
        "use token::Kind;\n",
        "task-list-of-everything-to-be-done-today\n",
        "tokens 1234\n",
        "ssh://git@example.org/x\n",
        "http://localhost:3000/a?b=c\n",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n",
        "the secret of it\n",
        "disk-usage-of-all-mounted-systems\n",
        "eyJust\n",
        "MSG.a_constant_with_a_long_name\n",
        "\ta\tb\n",
        "e\u{301} 漢字 🙂\n",
    ] {
        assert_eq!(shown(line.as_bytes()), line);
    }
}

#[test]
fn what_overwrites_is_what_remains() {
    for (bytes, text) in [
        (&b"10%\r50%\r100%\n"[..], "100%\n"),
        (b"downloading\r\x1b[Kdone\n", "done\n"),
        (b"downloading\x1b[2K\rdone\n", "done\n"),
        (b"abc\x08\x08X\n", "aXc\n"),
        (b"abc\x08 \x08\r\n", "ab \n"),
        (b"0123456789\r\x1b[4C\x1b[2P\n", "01236789\n"),
        (b"abcd\r\x1b[2@\n", "  abcd\n"),
        (b"name\x1b[20G[ OK ]\n", "name        [ OK ]\n"),
        (b"=\x1b[9b\n", "==========\n"),
        (b"one\x1b[1A\rtwo\n", "one\ntwo\n"),
        (b"a\x1b[2;1Hb\x1b[3;1Hc", "a\nb\nc"),
        (b"a\xffb\xe6\xbcc\xc3\n", "a\u{fffd}b\u{fffd}c\u{fffd}\n"),
        (b"\x1b]0;title\x07shown\x1b]8;;http://x\x07link\x1b]8;;\x07\n", "shownlink\n"),
        ("a\u{202e}b\u{200b}c\u{feff}\u{e0041}d\n".as_bytes(), "abcd\n"),
    ] {
        assert_eq!(shown(bytes), text, "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn what_was_given_out_and_is_overwritten_is_a_line_of_its_own() {
    assert_eq!(read(&[b"30%", b"\r50%", b"\r100%\n"], true), "30%\n50%\n100%\n");
    assert_eq!(read(&[b"Name: ", b"ada\r\n"], true), "Name: ada\n");
}

#[test]
fn a_title_without_end_hides_only_so_much() {
    let mut bytes = b"\x1b]0;".to_vec();
    bytes.extend(std::iter::repeat_n(b"line\n", 40_000).flatten());
    assert!(shown(&bytes).ends_with("line\nline\n"));
}

#[test]
fn a_key_without_end_hides_only_so_much() {
    let mut bytes = b"const BEGIN: &str = \"-----BEGIN PRIVATE KEY-----\";\n".to_vec();
    bytes.extend(std::iter::repeat_n(b"line\n", 40_000).flatten());
    let text = shown(&bytes);
    assert!(text.ends_with("line\nline\n") && text.len() > bytes.len() - writer::MAX_HIDDEN - 100);
}

#[test]
fn after_a_gap_no_line_is_shown_that_could_be_of_a_key() {
    let mut transcript = Transcript::new(1 << 20);
    transcript.feed(0, b"one\ntw");
    transcript
        .feed(500, b"o\nMIIEvQIBADANBgkqhkiG9w0B\nYWJj\n-----END PRIVATE KEY-----\nsrc lib\nsrc\n");
    let text = transcript.read(0, Bounds { lines: 99, bytes: 9000 }).text;
    assert_eq!(
        text,
        "one\ntw\n[494 bytes lost]\n[redacted]\n[redacted]\n[redacted]\n[redacted]\nsrc lib\nsrc\n"
    );
}

#[test]
fn a_cursor_is_an_offset_in_the_bytes() {
    let mut transcript = Transcript::new(1 << 20);
    transcript.feed(0, b"one\ntwo \x1b[1mthree\x1b[0m\nfour");
    let first = transcript.read(0, Bounds { lines: 1, bytes: 9000 });
    assert_eq!((first.text.as_str(), first.next, first.more), ("one\n", 4, true));
    let second = transcript.read(first.next, Bounds { lines: 9, bytes: 9000 });
    assert_eq!((second.text.as_str(), second.next, second.more), ("two three\nfour", 26, false));
    transcript.feed(26, b"teen\n");
    assert_eq!(transcript.read(26, Bounds { lines: 9, bytes: 9000 }).text, "teen\n");
    assert_eq!(transcript.read(0, Bounds { lines: 1, bytes: 9000 }).text, "one\n");
}

#[test]
fn the_oldest_text_is_dropped_and_told() {
    let mut transcript = Transcript::new(MIN_BYTES);
    for line in 0..1000_u64 {
        transcript.feed(line * 5, format!("{line:04}\n").as_bytes());
    }
    let piece = transcript.read(100, Bounds { lines: 1, bytes: 9000 });
    assert_eq!((piece.text.as_str(), piece.lost, piece.next), ("0796\n", 3880, 3985));
    let lines = transcript.lines(None, Bounds { lines: 2, bytes: 9000 });
    assert_eq!(
        (lines.text.as_str(), lines.first, lines.total, lines.truncated),
        ("0998\n0999\n", 998, 1000, true)
    );
    assert_eq!(transcript.tail(Bounds { lines: 1, bytes: 9000 }).text, "0999\n");
}

#[test]
fn looking_gives_nothing_out() {
    let mut transcript = Transcript::new(1 << 20);
    transcript.feed(0, b"one\n10%");
    assert_eq!(transcript.tail(Bounds { lines: 9, bytes: 9000 }).text, "one\n10%");
    assert_eq!(transcript.lines(None, Bounds { lines: 200, bytes: 9000 }).text, "one\n10%");
    transcript.feed(7, b"\r20%\n");
    assert_eq!(transcript.read(0, Bounds { lines: 9, bytes: 9000 }).text, "one\n20%\n");
}

const MOVEMENTS: &[&[u8]] =
    &[b"\n", b"\r\n", b"\r", b"\t", b"\x1b[9b", b"\x1b[40C", b"\x1b[5P", b"\x1b[5@", b"\x1b[1K"];

pub(super) fn anything() -> impl Strategy<Value = Vec<u8>> {
    let secrets = proptest::sample::select(SECRETS);
    let secrets =
        secrets.prop_map(|(before, secret, after)| format!("{before}{secret}{after}").into_bytes());
    let pieces = prop_oneof![3 => surroundings(), 1 => secrets];
    proptest::collection::vec(pieces, 1..8).prop_map(|pieces| pieces.concat())
}

fn surroundings() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop_oneof![
        "[ -~]{1,12}".prop_map(String::into_bytes),
        "\\PC{1,6}".prop_map(String::into_bytes),
        proptest::sample::select(BETWEEN).prop_map(<[u8]>::to_vec),
        proptest::sample::select(MOVEMENTS).prop_map(<[u8]>::to_vec),
        proptest::collection::vec(any::<u8>(), 1..6),
        (1000_usize..9000).prop_map(|length| vec![b'x'; length]),
    ];
    proptest::collection::vec(pieces, 1..4).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn the_text_does_not_depend_on_how_it_is_fed(bytes in anything(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 2)) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.sort_unstable();
        let pieces = [&bytes[..cuts[0]], &bytes[cuts[0]..cuts[1]], &bytes[cuts[1]..]];
        prop_assert_eq!(read(&pieces, false), shown(&bytes));
    }

    #[test]
    fn what_is_shown_is_text(bytes in anything()) {
        let text = read(&bytes.chunks(199).collect::<Vec<_>>(), true);
        prop_assert!(text.chars().all(|c| c == '\n' || c == '\t' || (!c.is_control() && !ignorable::is_ignorable(c))));
    }

    #[test]
    fn reads_of_any_size_lose_nothing(bytes in anything(), sizes in proptest::collection::vec((1_usize..5, 0_usize..3000, 1_usize..4000), 1..40)) {
        let mut transcript = Transcript::new(1 << 20);
        let (mut cursor, mut fed, mut all) = (0, 0, String::new());
        for (lines, size, feed) in sizes.iter().cycle().take(sizes.len() + 20_000) {
            let piece = transcript.read(cursor, Bounds { lines: *lines, bytes: *size });
            prop_assert!(piece.text.len() <= (*size).max(MIN_BYTES) && piece.lost == 0 && piece.next >= cursor);
            prop_assert_eq!(&transcript.read(cursor, Bounds { lines: *lines, bytes: *size }), &piece);
            prop_assert!(!piece.more || !piece.text.is_empty());
            all.push_str(&piece.text);
            cursor = piece.next;
            if fed == bytes.len() && !piece.more {
                break;
            }
            let next = (fed + feed).min(bytes.len());
            transcript.feed(fed as u64, &bytes[fed..next]);
            fed = next;
            if fed == bytes.len() {
                transcript.finish();
            }
        }
        prop_assert!(cursor <= bytes.len() as u64);
        let again = transcript.read(0, Bounds { lines: usize::MAX, bytes: usize::MAX });
        prop_assert_eq!(again.text, all);
    }

    #[test]
    fn a_secret_in_any_surroundings_is_hidden(
        around in proptest::collection::vec(surroundings(), 0..3), which in proptest::sample::select(SECRETS), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 3),
    ) {
        let (before, secret, after) = which;
        let mut bytes = around.concat();
        bytes.extend_from_slice(format!("\n\x18\n{before}{secret}{after}").as_bytes());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.sort_unstable();
        let pieces = [&bytes[..cuts[0]], &bytes[cuts[0]..cuts[1]], &bytes[cuts[1]..cuts[2]], &bytes[cuts[2]..]];
        assert_hidden(&read(&pieces, true), secret);
    }
}
