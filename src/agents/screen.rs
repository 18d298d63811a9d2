//! The tool `screen`.

use std::ops::Range;

use serde_json::json;

use super::{
    arguments::Screen,
    desk::Desk,
    failure::{Code, Failure},
    output,
    server::Answer,
    text,
};
use crate::client::Dict;

/// What a person would see on a session's terminal now.
pub async fn screen(desk: &Desk, arguments: &Screen) -> Answer {
    let entry = desk.roster.find(&arguments.session_id.0)?;
    let screen = entry.session.proxy().screen(&Dict::new()).await;
    let screen = screen.map_err(|error| Failure::of(&error.into(), Code::SessionRuntimeError))?;
    let rows = redacted(&screen.texts("rows"), screen.number("columns").unwrap_or_default());
    let mut answer = json!({
        "sessionId": entry.id(),
        "root": entry.facts.root,
        "output": rows.join("\n"),
        "columns": screen.number("columns"),
        "rows": screen.number("rows_count"),
        "cursor": cursor(&screen),
        "title": screen.text("title").map(text::redact),
        "alternate": screen.flag("alternate"),
    });
    output::mark(&mut answer);
    answer["untrusted"] = json!(["output", "title"]);
    Ok(answer)
}

/// Column and row of the cursor, from 0.
fn cursor(screen: &Dict) -> Option<(u64, u64)> {
    let zbus::Variant::Structure(cursor) = screen.get("cursor")? else { return None };
    match cursor.fields() {
        [zbus::Variant::U16(column), zbus::Variant::U16(row)] => {
            Some(((*column).into(), (*row).into()))
        }
        _ => None,
    }
}

/// Rows without secrets. Of a private key each row is hidden by itself, so that others stay where they are.
fn redacted(rows: &[&str], columns: u64) -> Vec<String> {
    let fills = |row: &str| row.chars().count() as u64 >= columns;
    // In a box each row fills its own, and goes on nowhere.
    let of_keys: Vec<_> = of_keys(rows, fills).into_iter().zip(of_keys(rows, |_| false)).collect();
    let mut shown = Vec::new();
    let mut rest = 0;
    for (index, (row, of_key)) in rows.iter().zip(of_keys).enumerate() {
        let (joined, alone) = of_key;
        let Some(part) = joined.into_iter().chain(alone).reduce(both) else { continue };
        shown.extend(redacted_lines(&rows[rest..index], fills));
        let (before, after) = (text::redact(&row[..part.start]), text::redact(&row[part.end..]));
        shown.push(format!("{before}{}{after}", text::REDACTED));
        rest = index + 1;
    }
    shown.extend(redacted_lines(&rows[rest..], fills));
    shown
}

/// What of each row is of a private key, where some rows go on in the next.
fn of_keys(rows: &[&str], goes_on: impl Fn(&str) -> bool) -> Vec<Option<Range<usize>>> {
    let mut text = String::new();
    let mut places = Vec::new();
    for row in rows {
        places.push(text.len());
        text.push_str(row);
        text.push_str(if goes_on(row) { "" } else { "\n" });
    }
    let keys = text::private_keys(&text);
    let within = |(row, place): (&&str, usize)| {
        let parts = keys.iter().map(|key| {
            let at = |at: usize| at.clamp(place, place + row.len()) - place;
            at(key.start)..at(key.end)
        });
        let parts = parts.filter(|part| !part.is_empty());
        parts.reduce(both)
    };
    rows.iter().zip(places).map(within).collect()
}

fn both(one: Range<usize>, other: Range<usize>) -> Range<usize> {
    one.start.min(other.start)..one.end.max(other.end)
}

/// Rows without other secrets. One that fills its row may go on in the next: where rows together hold a secret that none
/// holds alone, they are given as the one line that they are.
fn redacted_lines(rows: &[&str], fills: impl Fn(&str) -> bool) -> Vec<String> {
    let mut shown = Vec::new();
    let mut rest = rows;
    while let Some(first) = rest.iter().position(|row| !fills(row)).or(rest.len().checked_sub(1)) {
        let (together, after) = rest.split_at(first + 1);
        shown.extend(redacted_together(together));
        rest = after;
    }
    shown
}

fn redacted_together(rows: &[&str]) -> Vec<String> {
    let alone: Vec<_> = rows.iter().map(|row| text::redact(row)).collect();
    let joined = alone.concat();
    if text::redact(&joined) == joined { alone } else { vec![text::redact(&rows.concat())] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_wraps_is_not_shown() {
        let rows = [
            "$ export X_TOKEN=abc",
            "defghij",
            "│ a box of width 20│",
            "│ token=sesame !   │",
            "plain",
        ];
        let shown = redacted(&rows, 20);
        let text = shown.join("\n");
        assert!(
            !text.contains("abc") && !text.contains("defghij") && !text.contains("sesame"),
            "{text}"
        );
        assert!(text.contains("X_TOKEN=") && text.ends_with("plain"), "{text}");
    }

    #[test]
    fn rows_without_secrets_stay_as_they_are() {
        let rows = ["│ a box of width 20│", "│ another row      │", "", "plain"];
        assert_eq!(redacted(&rows, 20), rows);
        assert!(redacted(&[], 20).is_empty());
    }

    const KEY: [&str; 5] = [
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW",
        "QyNTUxOQAAACBvQ2pQZ0xXbEtWc3RYb1l6QWJDZEVmR2hJaktsTW5PcFFyU3RVdld4WXoA",
        "AAAEDx7v0/sZ==",
        "-----END OPENSSH PRIVATE KEY-----",
    ];

    fn assert_hides(rows: &[&str], columns: usize, expected: &[&str]) {
        assert_eq!(redacted(rows, columns as u64), expected, "{rows:?} in {columns}");
    }

    #[test]
    fn a_private_key_is_not_shown() {
        let rows = [&["$ cat id_rsa"], &KEY[..], &["$ echo done", "", "plain"]].concat();
        let hidden = [text::REDACTED; 5];
        let expected = [&["$ cat id_rsa"], &hidden[..], &["$ echo done", "", "plain"]].concat();
        for columns in [120, 70, 71] {
            assert_hides(&rows, columns, &expected);
        }
    }

    #[test]
    fn a_private_key_without_end_is_hidden_to_the_end_of_the_screen() {
        let rows = ["k: -----BEGIN PRIVATE KEY-----", KEY[1], "│ not base64 │", "", KEY[3]];
        let expected = ["k: [redacted]", "[redacted]", "[redacted]", "", "[redacted]"];
        assert_hides(&rows, 120, &expected);
    }

    #[test]
    fn a_private_key_that_begins_above_the_screen_is_not_shown() {
        let hidden = text::REDACTED;
        for from in 1..4 {
            let rows = [&KEY[from..], &["$ ls", "src"]].concat();
            let expected = [&[hidden; 5][from..], &["$ ls", "src"]].concat();
            assert_hides(&rows, 120, &expected);
        }
        let headers = ["DEK-Info: AES-128-CBC,0", "", KEY[2], KEY[3], KEY[4], "$"];
        let expected = ["DEK-Info: AES-128-CBC,0", "", hidden, hidden, hidden, "$"];
        assert_hides(&headers, 120, &expected);
        assert_hides(&[KEY[1], KEY[2]], 120, &[hidden; 2]);
        assert_hides(&[KEY[1], KEY[2], ":"], 120, &[hidden, hidden, ":"]);
    }

    #[test]
    fn a_private_key_in_rows_of_a_box_or_with_numbers_is_not_shown() {
        for number in [false, true] {
            let row = |(at, line): (usize, &&str)| match number {
                false => format!("│ {line:<71}│"),
                true => format!("{at:>4} {line}"),
            };
            let rows: Vec<String> = KEY.iter().enumerate().map(row).collect();
            for from in 0..5 {
                let rows: Vec<&str> = rows[from..].iter().map(String::as_str).collect();
                let shown = redacted(&rows, 74).join("\n");
                assert!(!KEY[1..4].iter().any(|line| shown.contains(&line[..9])), "{shown}");
                assert_eq!(shown.lines().count(), rows.len());
            }
        }
    }

    #[test]
    fn a_private_key_that_wraps_is_not_shown() {
        for columns in [20, 33, 40] {
            let mut rows = Vec::new();
            for line in KEY {
                rows.extend(
                    line.as_bytes().chunks(columns).map(|row| str::from_utf8(row).unwrap()),
                );
            }
            for from in 0..rows.len() - 1 {
                let rows = [&rows[from..], &["$"]].concat();
                let shown = redacted(&rows, columns as u64);
                // Half of a mark is none, and tells nothing.
                let body = KEY[1..4].concat();
                assert!(!shown.iter().any(|row| body.contains(row.as_str())), "{shown:?}");
                assert!(shown.len() == rows.len() && shown.ends_with(&["$".to_owned()]));
            }
        }
    }

    #[test]
    fn what_only_looks_a_little_like_a_key_stays() {
        let hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let public = ["-----BEGIN PUBLIC KEY-----", "MIIB", "-----END PUBLIC KEY-----"];
        assert_hides(&[hash, hash], 120, &[hash, hash]);
        assert_hides(&["Cargo", "src", "target"], 120, &["Cargo", "src", "target"]);
        assert_hides(&public, 120, &public);
        assert_hides(&["$ base64 x", KEY[1]], 120, &["$ base64 x", KEY[1]]);
    }
}
