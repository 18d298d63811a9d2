//! Durations and sizes, as they are typed.

use std::time::Duration;

/// A text that is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a duration is a number of seconds, or numbers with ms, s, m, h or d: 10s, 1m30s, 250ms")]
pub(super) struct DurationError;

/// A text that is no size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a size is a number of bytes, or a number with K, M, G or T (powers of 1024): 256M")]
pub(super) struct SizeError;

/// Reads `10s`, `1m30s`, `250ms` or plain seconds.
pub(super) fn duration(text: &str) -> Result<Duration, DurationError> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let (part, after) = part(rest)?;
        total = total.checked_add(part).ok_or(DurationError)?;
        rest = after;
    }
    if text.is_empty() { Err(DurationError) } else { Ok(total) }
}

/// One number and its unit, and what follows.
fn part(text: &str) -> Result<(Duration, &str), DurationError> {
    let split = |text: &str, by: fn(char) -> bool| text.find(by).unwrap_or(text.len());
    let (number, rest) = text.split_at(split(text, |c| !c.is_ascii_digit()));
    let (unit, rest) = rest.split_at(split(rest, |c| c.is_ascii_digit()));
    let number: u64 = number.parse().map_err(|_| DurationError)?;
    let factor = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(DurationError),
    };
    let ms = number.checked_mul(factor).ok_or(DurationError)?;
    Ok((Duration::from_millis(ms), rest))
}

/// Reads `4096`, `256K`, `1G`.
pub(super) fn size(text: &str) -> Result<u64, SizeError> {
    let shift = match text.chars().last() {
        Some('K') => 10,
        Some('M') => 20,
        Some('G') => 30,
        Some('T') => 40,
        _ => 0,
    };
    let number = if shift == 0 { text } else { &text[..text.len() - 1] };
    let number: u64 = number.parse().map_err(|_| SizeError)?;
    number.checked_mul(1 << shift).ok_or(SizeError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type_is_read() {
        assert_eq!(duration("10"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("256M"), Ok(256 << 20));
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in ["", "s", "10x", "-1", "1.5s", "10 s", "99999999999999999999", "1m30"] {
            assert_eq!(duration(text), Err(DurationError), "{text:?}");
        }
        assert_eq!(duration(&format!("{}d", u64::MAX)), Err(DurationError));
        for text in ["", "K", "1Q", "-1", "1.5M", "99999999999T"] {
            assert_eq!(size(text), Err(SizeError), "{text:?}");
        }
    }
}
