//! In which order the bytes of two outputs were read.

use std::collections::VecDeque;

use crate::terminal::pool::{RingPool, Share};

/// One of the two outputs of a tool on pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Standard output.
    Output,
    /// Standard error.
    Stderr,
}

/// Which bytes of which output follow each other: a bounded list of pieces, neighbours of one source joined. Beyond the
/// bound the oldest piece is forgotten; its bytes can still be read by source.
#[derive(Debug)]
pub(super) struct Order {
    pieces: VecDeque<Piece>,
    /// How many bytes each source has had.
    ends: [u64; 2],
    share: Share,
}

/// From one offset of both together to where the next piece begins.
#[derive(Debug, Clone, Copy)]
struct Piece {
    at: u64,
    /// The offset in the source's own bytes.
    from: u64,
    source: Source,
}

/// Bytes of one source in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) source: Source,
    /// The offset among the bytes of both.
    pub(super) at: u64,
    /// The offset among the source's own.
    pub(super) from: u64,
    pub(super) length: u64,
}

impl Source {
    pub(super) const BOTH: [Self; 2] = [Self::Output, Self::Stderr];

    pub(super) fn index(self) -> usize {
        match self {
            Self::Output => 0,
            Self::Stderr => 1,
        }
    }
}

impl Order {
    /// The fewest pieces that are kept, however little the pool has left.
    const FEWEST: usize = 64;
    /// The most pieces that are kept: 96 KiB.
    const MOST: usize = 4096;

    pub(super) fn new(pool: &RingPool) -> Self {
        let share = Share::new(pool.rings(), Self::FEWEST * size_of::<Piece>());
        Self { pieces: VecDeque::new(), ends: [0; 2], share }
    }

    /// How many bytes there have been.
    pub(super) fn end(&self) -> u64 {
        self.ends.iter().sum()
    }

    /// So many bytes of a source follow.
    pub(super) fn push(&mut self, source: Source, count: usize) {
        let (at, from) = (self.end(), self.ends[source.index()]);
        self.ends[source.index()] += count as u64;
        if count == 0 || self.pieces.back().is_some_and(|last| last.source == source) {
            return;
        }
        if self.pieces.len() == self.room() && !self.grow() {
            self.pieces.pop_front();
        }
        self.pieces.push_back(Piece { at, from, source });
    }

    /// Forgets pieces at the beginning of which no byte is kept; `begins` are the oldest that are, by source.
    pub(super) fn forget(&mut self, begins: [u64; 2]) {
        while let [Some(oldest), Some(next)] = [self.pieces.front(), self.pieces.get(1)] {
            if oldest.from + (next.at - oldest.at) > begins[oldest.source.index()] {
                break;
            }
            self.pieces.pop_front();
        }
    }

    /// What follows from an offset on.
    pub(super) fn runs(&self, cursor: u64) -> impl Iterator<Item = Run> {
        let first = self.pieces.partition_point(|piece| piece.at <= cursor).saturating_sub(1);
        let ends = self.pieces.iter().skip(first + 1).map(|piece| piece.at).chain([self.end()]);
        self.pieces.iter().skip(first).zip(ends).map(move |(piece, end)| {
            let skipped = cursor.saturating_sub(piece.at);
            let (at, from) = (piece.at + skipped, piece.from + skipped);
            Run { source: piece.source, at, from, length: end - at }
        })
    }

    /// Gives memory beyond what is kept back: nothing more will come.
    pub(super) fn settle(&mut self) {
        self.pieces.shrink_to_fit();
        self.share.shrink_to(self.pieces.len() * size_of::<Piece>());
    }

    fn room(&self) -> usize {
        self.share.held() / size_of::<Piece>()
    }

    fn grow(&mut self) -> bool {
        let doubled = 2 * self.room();
        doubled <= Self::MOST && self.share.grow_to(doubled * size_of::<Piece>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(order: &Order, cursor: u64) -> Vec<(Source, u64, u64, u64)> {
        order.runs(cursor).map(|run| (run.source, run.at, run.from, run.length)).collect()
    }

    #[test]
    fn neighbours_of_one_source_are_one_piece() {
        let mut order = Order::new(&RingPool::default());
        for (source, count) in
            [(Source::Output, 3), (Source::Output, 2), (Source::Stderr, 0), (Source::Output, 1)]
        {
            order.push(source, count);
        }
        order.push(Source::Stderr, 4);
        order.push(Source::Output, 5);
        let all =
            [(Source::Output, 0, 0, 6), (Source::Stderr, 6, 0, 4), (Source::Output, 10, 6, 5)];
        assert_eq!(runs(&order, 0), all);
        assert_eq!(runs(&order, 6), all[1..]);
        assert_eq!(runs(&order, 8), [(Source::Stderr, 8, 2, 2), all[2]]);
        assert_eq!(runs(&order, 14), [(Source::Output, 14, 10, 1)]);
        assert_eq!(runs(&order, 15), [(Source::Output, 15, 11, 0)]);
        assert_eq!(order.end(), 15);
    }

    #[test]
    fn beyond_the_bound_the_oldest_piece_is_forgotten() {
        let mut order = Order::new(&RingPool::default());
        for _ in 0..Order::MOST {
            order.push(Source::Output, 1);
            order.push(Source::Stderr, 2);
        }
        assert_eq!(order.pieces.len(), Order::MOST);
        let first = order.runs(0).next().unwrap();
        let forgotten = 3 * Order::MOST as u64 / 2;
        assert_eq!((first.at, first.from), (forgotten, forgotten / 3), "and offsets stay exact");
    }

    #[test]
    fn a_pool_that_is_used_up_leaves_the_fewest_pieces() {
        let pool = RingPool::new(0);
        let mut order = Order::new(&pool);
        for _ in 0..Order::MOST {
            order.push(Source::Output, 1);
            order.push(Source::Stderr, 1);
        }
        assert_eq!(order.pieces.len(), Order::FEWEST);
        order.settle();
        assert_eq!(pool.used(), Order::FEWEST * size_of::<Piece>());
        drop(order);
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn only_what_is_gone_at_the_beginning_is_forgotten() {
        let mut order = Order::new(&RingPool::default());
        for source in [Source::Output, Source::Stderr, Source::Output, Source::Stderr] {
            order.push(source, 10);
        }
        order.forget([9, 20]);
        assert_eq!(order.pieces.len(), 4, "a byte of the first is kept");
        order.forget([10, 10]);
        assert_eq!(runs(&order, 0)[0], (Source::Output, 20, 10, 10));
        order.forget([20, 20]);
        assert_eq!(order.pieces.len(), 1, "the last goes on");
    }
}
