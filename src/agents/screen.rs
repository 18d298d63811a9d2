//! The tool `screen`.

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

/// Rows without secrets. One that fills its row may go on in the next: where rows together hold a secret that none
/// holds alone, they are given as the one line that they are.
fn redacted(rows: &[&str], columns: u64) -> Vec<String> {
    let fills = |row: &&str| row.chars().count() as u64 >= columns;
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
}
