//! The one task that owns the state: takes requests and events one at a time, performs what the core gives.

use std::{
    collections::HashMap,
    mem,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

use super::{
    command::Command,
    ending,
    notices::{Notice, Teller},
    opening::{Arrived, Workshop},
    run::{Run, State},
};
use crate::{
    broker::{
        Broker,
        clock::Now,
        effect::{Effect, How},
        lease::Secret,
        name::SessionId,
        session::Event,
    },
    config::Settings,
    host::Host,
    terminal::Appearance,
};

/// What the engine's own work in the background gives back.
pub(super) enum Report<P> {
    Arrived(SessionId, Box<Arrived<P>>),
    Event(SessionId, Event),
    Paused(SessionId, bool),
    Attached(SessionId, u32),
    Appeared(SessionId, Appearance),
    Held(SessionId, bool),
    /// Whether its tool writes.
    Busy(SessionId, bool),
}

pub(super) struct Engine<H: Host> {
    pub(super) broker: Broker,
    pub(super) runs: HashMap<SessionId, Run<H::Place>>,
    pub(super) reports: mpsc::Sender<Report<H::Place>>,
    workshop: Arc<Workshop<H>>,
    pub(super) settings: Arc<Settings>,
    notices: Teller,
    began: Instant,
    pub(super) stopping: Vec<oneshot::Sender<()>>,
}

impl<H: Host> Engine<H> {
    pub fn new(
        workshop: Workshop<H>,
        settings: Arc<Settings>,
        reports: mpsc::Sender<Report<H::Place>>,
        notices: Teller,
    ) -> Self {
        Self {
            broker: Broker::new(settings.limits.quotas()),
            runs: HashMap::new(),
            workshop: Arc::new(workshop),
            settings,
            reports,
            notices,
            began: Instant::now(),
            stopping: Vec::new(),
        }
    }

    /// Runs until a shutdown was asked for and every session has ended.
    pub async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        mut reports: mpsc::Receiver<Report<H::Place>>,
    ) {
        let mut reachable = true;
        while reachable && self.stopping.is_empty() || self.broker.live() > 0 {
            let deadline = self.broker.next_deadline().map(|at| self.began + at);
            tokio::select! {
                command = commands.recv(), if reachable => match command {
                    Some(command) => self.take(command),
                    // Every handle is gone: nobody can own a session any more.
                    None => {
                        reachable = false;
                        self.shut_down(None);
                    }
                },
                Some(report) = reports.recv() => self.note(report),
                () = ending::until(deadline) => {
                    let effects = self.broker.elapse(self.now());
                    self.perform(effects);
                }
            }
        }
        for waiting in self.stopping {
            let _ = waiting.send(());
        }
    }

    pub(super) fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now {
            elapsed: self.began.elapsed(),
            wall_usec: u64::try_from(wall.as_micros()).unwrap_or(u64::MAX),
        }
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Open(request) => self.open(request),
            Command::List(reply) => answer(reply, self.states(|_| true)),
            Command::Owned(caller, reply) => {
                let owned = self.states(|session| self.owns(session, &caller));
                answer(reply, owned);
            }
            Command::Find(id, caller, need, reply) => {
                answer(reply, self.find(&id, &caller, need).map(|_| ()));
            }
            Command::End(id, caller, wish, reply) => answer(reply, self.end(&id, caller, wish)),
            Command::Act(id, caller, act, reply) => self.act(&id, &caller, act, reply),
            Command::Forget(id, caller, reply) => answer(reply, self.forget(&id, &caller)),
            Command::Claim(token, caller, reply) => answer(reply, self.claim(&token, &caller)),
            Command::Renew(token, caller, reply) => {
                answer(reply, self.broker.renew(&token, &caller, self.now()));
            }
            Command::Share(id, caller, need, reply) => {
                answer(reply, self.share(&id, &caller, need))
            }
            Command::Events(after, limit, caller, reply) => {
                answer(reply, self.broker.events(after, limit, &caller));
            }
            Command::Vanished(connection) => {
                let effects = self.broker.owner_vanished(&connection, self.now());
                self.perform(effects);
            }
            Command::Shutdown(reply) => self.shut_down(Some(reply)),
        }
    }

    fn note(&mut self, report: Report<H::Place>) {
        match report {
            Report::Arrived(id, arrived) => self.arrived(&id, *arrived),
            Report::Event(id, event) => self.on(&id, event),
            Report::Paused(id, paused) => self.paused(&id, paused),
            Report::Busy(id, busy) => self.busy(&id, busy),
            Report::Attached(id, attached) => self.show(&id, |state| state.attached = attached),
            Report::Appeared(id, Appearance { size, title }) => self.show(&id, |state| {
                state.size = size;
                state.title = title;
            }),
            Report::Held(id, held) => self.held(&id, held),
        }
    }

    pub(super) fn on(&mut self, id: &SessionId, event: Event) {
        let effects = self.broker.on(id, event, self.now());
        self.perform(effects);
    }

    pub(super) fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Launch(id) => self.launch(id),
                Effect::AbortLaunch(id) => {
                    if let Some(run) = self.runs.get(&id) {
                        run.abort.cancel();
                    }
                }
                Effect::End(id, how) => self.begin_end(id, how),
                Effect::Opened(id) => self.opened(&id),
                Effect::OpenFailed(id, failure) => self.open_failed(&id, &failure),
                Effect::Changed(id) => self.show(&id, |_| ()),
                Effect::Closed(id) => self.closed(&id),
                Effect::Retired(id) => {
                    self.runs.remove(&id);
                    self.tell(Notice::Retired(id));
                }
                // The core keeps its deadlines itself.
                Effect::Arm(..) | Effect::Disarm(_) => {}
            }
        }
    }

    fn launch(&mut self, id: SessionId) {
        let (Some(run), Some(session)) = (self.runs.get_mut(&id), self.broker.session(&id)) else {
            return;
        };
        let Some(resolved) = run.resolved.take() else { return };
        let (facts, abort) = (session.facts.clone(), run.abort.clone());
        let (workshop, reports) = (self.workshop.clone(), self.reports.clone());
        tokio::spawn(async move {
            let report = match workshop.open(&facts, *resolved, &abort).await {
                Ok(arrived) => Report::Arrived(id, Box::new(arrived)),
                Err(failure) => Report::Event(id, Event::LaunchFailed(failure)),
            };
            let _ = reports.send(report).await;
        });
    }

    fn arrived(&mut self, id: &SessionId, arrived: Arrived<H::Place>) {
        let Arrived { live, launcher, exit, pid, fell_back, confinement } = arrived;
        let channel = live.line.channel();
        if let Some(run) = self.runs.get_mut(id) {
            run.arrived(channel.clone(), live.line.io(), fell_back);
            run.live = Some(live.clone());
        }
        super::watching::leader(id.clone(), live.clone(), launcher, exit, self.reports.clone());
        if let Some(terminal) = channel.terminal() {
            super::watching::terminal(id.clone(), terminal, self.reports.clone());
            super::watching::holds(id.clone(), terminal, self.reports.clone());
        }
        self.watch_quiet(id, &channel);
        self.on(id, Event::Started { pid, confinement });
    }

    fn begin_end(&mut self, id: SessionId, how: How) {
        let Some(live) = self.runs.get(&id).and_then(|run| run.live.clone()) else { return };
        live.ask();
        let reports = self.reports.clone();
        tokio::spawn(async move {
            if let Some(emptied) = ending::end(live, how).await {
                let _ = reports.send(Report::Event(id, Event::ScopeEmpty(emptied))).await;
            }
        });
    }

    fn closed(&mut self, id: &SessionId) {
        let size = self.runs.get(id).map(Run::size);
        let title = self.runs.get(id).and_then(Run::title);
        self.show(id, |state| {
            state.size = size.unwrap_or(state.size);
            state.title = title.unwrap_or_else(|| mem::take(&mut state.title));
            (state.paused, state.held, state.busy) = (false, false, false);
        });
        if let Some(run) = self.runs.get_mut(id) {
            run.live = None;
            // Its end is what ends the watch over its silence.
            run.suspended = watch::Sender::default();
        }
        self.log(id, "session closed");
        self.tell(Notice::Closed(id.clone()));
    }

    /// Shows a session's state as it is now, with a change that only the engine knows.
    pub(super) fn show(&self, id: &SessionId, change: impl FnOnce(&mut State)) {
        let (Some(run), Some(session)) = (self.runs.get(id), self.broker.session(id)) else {
            return;
        };
        let view = self.broker.view(session);
        run.state.send_modify(|state| {
            state.view = view;
            change(state);
        });
        self.tell(Notice::Changed(id.clone()));
    }

    pub(super) fn tell(&self, notice: Notice) {
        self.notices.tell(notice);
    }

    pub(super) fn log(&self, id: &SessionId, what: &str) {
        let Some(session) = self.broker.session(id) else { return };
        let (owner, _) = self.broker.owner(session);
        let outcome = session.outcome();
        let label = |name| session.facts.labels.get(name).map(String::as_str);
        tracing::info!(
            ST2_SESSION = %id,
            ST2_TOOL = %session.facts.tool,
            ST2_OWNER = owner,
            ST2_UNIT = %session.facts.unit,
            ST2_AGENT = label("agent"),
            ST2_HOST = label("host"),
            ST2_TASK = label("task"),
            ST2_SUBTASK = label("subtask"),
            reason = outcome.map(|outcome| outcome.reason.as_str()),
            "{what}: {} {id}",
            session.facts.tool
        );
    }

    fn shut_down(&mut self, reply: Option<oneshot::Sender<()>>) {
        self.stopping.extend(reply);
        let effects = self.broker.shutdown(self.now());
        self.perform(effects);
    }
}

/// Answers a caller, who may have stopped waiting.
pub(super) fn answer<T>(reply: oneshot::Sender<T>, value: T) {
    let _ = reply.send(value);
}

/// Draws a token's secret. The kernel's source never fails once it is up (getrandom(2)).
pub(super) fn secret() -> Secret {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the kernel has no randomness");
    Secret::new(bytes)
}
