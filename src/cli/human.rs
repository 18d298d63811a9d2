//! Numbers and texts as a person reads them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A text without what a terminal would obey: control characters are shown escaped.
pub(super) fn visible(text: &str) -> String {
    let unsafe_to_show = |c: char| {
        // Bidirectional overrides reorder what stands around them.
        c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(unsafe_to_show) {
        return text.to_owned();
    }
    text.chars()
        .map(|c| if unsafe_to_show(c) { c.escape_default().to_string() } else { c.to_string() })
        .collect()
}

/// One word of a shell's command line: quoted where the shell would read it otherwise.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "%+,-./:=@_".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", visible(word).replace('\'', r"'\''"))
    }
}

/// A command line that a shell would read as these words.
pub(super) fn command_line(words: &[&str]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// The same for one cell of a table: a word of several lines, such as a script, is only hinted at.
pub(super) fn command_summary(words: &[&str]) -> String {
    let summary = |word: &&str| if word.contains('\n') { "…".to_owned() } else { quoted(word) };
    words.iter().map(summary).collect::<Vec<_>>().join(" ")
}

/// Now, µs since the epoch.
pub(super) fn now_usec() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// A moment, as seen from another: `3m ago`, `in 8s`, `now`.
pub(super) fn relative(usec: u64, now: u64) -> String {
    let apart = span(Duration::from_micros(usec.abs_diff(now)));
    match apart.as_str() {
        "0s" => "now".into(),
        _ if usec <= now => format!("{apart} ago"),
        _ => format!("in {apart}"),
    }
}

/// A duration in its largest whole unit.
pub(super) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// An exact number of milliseconds: `1.5s`, `250ms`.
pub(super) fn milliseconds(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms}ms"),
        _ if ms.is_multiple_of(1000) => format!("{}s", ms / 1000),
        _ => format!("{}.{:03}s", ms / 1000, ms % 1000).replace("00s", "s").replace("0s", "s"),
    }
}

/// A number of bytes: exact where it is small or whole, else to one decimal.
pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (unit, shift) in UNITS {
        let size = 1_u64 << shift;
        if bytes >= size {
            let (whole, tenth) = (bytes / size, bytes % size / (size / 10));
            let text = if bytes.is_multiple_of(size) {
                format!("{whole}")
            } else {
                format!("{whole}.{}", tenth.min(9))
            };
            return format!("{text} {unit}");
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_shown_moves_the_cursor() {
        assert_eq!(visible("a\u{1b}[31mb\n"), r"a\u{1b}[31mb\n");
        assert_eq!(visible("\u{9b}31m\u{202e}x"), r"\u{9b}31m\u{202e}x");
        assert_eq!(visible("größe ✓"), "größe ✓");
    }

    #[test]
    fn words_are_quoted_only_where_needed() {
        assert_eq!(
            command_line(&["git", "add", "-p", "a b", "", "it's"]),
            r"git add -p 'a b' '' 'it'\''s'"
        );
    }

    #[test]
    fn times_are_told_from_now() {
        let minute = 60_000_000;
        assert_eq!(relative(10 * minute, 13 * minute), "3m ago");
        assert_eq!(relative(13 * minute, 10 * minute), "in 3m");
        assert_eq!(relative(5, 500_000), "now");
        assert_eq!(span(Duration::from_secs(2 * 86_400 + 5)), "2d");
    }

    #[test]
    fn durations_and_sizes_are_not_rounded_up() {
        assert_eq!(milliseconds(250), "250ms");
        assert_eq!(milliseconds(10_000), "10s");
        assert_eq!(milliseconds(1500), "1.5s");
        assert_eq!(milliseconds(1050), "1.05s");
        assert_eq!(bytes(4096), "4 KiB");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes((1 << 20) - 1), "1023.9 KiB");
    }
}
