use std::{fs, os::unix::fs::PermissionsExt};

use nix::{sys::stat::Mode, unistd::mkfifo};
use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    #[serde(default, deserialize_with = "within::<_, 1, 9>")]
    #[allow(dead_code)]
    size: u64,
    #[serde(default)]
    #[allow(dead_code)]
    inner: Option<Inner>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner {
    #[allow(dead_code)]
    names: Vec<String>,
}

fn words(text: &str) -> String {
    parse::<Sample>(Path::new("f.toml"), text).unwrap_err().to_string()
}

#[test]
fn a_fault_is_placed_by_line_column_and_key() {
    insta::assert_snapshot!(
        [
            words("size = 10"),
            words("\n  size = \"big\""),
            words("size = -1"),
            words("size = 99999999999999999999"),
            words("colour = 1"),
            words("# ä\n[inner]\nnames = [\n  \"ä\", 7,\n]"),
            words("[inner]\nnames = []\nmore = 1"),
            words("[inner]"),
            words("size = 1\nsize = 2"),
            words("size = "),
            words("size 1"),
            words("[inner"),
            words("\u{0}"),
        ]
        .join("\n"),
        @r#"
        f.toml:1:8: key "size": 10 is outside 1..=9
        f.toml:2:10: key "size": invalid type: string "big", expected i64
        f.toml:1:8: key "size": -1 is outside 1..=9
        f.toml:1:8: key "size": invalid type: integer `99999999999999999999` as i128, expected i64
        f.toml:1:1: key "colour": unknown field `colour`, expected `size` or `inner`
        f.toml:4:8: key "inner.names": invalid type: integer `7`, expected a string
        f.toml:3:1: key "inner.more": unknown field `more`, expected `names`
        f.toml:1:1: key "inner": missing field `names`
        f.toml:2:1: key "size": duplicate key
        f.toml:1:8: key "size": string values must be quoted, expected literal string
        f.toml:1:6: key "size": key with no value, expected `=`
        f.toml:1:7: unclosed table, expected `]`
        f.toml:1:2: key with no value, expected `=`
        "#
    );
}

#[test]
fn what_is_no_readable_text_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let fault = |name: &str| text(&path(name)).unwrap_err().fault;

    fs::write(path("long"), vec![b'#'; 64 * 1024 + 1]).unwrap();
    fs::write(path("latin"), b"title = \"\xe4\"").unwrap();
    fs::write(path("open"), "").unwrap();
    fs::set_permissions(path("open"), fs::Permissions::from_mode(0o646)).unwrap();
    mkfifo(&path("pipe"), Mode::S_IRWXU).unwrap();
    std::os::unix::fs::symlink("loop", path("loop")).unwrap();

    assert_eq!(fault("long"), Fault::TooLong);
    assert_eq!(fault("latin"), Fault::NotUtf8);
    assert_eq!(fault("open"), Fault::WorldWritable { mode: 0o646 });
    assert_eq!(fault("pipe"), Fault::NotAFile);
    assert_eq!(fault("."), Fault::NotAFile);
    assert_eq!(fault("absent"), Fault::Read(Cause(io::ErrorKind::NotFound)));
    assert!(matches!(fault("loop"), Fault::Read(_)));

    fs::write(path("longest"), vec![b'#'; 64 * 1024]).unwrap();
    assert_eq!(text(&path("longest")).unwrap().len(), 64 * 1024);
}

#[test]
fn an_error_is_one_bounded_line_whatever_the_file_holds() {
    for text in ["\"a\\nb\\u001b[2J\" = 1".to_owned(), format!("{} = 1", "k".repeat(60_000))] {
        let words = words(&text);
        assert!(words.chars().count() < 700 && !words.contains(char::is_control), "{words:?}");
    }
}

#[test]
fn depth_is_bounded() {
    for text in [
        format!("a = {}", "[".repeat(60_000)),
        format!("a = {}", "{a = ".repeat(13_000)),
        format!("{}a = 1", "a.".repeat(32_000)),
        format!("[{}a]", "a.".repeat(32_000)),
        format!("colour = {}1{}", "[".repeat(30_000), "]".repeat(30_000)),
    ] {
        assert!(parse::<Sample>(Path::new("f.toml"), &text).is_err());
    }
}
