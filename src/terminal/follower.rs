//! The screen model beside the output: how far it has come, and that it may lag.
//!
//! Output is drawn when there is nothing else to do, or when it would leave the ring undrawn. The model is exactly at
//! some byte of the output always, and every byte after that is in the ring: that is where a painted stream begins.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use tracing::warn;

use super::{
    pool::{RingPool, Share},
    queries::Asked,
    screen::{BLANK, InputModes, Screen, View},
};
use crate::host::pty::Size;

/// Draws the output of one session, some way behind it.
#[derive(Debug)]
pub(super) struct Follower {
    model: Model,
    /// The offset up to which the model has drawn.
    drawn: u64,
    /// The offset with which the model began.
    since: u64,
    /// What was asked up to this offset is not to be answered any more.
    asked: u64,
    size: Size,
    share: Share,
}

#[derive(Debug)]
enum Model {
    /// The tool has written nothing since it began.
    Blank,
    Live(Box<Screen>),
    /// There is none: it would be too large, or no memory was left for it.
    NoRoom,
    /// There is none: it failed.
    Failed,
}

/// What came of drawing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Drawn {
    /// What terminals were asked.
    pub(super) queries: Vec<Asked>,
    /// The title, where it is another now.
    pub(super) title: Option<String>,
    /// Some bytes were drawn.
    pub(super) progress: bool,
}

impl Follower {
    /// Bytes that may wait to be drawn, where the ring holds as many.
    pub(super) const MAX_LAG: usize = 256 << 10;
    /// Bytes that are drawn at once.
    const TURN: usize = 64 << 10;
    /// The longest sequence that is waited for; the title of a window and most of what is pasted are shorter.
    const LONGEST: usize = 32 << 10;
    /// How long a turn may take: a few bytes can clear a screen.
    const TURN_TIME: Duration = Duration::from_millis(2);

    pub(super) fn new(size: Size, pool: &RingPool) -> Self {
        let share = Share::new(pool.screens(), 0);
        Self { model: Model::Blank, drawn: 0, since: 0, asked: 0, size, share }
    }

    /// The offset before which nothing can be on the screen.
    pub(super) fn since(&self) -> u64 {
        self.since
    }

    /// The offset up to which the model has drawn, which must not leave the ring; `u64::MAX` where there is none.
    pub(super) fn drawn(&self) -> u64 {
        if matches!(self.model, Model::NoRoom | Model::Failed) { u64::MAX } else { self.drawn }
    }

    /// How many bytes are to be shown to [`Self::draw`], of how many there are.
    pub(super) fn wants(waiting: usize) -> usize {
        waiting.min(Self::TURN)
    }

    /// Draws the output from [`Self::drawn`] on for a turn. `full` tells that no more can wait.
    pub(super) fn draw(&mut self, bytes: &[u8], full: bool) -> Drawn {
        self.begin();
        let Model::Live(screen) = &mut self.model else { return Drawn::default() };
        let full = full || bytes.len() >= Self::LONGEST;
        let late = Instant::now() + Self::TURN_TIME;
        let before = screen.title().to_owned();
        // The grid is another project's; should it fail on what a tool writes, the session goes on without.
        let drawn = catch_unwind(AssertUnwindSafe(|| screen.draw(bytes, full, late)));
        let Ok(count) = drawn else {
            warn!(
                "the screen model of a session failed; its streams begin with the retained output"
            );
            self.give_up(Model::Failed);
            return Drawn::default();
        };
        let asked = |(after, query)| Asked { at: self.drawn + after as u64, query };
        let queries = screen.take_queries().map(asked).filter(|asked| asked.at > self.asked);
        let queries = queries.collect();
        self.drawn += count as u64;
        let title = Some(screen.title()).filter(|title| *title != before).map(str::to_owned);
        Drawn { queries, title, progress: count > 0 }
    }

    /// Makes the model with the first output.
    fn begin(&mut self) {
        if matches!(self.model, Model::Blank) {
            self.model = match Screen::cost(self.size).filter(|cost| self.share.grow_to(*cost)) {
                Some(_) => Model::Live(Box::new(Screen::new(self.size))),
                None => Model::NoRoom,
            };
        }
    }

    /// Makes a model where there was no room for one and there is now, at the byte `end`. What is retained of the output
    /// begins with `oldest`: where that is all that the model would have drawn, it draws that, as it looks in this size;
    /// else it is blank until the tool draws again. What the tool has asked meanwhile is asked no more.
    pub(super) fn revive(&mut self, oldest: u64, end: u64) {
        let cost = Screen::cost(self.size).filter(|_| matches!(self.model, Model::NoRoom));
        if cost.is_some_and(|cost| self.share.grow_to(cost)) {
            let from = if oldest <= self.since { self.since } else { end };
            (self.drawn, self.since, self.asked) = (from, from, end);
            self.model = Model::Live(Box::new(Screen::new(self.size)));
        }
    }

    /// Gives the model another size, at the byte where it is.
    pub(super) fn resize(&mut self, size: Size) {
        self.size = size;
        let Model::Live(screen) = &mut self.model else { return };
        let cost = Screen::cost(size).filter(|cost| self.share.grow_to(*cost));
        match cost {
            Some(cost) if catch_unwind(AssertUnwindSafe(|| screen.resize(size))).is_ok() => {
                self.share.shrink_to(cost);
            }
            Some(_) => self.give_up(Model::Failed),
            None => self.give_up(Model::NoRoom),
        }
    }

    /// Begins anew with this byte: nobody knows what the screen shows.
    pub(super) fn restart(&mut self, at: u64) {
        self.give_up(Model::Blank);
        (self.drawn, self.since) = (at, at);
    }

    fn give_up(&mut self, model: Model) {
        self.model = model;
        self.share.shrink_to(0);
    }

    /// The bytes that paint the screen on a reset terminal; `None` where there is no model.
    pub(super) fn baseline(&mut self) -> Option<Vec<u8>> {
        match &mut self.model {
            Model::Blank => Some(BLANK.to_vec()),
            Model::Live(screen) => Some(screen.baseline()),
            Model::NoRoom | Model::Failed => None,
        }
    }

    /// How keys and pastes reach the tool; `None` where there is no model.
    pub(super) fn input_modes(&self) -> Option<InputModes> {
        match &self.model {
            Model::Blank => Some(InputModes::default()),
            Model::Live(screen) => Some(screen.input_modes()),
            Model::NoRoom | Model::Failed => None,
        }
    }

    /// The screen as text; `None` where there is no model.
    pub(super) fn view(&self) -> Option<View> {
        match &self.model {
            Model::Blank => Some(Screen::new(self.size).view()),
            Model::Live(screen) => Some(screen.view()),
            Model::NoRoom | Model::Failed => None,
        }
    }
}
