//! What in a text looks like a secret.

use std::{ops::Range, sync::LazyLock};

use regex::{Captures, Regex};

mod keys;
mod shapes;

pub use keys::private_keys;
pub(super) use keys::{key_end, may_be_of_key};

/// How much of what follows must be known to tell whether something begins a secret: the longest name or address with a
/// password, white space between name and value included.
pub(super) const LOOK_AHEAD: usize = 1 << 10;
/// White space between a name and its value, in bytes.
const MAX_SPACE: usize = 256;
/// A user's name or a password in an address, in bytes.
const MAX_USERINFO: usize = 256;

/// What goes before a secret, or begins one that goes on up to a mark.
const NAMES: &str = r#"(?x:
        (?P<rest> (?i: authorization | cookie | passphrase ) \\{0,3} ["'`]? [\ \t]{0,16} [:=] )
      | (?P<name> (?i: password | passwd | secret (?: [\ _-]? (?:access[\ _-]?)? key )? | api[\ _-]?key
                        | private[\ _-]?key | token )
                  \\{0,3} ["'`]? [\ \t]{0,16} (?: \[ [^\[\]\n]{0,32} \] )? [:=] )
      | (?P<option> -- (?:[a-z0-9]+-){0,4} (?: password | passwd | passphrase | secret | api-?key | token ) [\ \t] )
      | (?P<bearer> (?i: bearer ) [\ \t] )
      | (?P<address> [A-Za-z][A-Za-z0-9+.-]{0,31} :// [!-~&&[^/?\#:@]]{0,256} : )
    )"#;

static BEGINNING: LazyLock<Regex> = LazyLock::new(|| {
    expression(&format!("(?P<key>{})|{NAMES}|(?P<shape>{})", keys::BEGIN, shapes::whole()))
});

/// Where a shape begins that is not yet long enough to be one.
static SHAPE_BEGUN: LazyLock<Regex> = LazyLock::new(|| expression(&shapes::begun()));

/// Where an address begins that may turn out to have a password.
static ADDRESS_BEGUN: LazyLock<Regex> =
    LazyLock::new(|| expression(r"[A-Za-z][A-Za-z0-9+.-]{0,31}://[!-~&&[^/?#]]*$"));

/// Up to where a secret goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// White space.
    Space,
    /// What a token has none of.
    Token,
    /// This quote, where no backslash goes before it; or any, where the quote that opened it had one.
    Quote { quote: u8, escaped: bool },
    /// The end of the line.
    Line,
    /// The mark at the end of a private key.
    KeyEnd,
}

/// A secret, and what says that it is one.
#[derive(Debug)]
struct Found {
    from: usize,
    secret: Range<usize>,
    until: Until,
    /// The text ended first.
    open: bool,
}

/// The secrets of one piece of text.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    found: Vec<Found>,
}

impl Secrets {
    /// Looks for secrets in a text, whose beginning may be inside one. Time is linear in the length.
    pub(super) fn of(text: &str, inside: Option<Until>) -> Self {
        let mut secrets = Self::default();
        let mut at = 0;
        if let Some(until) = inside {
            let end = secrets.add(text, 0, 0, until);
            // Only what is not of a key is read again: a quoted value may hold another name.
            at = if until == Until::KeyEnd { end } else { 0 };
        }
        while let Some(captures) = BEGINNING.captures_at(text, at) {
            at = secrets.take(text, &captures);
        }
        secrets
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The bytes that are secret: in order, and apart.
    pub(super) fn ranges(&self) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for secret in
            self.found.iter().map(|found| &found.secret).filter(|secret| !secret.is_empty())
        {
            match ranges.last_mut() {
                Some(last) if secret.start <= last.end => last.end = last.end.max(secret.end),
                _ => ranges.push(secret.clone()),
            }
        }
        ranges
    }

    /// What a text that goes on at the end of this one would be inside of.
    pub(super) fn inside_at_end(&self) -> Option<Until> {
        self.found.iter().filter(|found| found.open).map(|found| found.until).max_by_key(reach)
    }

    /// The nearest place at or before `at` where this text may be cut, and what the rest is inside of. Everything up to there
    /// is known if [`LOOK_AHEAD`] bytes follow.
    pub(super) fn cut(&self, text: &str, mut at: usize) -> (usize, Option<Until>) {
        let between = |found: &&Found| found.from < at && at < found.secret.start;
        if let Some(found) = self.found.iter().find(between) {
            at = found.from;
        }
        let around =
            |found: &&Found| found.secret.start <= at && (at < found.secret.end || found.open);
        let inside = self.found.iter().filter(around);
        let Some(widest) = inside.max_by_key(|found| reach(&found.until)) else {
            return (at, None);
        };
        if matches!(widest.until, Until::Quote { .. }) {
            at -= marks_before(&text[widest.secret.start..at]) % 2;
        }
        (at, Some(widest.until))
    }

    /// Takes what begins a secret, and returns where to look on.
    fn take(&mut self, text: &str, captures: &Captures<'_>) -> usize {
        let whole = captures.get_match();
        let (from, end) = (whole.start(), whole.end());
        let named = |name| captures.name(name).is_some();
        if named("key") {
            return self.add(text, from, from, Until::KeyEnd);
        }
        if named("shape") {
            return self.add(text, from, from, Until::Token);
        }
        if named("address") {
            if let Some(password) = password(text, end) {
                self.found.push(Found { from, secret: password, until: Until::Space, open: false });
            }
            return end;
        }
        let otherwise = if named("rest") { Until::Line } else { Until::Space };
        if let Some((start, until)) = value(text, end, otherwise) {
            self.add(text, from, start, until);
        }
        end
    }

    fn add(&mut self, text: &str, from: usize, start: usize, until: Until) -> usize {
        // Text that is known to be secret is not looked through again for another end.
        let covered = self.found.last().map_or(0, |found| found.secret.end).max(start);
        let end = end_of(text, covered, until);
        let reached = end.unwrap_or(text.len());
        self.found.push(Found { from, secret: start..reached, until, open: end.is_none() });
        reached
    }
}

/// Where something begins, at or before the end of a text, that the text to come may turn into a secret.
pub(super) fn begun(text: &str) -> usize {
    let address = earliest(&ADDRESS_BEGUN, text);
    shape_begun(text).min(address)
}

/// Where a shape begins that the text ends in, too short to be one.
pub(super) fn shape_begun(text: &str) -> usize {
    earliest(&SHAPE_BEGUN, text)
}

/// Where the character begins that a byte at `at` is of, which is in the text or at its end.
pub(super) fn boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

fn earliest(expression: &Regex, text: &str) -> usize {
    let from = boundary(text, text.len().saturating_sub(LOOK_AHEAD));
    expression.find_at(text, from).map_or(text.len(), |found| found.start())
}

/// Where a value begins after its name, and up to where it goes.
fn value(text: &str, at: usize, otherwise: Until) -> Option<(usize, Until)> {
    let bytes = text.as_bytes();
    // `token::Kind` is a path of a program.
    if bytes[at - 1] == b':' && bytes.get(at) == Some(&b':') {
        return None;
    }
    let rest = &bytes[at..];
    let operator = rest.iter().take_while(|&&byte| byte == b'=' || byte == b'>').take(2).count();
    let space = rest[operator..].iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    if space > MAX_SPACE {
        return None;
    }
    let start = at + operator + space;
    Some(quoted(&bytes[start..]).map_or((start, otherwise), |(skip, until)| (start + skip, until)))
}

/// How many backslashes and quotes the text ends with: two by two they are of the value.
fn marks_before(value: &str) -> usize {
    value.bytes().rev().take_while(|byte| b"\\\"'`".contains(byte)).count()
}

/// The quote that a value begins with, after backslashes or the one or two letters that some languages put before it.
fn quoted(value: &[u8]) -> Option<(usize, Until)> {
    let escapes = value.iter().take(4).take_while(|&&byte| byte == b'\\').count();
    let letters = value.iter().take(2).take_while(|byte| byte.is_ascii_alphabetic()).count();
    let at = escapes.max(letters);
    let quote = *value.get(at).filter(|byte| b"\"'`".contains(byte))?;
    Some((at + 1, Until::Quote { quote, escaped: escapes > 0 }))
}

/// The password of an address, from where its user's name ends.
fn password(text: &str, start: usize) -> Option<Range<usize>> {
    let stop = boundary(text, (start + 2 * MAX_USERINFO).min(text.len()));
    let authority =
        text[start..stop].split(|c: char| c.is_whitespace() || "/?#".contains(c)).next()?;
    let end = start + authority.rfind('@')?;
    (end > start).then_some(start..end)
}

fn end_of(text: &str, from: usize, until: Until) -> Option<usize> {
    let rest = &text[from..];
    let end = match until {
        Until::Space => rest.find(char::is_whitespace),
        Until::Token => rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_.+/=~-".contains(c))),
        Until::Quote { quote, escaped } => quote_end(rest.as_bytes(), quote, escaped),
        Until::Line => rest.find('\n'),
        Until::KeyEnd => key_end(rest),
    };
    end.map(|end| from + end)
}

fn quote_end(bytes: &[u8], quote: u8, escaped: bool) -> Option<usize> {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if !escaped => at += 1,
            b'\n' => return Some(at),
            // The backslashes of the quote are not of the value.
            _ if byte == quote && escaped => {
                return Some(
                    bytes[..at].iter().rposition(|&byte| byte != b'\\').map_or(0, |last| last + 1),
                );
            }
            _ if byte == quote => match bytes[at + 1..] {
                // Doubled (YAML, SQL), as are the marks of a longer quote.
                [next, ..] if next == quote => at += 1,
                // As a shell has it: the quote ends, one comes by itself, the next begins.
                [b'\\', next, again, ..] if next == quote && again == quote => at += 3,
                _ => return Some(at),
            },
            _ => {}
        }
        at += 1;
    }
    None
}

/// Which of several secrets that go on hides the most.
fn reach(until: &Until) -> u8 {
    match until {
        Until::Token => 0,
        Until::Space => 1,
        Until::Quote { .. } => 2,
        Until::Line => 3,
        Until::KeyEnd => 4,
    }
}

fn expression(text: &str) -> Regex {
    Regex::new(text).expect("each is compiled by a test")
}

#[cfg(test)]
mod tests;
