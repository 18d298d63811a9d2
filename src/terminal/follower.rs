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
    screen::{BLANK, InputModes, Query, Screen, View},
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
    size: Size,
    share: Share,
}

#[derive(Debug)]
enum Model {
    /// The tool has written nothing since it began.
    Blank,
    Live(Box<Screen>),
    /// There is none: no memory was left for it, or it failed.
    Gone,
}

/// What came of drawing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Drawn {
    /// What terminals were asked.
    pub(super) queries: Vec<Query>,
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
        Self { model: Model::Blank, drawn: 0, since: 0, size, share: Share::new(pool.screens(), 0) }
    }

    /// The offset before which nothing can be on the screen.
    pub(super) fn since(&self) -> u64 {
        self.since
    }

    /// The offset up to which the model has drawn, which must not leave the ring; `u64::MAX` where there is none.
    pub(super) fn drawn(&self) -> u64 {
        if matches!(self.model, Model::Gone) { u64::MAX } else { self.drawn }
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
            self.give_up();
            return Drawn::default();
        };
        self.drawn += count as u64;
        let title = Some(screen.title()).filter(|title| *title != before).map(str::to_owned);
        Drawn { queries: screen.take_queries(), title, progress: count > 0 }
    }

    /// Makes the model with the first output.
    fn begin(&mut self) {
        if matches!(self.model, Model::Blank) {
            self.model = match Screen::cost(self.size).filter(|cost| self.share.grow_to(*cost)) {
                Some(_) => Model::Live(Box::new(Screen::new(self.size))),
                None => Model::Gone,
            };
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
            _ => self.give_up(),
        }
    }

    /// Begins anew with this byte: nobody knows what the screen shows.
    pub(super) fn restart(&mut self, at: u64) {
        self.give_up();
        (self.model, self.drawn, self.since) = (Model::Blank, at, at);
    }

    fn give_up(&mut self) {
        self.model = Model::Gone;
        self.share.shrink_to(0);
    }

    /// The bytes that paint the screen on a reset terminal; `None` where there is no model.
    pub(super) fn baseline(&mut self) -> Option<Vec<u8>> {
        match &mut self.model {
            Model::Blank => Some(BLANK.to_vec()),
            Model::Live(screen) => Some(screen.baseline()),
            Model::Gone => None,
        }
    }

    /// How keys and pastes reach the tool; `None` where there is no model.
    pub(super) fn input_modes(&self) -> Option<InputModes> {
        match &self.model {
            Model::Blank => Some(InputModes::default()),
            Model::Live(screen) => Some(screen.input_modes()),
            Model::Gone => None,
        }
    }

    /// The screen as text; `None` where there is no model.
    pub(super) fn view(&self) -> Option<View> {
        match &self.model {
            Model::Blank => Some(Screen::new(self.size).view()),
            Model::Live(screen) => Some(screen.view()),
            Model::Gone => None,
        }
    }
}
