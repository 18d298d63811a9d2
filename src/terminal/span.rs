//! Consecutive bytes of a session's output, addressed by their offset since the session began.

use std::{collections::VecDeque, fmt};

/// The bytes from `begin` to `end`.
#[derive(Default)]
pub(super) struct Span {
    begin: u64,
    bytes: VecDeque<u8>,
}

impl Span {
    pub(super) fn begin(&self) -> u64 {
        self.begin
    }

    pub(super) fn end(&self) -> u64 {
        self.begin + self.bytes.len() as u64
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Forgets everything, and its memory, and goes on from `begin`.
    pub(super) fn restart(&mut self, begin: u64) {
        *self = Self { begin, bytes: VecDeque::new() };
    }

    /// Makes room for `bytes` in all, and for no more than that.
    pub(super) fn allocate(&mut self, bytes: usize) {
        self.bytes.reserve_exact(bytes.saturating_sub(self.bytes.len()));
    }

    /// Gives memory beyond the bytes themselves back.
    pub(super) fn fit(&mut self) {
        self.bytes.shrink_to_fit();
    }

    pub(super) fn push(&mut self, more: &[u8]) {
        self.bytes.extend(more);
    }

    /// Drops up to `count` of the oldest bytes.
    pub(super) fn drop_oldest(&mut self, count: usize) {
        let count = count.min(self.bytes.len());
        self.bytes.drain(..count);
        self.begin += count as u64;
    }

    /// Goes on from `begin` with nothing kept, where bytes passed by without being stored.
    pub(super) fn skip_to(&mut self, begin: u64) {
        self.bytes.clear();
        self.begin = begin;
    }

    /// Up to `max` bytes from `cursor` on, in two pieces; both empty where `cursor` is outside.
    pub(super) fn slices(&self, cursor: u64, max: usize) -> (&[u8], &[u8]) {
        let Some(skip) = cursor.checked_sub(self.begin).and_then(|n| usize::try_from(n).ok())
        else {
            return (&[], &[]);
        };
        let (old, new) = self.bytes.as_slices();
        let old = &old[skip.min(old.len())..];
        let new = &new[skip.saturating_sub(self.bytes.len() - new.len()).min(new.len())..];
        let first = &old[..max.min(old.len())];
        (first, &new[..(max - first.len()).min(new.len())])
    }

    pub(super) fn copy(&self, cursor: u64, max: usize) -> Vec<u8> {
        let (first, second) = self.slices(cursor, max);
        [first, second].concat()
    }
}

impl fmt::Debug for Span {
    /// Shows the offsets only: terminal content is never logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Span({}..{})", self.begin, self.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_by_offset_across_the_wrap() {
        let mut span = Span::default();
        span.allocate(8);
        span.push(b"01234567");
        span.drop_oldest(5);
        span.push(b"89ab");
        assert_eq!((span.begin(), span.end()), (5, 12));
        assert_eq!(span.copy(5, 100), b"56789ab");
        assert_eq!(span.copy(7, 3), b"789");
        assert_eq!(span.copy(9, 0), b"");
        assert_eq!(span.copy(11, 9), b"b");
        assert_eq!(span.copy(12, 9), b"");
        assert_eq!(span.copy(4, 9), b"", "before the beginning");
        assert_eq!(span.copy(u64::MAX, 9), b"");
    }

    #[test]
    fn debug_shows_no_content() {
        let mut span = Span::default();
        span.push(b"secret");
        assert_eq!(format!("{span:?}"), "Span(0..6)");
    }
}
