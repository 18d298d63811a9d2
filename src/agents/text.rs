//! The bytes of a terminal as text for a model: read as a terminal would, and without secrets.
//!
//! [`Text`] is the stream: bytes in, text out. [`Transcript`] keeps the text and says which bytes it came of, for readers that
//! come back with a cursor.
//!
//! # What becomes of the bytes
//!
//! - It is a log, not the screen. Within a line, what overwrites is what remains: a progress bar is its last state. A cursor
//!   that goes to another line leaves what it drew as a line of its own. Sequences, titles and hyperlinks are dropped.
//! - Characters that show nothing are dropped, since a model would read what no person sees; tabs stay. What is not UTF-8
//!   becomes U+FFFD.
//! - What looks like a secret becomes [`REDACTED`], its name stays: a value after a name such as `password`, what well-known
//!   services' keys look like, passwords in addresses, private keys. This keeps accidents from a model's provider; a tool that
//!   wants to say something to a model in other words can.
//!
//! # Where a secret may be cut
//!
//! Nowhere. A line is looked at whole, up to 8 KiB; of a longer one, all but the last KiB is decided, and whether the
//! rest is inside a secret is remembered. What of an unfinished line could still turn into a secret is held back. A private key,
//! a quoted value, or the rest of a line that never ends is hidden for 64 KiB. After lost output all is hidden up to the next
//! line feed, and then all that could be of a private key.
//!
//! # What is not hidden
//!
//! A value without quotes from its first space on, and in quotes from the end of its line on. What of a value is put by the
//! cursor where nobody reads it after its name, or in a line whose name had been given out before it was changed. Where the
//! name stands apart, in another column or on another line; and a secret that neither looks like one nor is named so.
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod hostile;
mod ignorable;
mod line;
mod parser;
mod row;
mod secrets;
mod sequence;
mod transcript;
mod writer;

pub use row::REDACTED;
pub use secrets::private_keys;
pub use transcript::{Bounds, Lines, MIN_BYTES, Piece, Tail, Transcript};

use parser::Parser;

/// A text that is known whole (an argument, a message) without its secrets.
#[must_use]
pub fn redact(text: &str) -> String {
    let mut stream = Text::new();
    let mut redacted = stream.feed(text.as_bytes());
    redacted.push_str(&stream.finish());
    redacted
}

/// Where the first `bytes` of a text without secrets end, cutting neither a character nor what stands for a secret.
#[must_use]
pub fn begin_within(text: &str, bytes: usize) -> usize {
    if text.len() <= bytes {
        return text.len();
    }
    row::places(text).take_while(|&place| place <= bytes).last().unwrap_or(0)
}

/// Bytes in, text out; fed in any pieces, the text is the same.
///
/// What is held back is the line being written: of a longer one than 8 KiB its last few KiB.
#[derive(Debug, Default)]
pub struct Text {
    parser: Parser,
}

impl Text {
    /// The beginning of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes, and gives the text of the lines that are finished.
    pub fn feed(&mut self, bytes: &[u8]) -> String {
        self.parser.feed(bytes);
        self.taken()
    }

    /// Gives what is certain of the line that is being written. What then overwrites it is a line of its own.
    pub fn settle(&mut self) -> String {
        self.parser.writer().settle();
        self.taken()
    }

    /// Gives the rest.
    pub fn finish(&mut self) -> String {
        self.parser.finish();
        self.taken()
    }

    fn taken(&mut self) -> String {
        self.parser.writer().take_rows().into_iter().map(|row| row.text).collect()
    }
}

#[cfg(test)]
mod tests;
