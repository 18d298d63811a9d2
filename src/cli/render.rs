//! The bus's dictionaries as lines for a person.

use zbus::{Array, Signature, Variant};

use super::human::{self, visible};
use crate::client::Dict;

/// One line a key: those of `order` first, the others by name; what is empty is left out.
pub(super) fn fields(dict: &Dict, order: &[&str]) -> String {
    fields_but(dict, order, &[])
}

/// The same, without these keys.
pub(super) fn fields_but(dict: &Dict, order: &[&str], without: &[&str]) -> String {
    let known = order.iter().filter_map(|key| dict.get(key).map(|value| (*key, value)));
    let is_other = |key: &str| !order.contains(&key) && !without.contains(&key);
    let others = dict.iter().filter(|(key, _)| is_other(key));
    let mut lines = Vec::new();
    for (key, value) in known.chain(others) {
        field(&mut lines, 0, key, value);
    }
    aligned(&lines)
}

/// The value of a key in one line; empty where it is not there.
pub(super) fn value(dict: &Dict, key: &str) -> String {
    dict.get(key).map(|value| scalar(key, value)).unwrap_or_default()
}

/// How a session ended, in a few words: `exit 1`, `SIGKILL (oom-kill)`.
pub(super) fn outcome(dict: &Dict) -> String {
    let how = match dict.text("kind") {
        Some("exited") => format!("exit {}", dict.signed("code").unwrap_or_default()),
        Some("signaled") => visible(dict.text("signal").unwrap_or("a signal")),
        Some("failed") => format!("failed: {}", visible(dict.text("message").unwrap_or_default())),
        _ => "unknown".into(),
    };
    let why = match dict.text("reason") {
        Some("exit") | None => how,
        Some(reason) => format!("{how} ({})", visible(reason)),
    };
    match dict.number("survivors") {
        Some(survivors @ 1..) => format!("{why}, {survivors} processes not confirmed dead"),
        _ => why,
    }
}

/// A line before it is aligned: its depth, its name and its value.
type Line = (usize, String, String);

fn field(lines: &mut Vec<Line>, depth: usize, key: &str, value: &Variant<'_>) {
    match value {
        Variant::Variant(inner) => field(lines, depth, key, inner),
        Variant::Dict(dict) => {
            if dict.iter().next().is_some() {
                lines.push((depth, visible(key), String::new()));
            }
            for (key, value) in dict.iter() {
                field(lines, depth + 1, &scalar("", key), value);
            }
        }
        _ => {
            let text = scalar(key, value);
            if !text.is_empty() {
                lines.push((depth, visible(key), text));
            }
        }
    }
}

fn scalar(key: &str, value: &Variant<'_>) -> String {
    match value {
        Variant::U8(n) => n.to_string(),
        Variant::U16(n) => n.to_string(),
        Variant::U32(n) => n.to_string(),
        Variant::U64(n) => number(key, *n),
        Variant::I16(n) => n.to_string(),
        Variant::I32(n) => n.to_string(),
        Variant::I64(n) => n.to_string(),
        Variant::F64(n) => n.to_string(),
        Variant::Bool(flag) => if *flag { "yes" } else { "no" }.into(),
        Variant::Str(text) => visible(text.as_str()),
        Variant::ObjectPath(path) => path.to_string(),
        Variant::Signature(signature) => signature.to_string(),
        Variant::Variant(inner) => scalar(key, inner),
        Variant::Array(array) => list(key, array),
        Variant::Structure(structure) => words(key, structure.fields()),
        Variant::Dict(_) | Variant::Fd(_) => String::new(),
    }
}

/// A command is shown as a shell would read it; other lists as words.
fn list(key: &str, array: &Array<'_>) -> String {
    let is_command = matches!(key, "Command" | "command" | "argv");
    if is_command && *array.element_signature() == Signature::Str {
        let words: Vec<&str> = array
            .inner()
            .iter()
            .filter_map(|word| match word {
                Variant::Str(word) => Some(word.as_str()),
                _ => None,
            })
            .collect();
        return human::command_line(&words);
    }
    words(key, array.inner())
}

fn words(key: &str, values: &[Variant<'_>]) -> String {
    values.iter().map(|value| scalar(key, value)).collect::<Vec<_>>().join(", ")
}

/// What a number counts shows in the end of its name.
fn number(key: &str, n: u64) -> String {
    let lower = key.to_ascii_lowercase();
    if n == 0
        && ["memory_max", "tasks_max", "timeout_ms", "silence_timeout_ms"].contains(&lower.as_str())
    {
        return "none".into();
    }
    let is_moment = [
        "createdusec",
        "started_usec",
        "ended_usec",
        "lastactivityusec",
        "expires_usec",
        "gracedeadlineusec",
    ]
    .contains(&lower.as_str());
    if is_moment {
        return if n == 0 { String::new() } else { human::relative(n, human::now_usec()) };
    }
    if lower == "cpu_usec" {
        return human::milliseconds(n / 1000);
    }
    if lower.ends_with("_ms") {
        return human::milliseconds(n);
    }
    let is_bytes =
        lower.starts_with("bytes") || lower.ends_with("_bytes") || lower.starts_with("memory_");
    if is_bytes { human::bytes(n) } else { n.to_string() }
}

fn aligned(lines: &[Line]) -> String {
    let width = |(depth, key, _): &Line| depth * 2 + key.chars().count();
    let widest = lines.iter().map(width).max().unwrap_or(0);
    let mut text = String::new();
    for line in lines {
        let (depth, key, value) = line;
        let pad = widest - width(line);
        let row = format!("{:indent$}{key}{:pad$}  {value}", "", "", indent = depth * 2);
        text += row.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn fields_come_in_the_order_of_reading_and_nothing_empty() {
        let dict = Dict::new()
            .with("Zeta", 1_u32)
            .with("Owner", "")
            .with("Labels", BTreeMap::from([("agent".to_owned(), "a\u{1b}".to_owned())]))
            .with("Command", vec!["git".to_owned(), "a b".to_owned()])
            .with("BytesOut", 2048_u64)
            .with("GraceDeadlineUsec", 0_u64)
            .with("Paused", false);
        assert_eq!(
            fields(&dict, &["Command", "Labels"]),
            "Command   git 'a b'\n\
             Labels\n  \
               agent   a\\u{1b}\n\
             BytesOut  2 KiB\n\
             Paused    no\n\
             Zeta      1\n"
        );
    }

    #[test]
    fn a_limit_of_nothing_is_none() {
        let dict = Dict::new().with("grace_ms", 0_u64).with("timeout_ms", 0_u64);
        assert_eq!(fields(&dict, &[]), "grace_ms    0ms\ntimeout_ms  none\n");
    }

    #[test]
    fn an_outcome_is_told_in_a_few_words() {
        let exited = Dict::new().with("kind", "exited").with("code", 1_i32).with("reason", "exit");
        assert_eq!(outcome(&exited), "exit 1");
        let killed = Dict::new()
            .with("kind", "signaled")
            .with("signal", "SIGKILL")
            .with("reason", "oom-kill")
            .with("survivors", 2_u32);
        assert_eq!(outcome(&killed), "SIGKILL (oom-kill), 2 processes not confirmed dead");
    }
}
