//! A session's silence: whether its tool is busy, and the no-output watchdog.
//!
//! Output is not told of byte by byte: one watcher sleeps until the next moment that could matter and then looks when
//! the last byte came. A tool that writes without a pause wakes it once in [`QUIET`], any other at most twice, an idle
//! one when it writes again, and the watchdog when it could be due.
//!
//! While a session is paused it cannot write, and what a direct holder reads is not seen: such time does not count
//! as silence, and the watchdog begins anew after it.

use std::time::Duration;

use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use super::{
    core::{Engine, Report},
    ending,
};
use crate::{
    broker::{
        events::What,
        name::SessionId,
        session::{Event, Phase},
    },
    host::Host,
    terminal::{Channel, Pulse},
};

/// How long a tool that is idle has been quiet.
const QUIET: Duration = Duration::from_millis(350);

impl<H: Host> Engine<H> {
    /// Begins to watch a session that has started.
    pub(super) fn watch_quiet(&self, id: &SessionId, channel: &Channel) {
        let (Some(run), Some(session)) = (self.runs.get(id), self.broker.session(id)) else {
            return;
        };
        let watcher = Watcher {
            id: id.clone(),
            pulse: channel.pulse(),
            silence: session.facts.silence,
            suspended: run.suspended.subscribe(),
            is_over: false,
            reports: self.reports.clone(),
        };
        tokio::spawn(watcher.run());
    }

    /// Notes whether a tool writes, while it runs.
    pub(super) fn busy(&mut self, id: &SessionId, busy: bool) {
        let runs = |phase: &Phase| matches!(phase, Phase::Running(_));
        if self.broker.session(id).is_some_and(|session| runs(&session.phase)) {
            let what = if busy { What::Busy } else { What::Idle };
            self.broker.record(id, what, self.now());
            self.show(id, |state| state.busy = busy);
        }
    }

    /// Notes whether anything can be seen of a session's output.
    pub(super) fn suspend(&self, id: &SessionId) {
        let Some(run) = self.runs.get(id) else { return };
        let suspended = {
            let state = run.state.borrow();
            state.paused || state.held
        };
        run.suspended.send_if_modified(|now| std::mem::replace(now, suspended) != suspended);
    }
}

/// The watcher of one session.
struct Watcher<P> {
    id: SessionId,
    pulse: Pulse,
    /// The no-output watchdog's time, where there is one.
    silence: Option<Duration>,
    /// Whether nothing can be seen of its output.
    suspended: watch::Receiver<bool>,
    /// Whether nothing will be written any more. A tool can close its outputs and go on: the watchdog stays.
    is_over: bool,
    reports: mpsc::Sender<Report<P>>,
}

/// What woke the watcher.
enum Woken {
    ByOutput,
    ByDeadline,
    BySuspension,
    /// Nothing will be written any more.
    ByEndOfOutput,
    /// The session has ended.
    AtEnd,
}

impl<P: Send + 'static> Watcher<P> {
    /// Watches until the end of the output, or of the session where it may be silent for too long. The session begins
    /// as busy.
    async fn run(mut self) {
        let (mut busy, mut counted_from) = (true, Instant::now());
        loop {
            let last = self.pulse.last_output();
            let idle_at = busy.then(|| last + QUIET);
            let silent_at = self.silent_at(last.max(counted_from));
            let next = idle_at.into_iter().chain(silent_at).min();
            let report = match self.wake(busy, last, next).await {
                Woken::ByOutput => {
                    busy = true;
                    Some(Report::Busy(self.id.clone(), true))
                }
                Woken::ByDeadline if self.pulse.last_output() > last => None,
                Woken::ByDeadline if silent_at.is_some_and(|at| at <= Instant::now()) => {
                    self.silence = None;
                    Some(Report::Event(self.id.clone(), Event::SilenceElapsed))
                }
                Woken::ByDeadline => {
                    busy = false;
                    Some(Report::Busy(self.id.clone(), false))
                }
                Woken::BySuspension => {
                    counted_from = Instant::now();
                    None
                }
                Woken::ByEndOfOutput if self.silence.is_some() => {
                    self.is_over = true;
                    None
                }
                Woken::ByEndOfOutput | Woken::AtEnd => return,
            };
            if let Some(report) = report
                && self.reports.send(report).await.is_err()
            {
                return;
            }
        }
    }

    /// When the watchdog is due, if it counts.
    fn silent_at(&self, since: Instant) -> Option<Instant> {
        self.silence.filter(|_| !*self.suspended.borrow()).map(|silence| since + silence)
    }

    async fn wake(&mut self, busy: bool, last: Instant, deadline: Option<Instant>) -> Woken {
        tokio::select! {
            biased;
            changed = self.suspended.changed() => match changed {
                Ok(()) => Woken::BySuspension,
                Err(_) => Woken::AtEnd,
            },
            wrote = self.pulse.output_after(last), if !busy && !self.is_over => match wrote {
                true => Woken::ByOutput,
                false => Woken::ByEndOfOutput,
            },
            () = ending::until(deadline) => Woken::ByDeadline,
        }
    }
}
