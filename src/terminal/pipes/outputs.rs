//! What a tool wrote on its two outputs: two rings, one order.

use super::order::{Order, Source};
use crate::terminal::{
    output::{Chunk, ReadError},
    pool::RingPool,
    ring::Ring,
};

/// Two outputs, each with a ring of its own, so that a flood of one takes no byte of the other; and the order in which
/// the bytes of both were read.
#[derive(Debug)]
pub(in crate::terminal) struct Outputs {
    rings: [Ring; 2],
    order: Order,
    /// Which outputs have ended.
    over: [bool; 2],
}

impl Outputs {
    /// Both rings have half of `ring_bytes`, and at least [`Ring::MIN_CAPACITY`].
    pub(super) fn new(ring_bytes: usize, pool: &RingPool) -> Self {
        let rings = Source::BOTH.map(|_| Ring::new(ring_bytes / 2, pool));
        Self { rings, order: Order::new(pool), over: [false; 2] }
    }

    /// Takes what the tool wrote. Never waits.
    pub(super) fn append(&mut self, source: Source, bytes: &[u8]) {
        self.order.push(source, bytes.len());
        self.rings[source.index()].append(bytes, |_, _| ());
        self.order.forget([0, 1].map(|ring| self.rings[ring].begin()));
    }

    /// How many bytes there have been, of one source or of both.
    pub(super) fn end(&self, source: Option<Source>) -> u64 {
        source.map_or_else(|| self.order.end(), |source| self.rings[source.index()].end())
    }

    /// How many bytes can be read no longer, neither by source nor in order.
    pub(super) fn dropped(&self) -> u64 {
        self.rings.iter().map(Ring::begin).sum()
    }

    /// Nothing more will come from this source: it was closed by all who could write to it.
    pub(super) fn close(&mut self, source: Source) {
        self.over[source.index()] = true;
    }

    /// Nothing more will come: what is retained stays readable.
    pub(super) fn finish(&mut self) {
        self.over = [true; 2];
        self.order.settle();
        self.rings.iter_mut().for_each(Ring::settle);
    }

    /// Whether nothing more will come, of one source or of both.
    pub(in crate::terminal) fn is_over(&self, source: Option<Source>) -> bool {
        source.map_or(self.over == [true; 2], |source| self.over[source.index()])
    }

    /// Up to `max` retained bytes from `cursor` on, or from the first retained one after it; of both sources, only as
    /// far as none is missing between them.
    pub(super) fn read(
        &self,
        source: Option<Source>,
        cursor: u64,
        max: usize,
    ) -> Result<Chunk, ReadError> {
        let end = self.end(source);
        if cursor > end {
            return Err(ReadError::BadCursor { cursor, end });
        }
        let (begin, bytes) = match source {
            Some(source) => {
                let ring = &self.rings[source.index()];
                let begin = cursor.max(ring.begin());
                (begin, ring.copy(begin, max))
            }
            None => self.in_order(cursor, max),
        };
        let next = begin + bytes.len() as u64;
        Ok(Chunk { bytes, begin, next, eof: self.is_over(source) && next == end })
    }

    fn in_order(&self, cursor: u64, max: usize) -> (u64, Vec<u8>) {
        let (mut begin, mut bytes) = (None, Vec::new());
        for run in self.order.runs(cursor) {
            let ring = &self.rings[run.source.index()];
            let missing = ring.begin().saturating_sub(run.from).min(run.length);
            if missing > 0 && begin.is_some() {
                break;
            }
            if missing == run.length {
                continue;
            }
            begin.get_or_insert(run.at + missing);
            let kept = usize::try_from(run.length - missing).unwrap_or(usize::MAX);
            bytes.extend(ring.copy(run.from + missing, kept.min(max - bytes.len())));
            if bytes.len() == max {
                break;
            }
        }
        (begin.unwrap_or(self.order.end()), bytes)
    }
}

#[cfg(test)]
mod tests;
