use std::{collections::BTreeMap, process::Command};

use proptest::prelude::*;

use super::*;

/// As `smkx` sets a terminal, which the key strings of terminfo are for (terminfo(5)).
const APPLICATION: InputModes =
    InputModes { application_cursor: true, application_keypad: true, bracketed_paste: false };

fn sent(name: &str, modes: InputModes) -> Result<Vec<u8>, KeyError> {
    Ok(Keys::parse(&[name.to_owned()])?.encode(modes).concat())
}

fn plain(name: &str) -> String {
    String::from_utf8(sent(name, InputModes::default()).unwrap()).unwrap()
}

/// The key strings of a terminfo entry by their capability.
fn terminfo() -> BTreeMap<String, Vec<u8>> {
    let output = Command::new("infocmp").args(["-x", "-1", "xterm-256color"]).output();
    let output = output.expect("infocmp(1) of ncurses-bin is installed");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .filter_map(|line| line.trim().trim_end_matches(',').split_once('='))
        .filter(|(name, _)| name.starts_with('k'))
        .map(|(name, value)| (name.to_owned(), unescaped(value)))
        .collect()
}

/// A string as infocmp(1) writes it: `\E`, `^X`, and commas and backslashes after a backslash.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next().unwrap() {
                b'E' => 0x1b,
                other => other,
            },
            b'^' => match rest.next().unwrap() {
                b'?' => 0x7f,
                letter => letter & 0x1f,
            },
            other => other,
        });
    }
    bytes
}

/// What we call the key of a capability (terminfo(5), user_caps(5)); `None` for what is no key.
fn our_name(capability: &str) -> Option<String> {
    let prefix = |modifier: &str| {
        let number: u8 = modifier.parse().unwrap_or(2);
        let bits = number - 1;
        let prefixes = [(1, "S-"), (2, "M-"), (4, "C-")];
        prefixes.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, p)| *p).collect::<String>()
    };
    if let Some(number) = capability.strip_prefix("kf") {
        let number: u8 = number.parse().unwrap();
        let row = ["", "2", "5", "6", "3", "4"][usize::from((number - 1) / 12)];
        let modifiers = if row.is_empty() { String::new() } else { prefix(row) };
        return Some(format!("{modifiers}f{}", (number - 1) % 12 + 1));
    }
    let extended = [
        ("kDC", "delete"),
        ("kDN", "down"),
        ("kEND", "end"),
        ("kHOM", "home"),
        ("kIC", "insert"),
        ("kLFT", "left"),
        ("kNXT", "pagedown"),
        ("kPRV", "pageup"),
        ("kRIT", "right"),
        ("kUP", "up"),
    ];
    if let Some((start, key)) = extended.iter().find(|(start, _)| capability.starts_with(start)) {
        return Some(format!("{}{key}", prefix(&capability[start.len()..])));
    }
    let key = match capability {
        "kbs" => "backspace",
        "kbeg" | "kp5" => "begin",
        "kcbt" => "btab",
        "kcub1" => "left",
        "kcud1" => "down",
        "kcuf1" => "right",
        "kcuu1" => "up",
        "kdch1" => "delete",
        "kend" => "end",
        "kent" => "kpenter",
        "khome" => "home",
        "kich1" => "insert",
        "kind" => "S-down",
        "knp" => "pagedown",
        "kpp" => "pageup",
        "kri" => "S-up",
        "ka1" => "kp7",
        "ka2" => "kp8",
        "ka3" => "kp9",
        "kb1" => "kp4",
        "kb2" => "kp5",
        "kb3" => "kp6",
        "kc1" => "kp1",
        "kc2" => "kp2",
        "kc3" => "kp3",
        "kpADD" => "kp+",
        "kpCMA" => "kp,",
        "kpDIV" => "kp/",
        "kpDOT" => "kp.",
        "kpMUL" => "kp*",
        "kpSUB" => "kp-",
        "kpZRO" => "kp0",
        // Reports of the mouse and of focus are none.
        "kmous" | "kxIN" | "kxOUT" => return None,
        other => panic!("terminfo knows the key {other}, this test does not"),
    };
    Some(key.to_owned())
}

#[test]
fn every_key_that_terminfo_knows_is_sent_as_terminfo_says() {
    let known = terminfo();
    assert!(known.len() > 100, "{known:?}");
    for (capability, bytes) in known {
        let Some(name) = our_name(&capability) else { continue };
        assert_eq!(sent(&name, APPLICATION).unwrap(), bytes, "{capability} is {name}");
    }
}

#[test]
fn cursor_keys_and_the_keypad_follow_their_modes() {
    let cursor = InputModes { application_cursor: true, ..InputModes::default() };
    let keypad = InputModes { application_keypad: true, ..InputModes::default() };
    for (name, normal, application) in [
        ("up", "\x1b[A", "\x1bOA"),
        ("Home", "\x1b[H", "\x1bOH"),
        ("END", "\x1b[F", "\x1bOF"),
        ("C-left", "\x1b[1;5D", "\x1b[1;5D"),
    ] {
        assert_eq!(sent(name, InputModes::default()).unwrap(), normal.as_bytes());
        assert_eq!(sent(name, keypad).unwrap(), normal.as_bytes());
        assert_eq!(sent(name, cursor).unwrap(), application.as_bytes());
    }
    assert_eq!(sent("kpenter", cursor).unwrap(), b"\r");
    assert_eq!(sent("kpenter", keypad).unwrap(), b"\x1bOM");
    assert_eq!(sent("kp7", keypad).unwrap(), b"\x1bOw");
}

#[test]
fn characters_take_modifiers_as_a_keyboard_does() {
    for (name, bytes) in [
        ("x", "x"),
        ("X", "X"),
        ("é", "é"),
        ("-", "-"),
        ("^", "^"),
        ("C-c", "\x03"),
        ("c-C", "\x03"),
        ("^c", "\x03"),
        ("^[", "\x1b"),
        ("^?", "\x7f"),
        ("C-space", "\0"),
        ("C-@", "\0"),
        ("C-/", "\x1f"),
        ("C-^", "\x1e"),
        ("M-x", "\x1bx"),
        ("M--", "\x1b-"),
        ("M-C-x", "\x1b\x18"),
        ("C-M-x", "\x1b\x18"),
        ("M-^x", "\x1b\x18"),
        ("S-a", "A"),
        ("S-é", "É"),
        ("S-S", "S"),
        ("M-S-a", "\x1bA"),
        ("M-enter", "\x1b\r"),
        ("M-esc", "\x1b\x1b"),
        ("S-Tab", "\x1b[Z"),
        ("M-btab", "\x1b\x1b[Z"),
        ("C-BSpace", "\x08"),
        ("C-S-f5", "\x1b[15;6~"),
        ("S-C-M-f1", "\x1b[1;8P"),
    ] {
        assert_eq!(plain(name), bytes, "{name}");
    }
}

#[test]
fn what_no_terminal_sends_is_refused_and_named() {
    for name in
        ["", "entr", "C-", "C-C-x", "M-m-x", "C-^x", "^é", "^2", "f13", "kp", "ab", "e\u{301}"]
    {
        let refused = sent(name, InputModes::default());
        assert_eq!(refused, Err(KeyError::Unknown(name.to_owned())));
        assert!(refused.unwrap_err().to_string().contains(&format!("{name:?}")));
    }
    for name in
        ["C-enter", "S-enter", "C-é", "C-1", "S-1", "S-ß", "C-S-a", "C-tab", "S-btab", "M-kp1"]
    {
        let refused = sent(name, InputModes::default());
        assert_eq!(refused, Err(KeyError::Impossible(name.to_owned())));
    }
    let mixed = ["a", "nosuchkey", "b"].map(str::to_owned);
    assert_eq!(Keys::parse(&mixed), Err(KeyError::Unknown("nosuchkey".to_owned())));
}

#[test]
fn keys_of_a_call_are_bounded() {
    let keys = vec!["a".to_owned(); 1025];
    let error = Keys::parse(&keys).unwrap_err();
    assert_eq!(error.to_string(), "1025 keys are more than 1024");
    assert_eq!(Keys::parse(&keys[1..]).unwrap().encode(APPLICATION).len(), 1024);
    let long = Keys::parse(&["x".repeat(100_000)]).unwrap_err();
    assert!(long.to_string().len() < 200, "{long}");
}

proptest! {
    #[test]
    fn no_name_is_too_strange(name in ".{0,12}") {
        let _ = sent(&name, APPLICATION);
    }

    #[test]
    fn one_character_is_itself(c in any::<char>()) {
        prop_assert_eq!(sent(&c.to_string(), APPLICATION).unwrap(), c.to_string().into_bytes());
    }

    #[test]
    fn names_mean_the_same_in_any_case_and_prefixes_in_any_order(
        at in 0..table::NAMES.len(),
        cases in prop::collection::vec(any::<bool>(), 16),
        prefixes in Just(["C-", "M-", "S-"]).prop_shuffle(),
        count in 0_usize..=3,
    ) {
        let name = table::NAMES[at].0;
        let mixed: String = name.chars().zip(&cases).map(|(c, upper)| {
            if *upper { c.to_ascii_uppercase() } else { c }
        }).collect();
        let mut sorted = prefixes[..count].to_vec();
        sorted.sort_unstable();
        let one = sent(&format!("{}{mixed}", prefixes[..count].concat()), APPLICATION);
        let other = sent(&format!("{}{name}", sorted.concat()), APPLICATION);
        prop_assert_eq!(one.ok(), other.ok());
    }
}
