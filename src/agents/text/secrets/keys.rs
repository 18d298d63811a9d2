//! Private keys, which are secret from one mark to another.

use std::{iter, ops::Range, sync::LazyLock};

use regex::Regex;

/// The mark that a private key begins with, as a regular expression.
pub(super) const BEGIN: &str = "-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----";
/// The mark that one ends with.
pub(super) const END: &str = "-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----";
/// The shortest full line of a key, in characters: RFC 7468 has 64, OpenSSH 70. On a narrow terminal a row is shorter.
const FULL_LINE: usize = 60;

static KEY_BEGIN: LazyLock<Regex> = LazyLock::new(|| super::expression(BEGIN));
pub(super) static KEY_END: LazyLock<Regex> = LazyLock::new(|| super::expression(END));

/// Whether a line could be one of a private key's: base64 alone.
pub(in super::super) fn may_be_of_key(line: &str) -> bool {
    line.trim().bytes().all(is_base64)
}

/// Where the mark at the end of a private key ends.
pub(in super::super) fn key_end(text: &str) -> Option<usize> {
    KEY_END.find(text).map(|found| found.end())
}

/// Where private keys are in a text that is seen through a window, as on a screen: each from its first mark to its last, or else to
/// the end of the text.
///
/// Of one that begins before the text: up to its last mark, from the first of the lines right above that are base64 alone; and
/// the lines that the text begins with, if they are base64 alone and as long as a key's.
#[must_use]
pub fn private_keys(text: &str) -> Vec<Range<usize>> {
    let mut at = 0;
    let whole = iter::from_fn(|| {
        let begin = KEY_BEGIN.find_at(text, at)?.start();
        at = KEY_END.find_at(text, begin).map_or(text.len(), |found| found.end());
        Some(begin..at)
    });
    let whole: Vec<_> = whole.collect();
    let before = &text[..whole.first().map_or(text.len(), |key| key.start)];
    [lines_of_key(before), end_of_key(before)].into_iter().flatten().chain(whole).collect()
}

fn lines_of_key(text: &str) -> Option<Range<usize>> {
    let lines = text.split_inclusive('\n').take_while(|line| is_row_of_key(line));
    let (mut end, mut full) = (0, false);
    for line in lines {
        end += line.len();
        let body = body(line);
        // A hash is no key, nor are many.
        full |= body.len() >= FULL_LINE && !body.bytes().all(|byte| byte.is_ascii_hexdigit());
    }
    full.then_some(0..end)
}

fn end_of_key(text: &str) -> Option<Range<usize>> {
    let mark = KEY_END.find(text)?;
    let line = text[..mark.start()].rfind('\n').map_or(0, |at| at + 1);
    let above = text[..line].split_inclusive('\n').rev();
    let length: usize = above.take_while(|line| is_row_of_key(line)).map(str::len).sum();
    Some(line - length..mark.end())
}

/// Whether a row of a screen could be one of a key's, be it numbered or in a box.
fn is_row_of_key(row: &str) -> bool {
    let body = body(row);
    !body.is_empty() && may_be_of_key(body)
}

/// A row without what may be drawn around it: the edges of a box, a line's number.
fn body(row: &str) -> &str {
    let row = row.trim_matches(|c: char| !u8::try_from(c).is_ok_and(is_base64));
    let number = row.bytes().take_while(u8::is_ascii_digit).count();
    let after = &row[number..];
    match after.starts_with(|c: char| c.is_whitespace() || c == ':' || c == '│') {
        true => after.trim_start_matches(|c: char| !u8::try_from(c).is_ok_and(is_base64)),
        false => row,
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
}
