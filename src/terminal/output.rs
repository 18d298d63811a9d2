//! What the tool wrote, and who is reading it.

use tokio_util::sync::CancellationToken;

pub(super) use super::subscription::{Begin, Kind, Pending, SubscriptionId};
use super::{
    backlog::Backlog,
    follower::{Drawn, Follower},
    framing::Wish,
    geometry::Geometry,
    pool::RingPool,
    queries::{Asked, Left},
    ring::Ring,
    screen::{BLANK, InputModes, View},
    subscription::Subscription,
};
use crate::host::pty::Size;

/// A piece of a session's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The bytes from `begin` to `next`.
    pub bytes: Vec<u8>,
    /// Where the piece begins: after the cursor asked for, where bytes between were dropped.
    pub begin: u64,
    /// The cursor to go on from.
    pub next: u64,
    /// Nothing follows: the session ended, and this piece reaches its last byte.
    pub eof: bool,
}

/// A read that cannot be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The cursor lies after the last byte so far.
    #[error("cursor {cursor} is beyond the end of the output at {end}")]
    BadCursor {
        /// What was asked for.
        cursor: u64,
        /// The end of the output.
        end: u64,
    },
    /// One of two outputs was asked for, where there is one.
    #[error("a terminal has one output; stream goes with io \"pipe\" only")]
    OneOutput,
}

/// The output of one session: the ring, the bytes that subscribers still wait for, and how far each
/// is.
#[derive(Debug)]
pub(super) struct Output {
    ring: Ring,
    backlog: Backlog,
    follower: Follower,
    geometry: Geometry,
    subscriptions: Vec<Subscription>,
    /// What subscribers are to answer.
    left: Left,
    next_id: u64,
    /// The exit code, once it has ended.
    ended: Option<i32>,
}

impl Output {
    /// How far a subscriber may fall behind before it is cut: 8 MiB.
    pub(super) const MAX_LAG: u64 = 8 << 20;

    pub(super) fn new(ring_bytes: usize, size: Size, pool: &RingPool) -> Self {
        Self {
            ring: Ring::new(ring_bytes, pool),
            backlog: Backlog::new(pool),
            follower: Follower::new(size, pool),
            geometry: Geometry::new(size),
            subscriptions: Vec::new(),
            left: Left::default(),
            next_id: 0,
            ended: None,
        }
    }

    /// How many bytes there have been.
    pub(super) fn end(&self) -> u64 {
        self.ring.end()
    }

    /// How many bytes can be read no longer: the offset of the oldest that can.
    pub(super) fn dropped(&self) -> u64 {
        self.ring.begin()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Takes what the tool wrote. Never waits: a subscriber that is too far behind is cut instead. What would leave
    /// the ring undrawn is drawn first, and told of.
    pub(super) fn append(&mut self, bytes: &[u8], mut drawn: impl FnMut(Drawn)) {
        let room = self.ring.room_for(bytes.len()).min(2 * Follower::MAX_LAG);
        for piece in bytes.chunks(room / 2) {
            while self.undrawn() + piece.len() > room {
                drawn(self.draw(self.undrawn() >= room / 2));
            }
            self.store(piece);
        }
    }

    fn store(&mut self, bytes: &[u8]) {
        let end = self.end() + bytes.len() as u64;
        self.cut(|cursor| end - cursor > Self::MAX_LAG);
        let floor = self.floor();
        // What a stream that was cut had waited for would not join up with what is evicted now.
        self.backlog.release(floor);
        let Self { ring, backlog, .. } = self;
        let mut kept = true;
        ring.append(bytes, |at, evicted| {
            if floor.is_some_and(|floor| floor < at + evicted.len() as u64) {
                kept = kept && backlog.push(at, evicted);
            }
        });
        if !kept {
            let begin = self.ring.begin();
            self.cut(|cursor| cursor < begin);
        }
        self.backlog.release(self.floor());
    }

    /// How many bytes the screen model is behind.
    pub(super) fn undrawn(&self) -> usize {
        usize::try_from(self.end().saturating_sub(self.follower.drawn())).unwrap_or(usize::MAX)
    }

    /// Where the screen model is.
    pub(super) fn drawn(&self) -> u64 {
        self.follower.drawn().min(self.end())
    }

    /// Draws for a turn. `full` tells that what is not drawn may not wait. What is asked there is told, but for what
    /// subscribers are to answer.
    pub(super) fn draw(&mut self, full: bool) -> Drawn {
        let undrawn = self.undrawn();
        if undrawn == 0 {
            return Drawn::default();
        }
        let bytes = self.ring.copy(self.follower.drawn(), Follower::wants(undrawn));
        let mut drawn = self.follower.draw(&bytes, full);
        drawn.queries = self.leave(drawn.queries);
        drawn
    }

    /// Leaves questions to subscribers that are shown them; gives the others.
    pub(super) fn leave(&mut self, asked: Vec<Asked>) -> Vec<Asked> {
        self.left.leave(asked, &self.subscriptions)
    }

    /// Draws all that is whole, unless the model has just begun anew and is far behind; what comes of it is told.
    pub(super) fn catch_up(&mut self, drawn: impl FnMut(Drawn)) {
        if self.undrawn() <= 2 * Follower::MAX_LAG {
            self.draw_rest(drawn);
        }
    }

    /// Draws all that is whole; what comes of it is told.
    pub(super) fn draw_rest(&mut self, mut drawn: impl FnMut(Drawn)) {
        while self.undrawn() > 0 {
            let turn = self.draw(false);
            let progress = turn.progress;
            drawn(turn);
            if !progress {
                break;
            }
        }
    }

    /// Has another read what comes next: every subscription ends here, with what there is so far, nobody sets a size,
    /// and the screen is unknown. Gives where that is; what is drawn before is told.
    pub(super) fn lend(&mut self, drawn: impl FnMut(Drawn)) -> u64 {
        self.draw_rest(drawn);
        let end = self.end();
        for subscription in &mut self.subscriptions {
            subscription.until.get_or_insert(end);
        }
        self.geometry.forget_wishes();
        self.follower.restart(end);
        end
    }

    /// Notes what size a client wishes, as [`Geometry::wish`]; one whose subscription is to end wishes none.
    pub(super) fn wish(&mut self, id: SubscriptionId, wish: Option<Wish>) -> Option<Size> {
        let ends = self.subscriptions.iter().any(|s| s.id == id && s.until.is_some());
        self.geometry.wish(id, wish.filter(|_| !ends))
    }

    /// As [`Geometry::wish_by`].
    pub(super) fn wish_by(&mut self, id: SubscriptionId, who: &str, wish: Wish) -> Option<Size> {
        self.geometry.wish_by(id, who, wish)
    }

    /// As [`Geometry::follow`].
    pub(super) fn follow(&mut self, who: &str, wish: Wish) {
        self.geometry.follow(who, wish);
    }

    /// Notes that from here on the terminal has another size.
    pub(super) fn resize(&mut self, size: Size) {
        self.geometry.change(self.end(), size);
        self.follower.resize(size);
        self.revive();
        self.forget_changes();
    }

    /// Has a screen again where there was no room for one and there is now, as far as what was written is retained.
    pub(super) fn revive(&mut self) {
        self.follower.revive(self.ring.begin(), self.end());
    }

    /// The screen as text, as far as it is drawn.
    pub(super) fn view(&self) -> Option<View> {
        self.follower.view()
    }

    /// How keys and pastes reach the tool, as far as it is drawn.
    pub(super) fn input_modes(&self) -> Option<InputModes> {
        self.follower.input_modes()
    }

    /// The bytes that paint the screen on a reset terminal, and the byte of the output that comes after them. Where
    /// there is no screen model, they are what is retained of the output since it began.
    pub(super) fn baseline(&mut self) -> (Vec<u8>, u64) {
        match self.follower.baseline() {
            Some(baseline) => (baseline, self.drawn()),
            None => self.retained_from(self.follower.since()),
        }
    }

    /// What is retained, on a clear screen, and the byte that comes after it.
    pub(super) fn retained(&mut self) -> (Vec<u8>, u64) {
        self.retained_from(0)
    }

    fn retained_from(&self, cursor: u64) -> (Vec<u8>, u64) {
        let retained = self.ring.copy(cursor.max(self.ring.begin()), usize::MAX);
        ([BLANK, &retained].concat(), self.end())
    }

    /// The screen as text, and the byte that comes after it.
    pub(super) fn plain(&mut self) -> (Vec<u8>, u64) {
        let text = self.view().map(|view| view.rows.join("\r\n").trim_end().to_owned());
        (text.unwrap_or_default().into_bytes(), self.drawn())
    }

    /// Closes the output: what is retained stays readable.
    pub(super) fn finish(&mut self, code: i32) {
        self.ended = Some(code);
        self.ring.settle();
    }

    /// Up to `max` retained bytes from `cursor` on, or from the oldest where that is later.
    pub(super) fn read(&self, cursor: u64, max: usize) -> Result<Chunk, ReadError> {
        self.check(cursor)?;
        let begin = cursor.max(self.ring.begin());
        let bytes = self.ring.copy(begin, max);
        let next = begin + bytes.len() as u64;
        Ok(Chunk { bytes, begin, next, eof: self.ended.is_some() && next == self.end() })
    }

    /// A name for one who may subscribe.
    pub(super) fn name(&mut self) -> SubscriptionId {
        self.next_id += 1;
        SubscriptionId(self.next_id)
    }

    /// Adds a reader that gets every byte from `cursor` on, or from the oldest retained where that
    /// is later; gives where it begins. It is told by `cut` that it was too slow.
    pub(super) fn subscribe(
        &mut self,
        id: SubscriptionId,
        cursor: u64,
        kind: Kind,
        cut: CancellationToken,
    ) -> Result<Begin, ReadError> {
        self.check(cursor)?;
        let cursor = cursor.max(self.ring.begin());
        let told = kind.sizes.then(|| self.geometry.serial());
        let subscription = Subscription { id, begin: cursor, cursor, until: None, cut, kind, told };
        self.subscriptions.push(subscription);
        Ok(Begin { cursor, size: self.geometry.size() })
    }

    /// Removes a reader; gives what it was to answer, and was not shown, and is not another's to answer.
    pub(super) fn unsubscribe(&mut self, id: SubscriptionId) -> Vec<Asked> {
        let gone = self.subscriptions.extract_if(.., |subscription| subscription.id == id);
        gone.for_each(|gone| self.left.note(&gone));
        self.backlog.release(self.floor());
        self.forget_changes();
        self.left.orphans(&self.subscriptions)
    }

    /// Up to `max` bytes that this subscriber has not taken yet, or else what follows them.
    pub(super) fn pending(&self, id: SubscriptionId, max: usize) -> Pending {
        let Some(subscription) = self.subscriptions.iter().find(|s| s.id == id) else {
            return Pending::Nothing;
        };
        let Subscription { cursor, until, told, .. } = *subscription;
        let change = told.and_then(|told| self.geometry.after(told));
        let change = change.filter(|change| until.is_none_or(|until| change.at < until));
        if let Some(change) = change.filter(|change| change.at <= cursor) {
            return Pending::Size(change.size);
        }
        let next = until.unwrap_or(self.end()).min(change.map_or(u64::MAX, |change| change.at));
        let left = next.saturating_sub(cursor);
        let max = max.min(usize::try_from(left).unwrap_or(usize::MAX));
        if left > 0 && cursor < self.ring.begin() {
            Pending::Bytes(self.backlog.copy(cursor, max))
        } else if left > 0 {
            Pending::Bytes(self.ring.copy(cursor, max))
        } else if until.is_some() {
            Pending::Over
        } else {
            self.ended.map_or(Pending::Nothing, Pending::End)
        }
    }

    /// This subscriber was told of the size that was pending.
    pub(super) fn told(&mut self, id: SubscriptionId) {
        let Self { subscriptions, geometry, .. } = self;
        if let Some(subscription) = subscriptions.iter_mut().find(|s| s.id == id) {
            let next = subscription.told.and_then(|told| geometry.after(told));
            subscription.told = next.map(|change| change.serial).or(subscription.told);
        }
        self.forget_changes();
    }

    fn forget_changes(&mut self) {
        self.geometry.forget(self.subscriptions.iter().filter_map(|s| s.told).min());
    }

    /// This subscriber has taken so many bytes of what was pending.
    pub(super) fn taken(&mut self, id: SubscriptionId, count: usize) {
        if let Some(subscription) = self.subscriptions.iter_mut().find(|s| s.id == id) {
            subscription.cursor += count as u64;
        }
        self.backlog.release(self.floor());
    }

    fn check(&self, cursor: u64) -> Result<(), ReadError> {
        let end = self.end();
        if cursor > end { Err(ReadError::BadCursor { cursor, end }) } else { Ok(()) }
    }

    /// The cursor of the slowest subscriber, where there is one.
    fn floor(&self) -> Option<u64> {
        self.subscriptions.iter().map(|s| s.cursor).min()
    }

    fn cut(&mut self, too_slow: impl Fn(u64) -> bool) {
        self.subscriptions.retain(|subscription| {
            let cut = too_slow(subscription.cursor);
            if cut {
                self.left.note(subscription);
                subscription.cut.cancel();
            }
            !cut
        });
    }
}

#[cfg(test)]
mod tests;
