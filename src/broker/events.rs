//! The log of what happens to sessions: numbered, bounded, to be read from a cursor.

use std::collections::{BTreeMap, VecDeque};

use super::{
    clock::Now,
    effect::{Effect, OpenFailure},
    lease::{Connection, LeaseId},
    name::{SessionId, ToolName},
    outcome::{Ending, Reason},
    registry::Broker,
    session::Session,
};

/// What happened to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// It was asked for and admitted.
    Starting,
    /// Its tool runs.
    Started,
    /// An open was answered with it, as it was there already.
    Reused,
    /// Its tool writes again.
    Busy,
    /// Its tool has been quiet for a while.
    Idle,
    /// Its leader ended: how, and why.
    Exited(Ending, Reason),
    /// It did not open.
    Failed(OpenFailure),
    /// Nothing of it runs, and its last byte can be read: how it ended, and why.
    Closed(Ending, Reason),
}

impl What {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Starting => "session-starting",
            Self::Started => "session-started",
            Self::Reused => "session-reused",
            Self::Busy => "session-busy",
            Self::Idle => "session-idle",
            Self::Exited(..) => "session-exited",
            Self::Failed(_) => "session-failed",
            Self::Closed(..) => "session-closed",
        }
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its number: 1 is the first of this broker's life, and each is one more than the last.
    pub seq: u64,
    /// When, µs since the epoch.
    pub at_usec: u64,
    /// The session.
    pub session: SessionId,
    /// Its tool.
    pub tool: ToolName,
    /// Its attribution.
    pub labels: BTreeMap<String, String>,
    /// What happened.
    pub what: What,
    /// Of a private session, the lease whose holder may see it.
    private_to: Option<LeaseId>,
}

/// A piece of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The events, the oldest first.
    pub rows: Vec<Row>,
    /// The number to go on after.
    pub next: u64,
}

/// A cursor that no event has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no event {after} was yet, the last is {last}: the broker may be another since")]
pub struct EventsError {
    /// The cursor.
    pub after: u64,
    /// The last event's number.
    pub last: u64,
}

/// The newest events.
#[derive(Debug)]
pub(super) struct Events {
    rows: VecDeque<Row>,
    last: u64,
    most: usize,
}

impl Events {
    /// Keeps so many, one at least.
    pub(super) fn new(most: usize) -> Self {
        Self { rows: VecDeque::new(), last: 0, most: most.max(1) }
    }

    fn push(&mut self, row: Row) {
        if self.rows.len() == self.most {
            // A tool that stops and goes on again and again is not to push out what became of others.
            let least =
                self.rows.iter().position(|row| matches!(row.what, What::Busy | What::Idle));
            self.rows.remove(least.unwrap_or(0));
        }
        self.rows.push_back(row);
    }
}

impl Broker {
    /// Notes what happened to a session that there is.
    pub fn record(&mut self, id: &SessionId, what: What, now: Now) {
        let Some(session) = self.sessions.get(id) else { return };
        self.events.last += 1;
        let facts = &session.facts;
        self.events.push(Row {
            seq: self.events.last,
            at_usec: now.wall_usec,
            session: id.clone(),
            tool: facts.tool.clone(),
            labels: facts.labels.clone(),
            what,
            private_to: facts.private.then_some(session.lease),
        });
    }

    /// Notes what the effects of a session's own events tell of.
    pub(super) fn record_effect(&mut self, effect: &Effect, now: Now) {
        let (id, what) = match effect {
            Effect::Opened(id) => (id, What::Started),
            Effect::OpenFailed(id, failure) => (id, What::Failed(failure.clone())),
            Effect::Closed(id) => match self.sessions.get(id).and_then(Session::ending) {
                Some((ending, reason)) => (id, What::Closed(ending, reason)),
                None => return,
            },
            Effect::Arm(..)
            | Effect::Disarm(_)
            | Effect::Launch(_)
            | Effect::AbortLaunch(_)
            | Effect::End(..)
            | Effect::Changed(_)
            | Effect::Retired(_) => return,
        };
        self.record(id, what, now);
    }

    /// The events after one that a connection may see, at most so many. A gap in their numbers is of events that are
    /// dropped, or not for the connection.
    ///
    /// # Errors
    /// [`EventsError`] for a number that is yet to come.
    pub fn events(
        &self,
        after: u64,
        limit: usize,
        caller: &Connection,
    ) -> Result<Page, EventsError> {
        let last = self.events.last;
        if after > last {
            return Err(EventsError { after, last });
        }
        let is_held =
            |id: &LeaseId| self.leases.get(id).is_some_and(|lease| lease.is_held_by(caller));
        let may_see = |row: &&Row| row.private_to.as_ref().is_none_or(is_held);
        let newer = self.events.rows.iter().filter(|row| row.seq > after);
        let mut rows: Vec<_> =
            newer.filter(may_see).take(limit.saturating_add(1)).cloned().collect();
        let is_all = rows.len() <= limit;
        rows.truncate(limit);
        let next = if is_all { last } else { rows.last().map_or(after, |row| row.seq) };
        Ok(Page { rows, next })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::broker::{
        lease::Secret,
        registry::{LeaseWish, Quotas, tests::QUOTAS},
        session::{
            Event,
            tests::{confinement, emptied, facts},
        },
    };

    const NOW: Now = Now { elapsed: Duration::from_secs(5), wall_usec: 77 };

    fn broker() -> Broker {
        Broker::new(Quotas {
            sessions_per_owner: 4096,
            sessions: 4096,
            retained: 1,
            opens_per_owner: 9,
            ..QUOTAS
        })
    }

    fn open(broker: &mut Broker, id: &str, private: bool) -> SessionId {
        let mut facts = facts(id, ":1.1");
        facts.private = private;
        facts.labels.insert("task".to_owned(), format!("t-{id}"));
        let id = facts.id.clone();
        broker.open(facts, &LeaseWish::Caller, &Secret::new([1; 16]), NOW).unwrap();
        id
    }

    fn page(broker: &Broker, after: u64, limit: usize, caller: &str) -> (Vec<(u64, String)>, u64) {
        let page = broker.events(after, limit, &Connection::new(caller)).unwrap();
        let shown = |row: &Row| (row.seq, format!("{} {}", row.session, row.what.as_str()));
        (page.rows.iter().map(shown).collect(), page.next)
    }

    fn words(broker: &Broker) -> Vec<String> {
        page(broker, 0, 1024, ":1.1").0.into_iter().map(|(_, words)| words).collect()
    }

    #[test]
    fn a_life_is_told_in_its_order_with_its_labels() {
        let mut broker = broker();
        let id = open(&mut broker, "a", false);
        broker.on(&id, Event::Started { pid: 1, confinement: confinement() }, NOW);
        broker.record(&id, What::Idle, NOW);
        broker.on(&id, Event::SilenceElapsed, NOW);
        let ending = Ending::Signaled { signal: 9, core_dumped: false };
        let exited = Event::LeaderExited { ending: ending.clone(), reason: Reason::Exit };
        broker.on(&id, exited.clone(), NOW);
        broker.on(&id, exited, NOW);
        broker.on(&id, Event::ScopeEmpty(emptied()), NOW);
        let told = ["starting", "started", "idle", "exited", "closed"];
        assert_eq!(words(&broker), told.map(|kind| format!("a session-{kind}")));
        let rows = broker.events(3, 9, &Connection::new(":1.1")).unwrap().rows;
        assert_eq!(rows[0].what, What::Exited(ending.clone(), Reason::SilenceTimeout));
        assert_eq!(rows[1].what, What::Closed(ending, Reason::SilenceTimeout));
        assert_eq!((rows[1].at_usec, rows[1].labels["task"].as_str()), (77, "t-a"));
    }

    #[test]
    fn the_comings_and_goings_of_one_tool_do_not_push_out_what_became_of_others() {
        let mut broker = broker();
        let (a, b) = (open(&mut broker, "a", false), open(&mut broker, "b", false));
        for _ in 0..2 * QUOTAS.events {
            broker.record(&a, What::Busy, NOW);
            broker.record(&a, What::Idle, NOW);
        }
        broker.record(&b, What::Reused, NOW);
        let words = words(&broker);
        assert_eq!(words.len(), QUOTAS.events);
        assert_eq!(words[..2], ["a session-starting", "b session-starting"]);
        assert_eq!(words[words.len() - 2..], ["a session-idle", "b session-reused"]);
    }

    #[test]
    fn a_leader_whose_end_comes_with_that_of_its_scope_is_told_of_too() {
        let mut broker = broker();
        let id = open(&mut broker, "a", false);
        broker.on(&id, Event::Started { pid: 1, confinement: confinement() }, NOW);
        broker.on(&id, Event::KillRequested { requester: String::new() }, NOW);
        broker.on(&id, Event::ScopeEmpty(emptied()), NOW);
        assert_eq!(words(&broker)[2..], ["a session-exited", "a session-closed"]);
    }

    #[test]
    fn what_does_not_open_is_told_of() {
        let mut broker = broker();
        let id = open(&mut broker, "a", false);
        broker.on(&id, Event::CloseRequested { requester: String::new(), within: None }, NOW);
        let failure = crate::launch::spec::Failure {
            step: crate::launch::spec::Step::Exec,
            errno: 2,
            message: "no such program".into(),
        };
        broker.on(&id, Event::LaunchFailed(failure), NOW);
        assert_eq!(words(&broker), ["a session-starting", "a session-failed"]);
    }

    #[test]
    fn the_oldest_are_dropped_and_the_gap_shows() {
        let mut broker = broker();
        let id = open(&mut broker, "a", false);
        for _ in 0..2000 {
            broker.record(&id, What::Busy, NOW);
        }
        let (rows, next) = page(&broker, 3, 2, ":1.9");
        assert_eq!(rows.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [979, 980]);
        assert_eq!(next, 980);
        assert_eq!(page(&broker, 0, 4096, ":1.9").0.len(), 1024);
        assert_eq!(page(&broker, 2001, 9, ":1.9"), (vec![], 2001));
        assert_eq!(page(&broker, 1999, 2, ":1.9").1, 2001);
        let early = broker.events(2002, 9, &Connection::new(":1.9")).unwrap_err();
        assert_eq!(early, EventsError { after: 2002, last: 2001 });
    }

    #[test]
    fn a_private_session_is_told_of_to_its_owner_only_also_after_it() {
        let mut broker = broker();
        let hidden = open(&mut broker, "a", true);
        let shown = open(&mut broker, "b", false);
        broker.on(&hidden, Event::Started { pid: 1, confinement: confinement() }, NOW);
        broker.on(&hidden, Event::KillRequested { requester: String::new() }, NOW);
        broker.on(&hidden, Event::ScopeEmpty(emptied()), NOW);
        broker.on(&hidden, Event::Forgotten, NOW);
        broker.record(&shown, What::Idle, NOW);
        let others = vec![(2, "b session-starting".to_owned()), (6, "b session-idle".to_owned())];
        assert_eq!(page(&broker, 0, 9, ":1.9"), (others, 6));
        assert_eq!(page(&broker, 0, 1, ":1.9").1, 2);
        assert_eq!(page(&broker, 0, 9, ":1.1").0.len(), 6);
    }
}
