//! All sessions and leases, and what may be added to them.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use super::{
    clock::Now,
    deadline::{Deadlines, Key},
    effect::Effect,
    events::{Events, What},
    lane::Lanes,
    lease::{Connection, Holder, Lease, LeaseId, Secret, Token},
    name::SessionId,
    session::{Event, Facts, Session},
    share::Shares,
};

/// How much there may be of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    /// Live sessions of one owner.
    pub sessions_per_owner: usize,
    /// Live sessions in all.
    pub sessions: usize,
    /// Closed sessions kept.
    pub retained: usize,
    /// How long a closed session is kept.
    pub retention: Duration,
    /// Opens in flight of one owner; more wait their turn.
    pub opens_per_owner: usize,
    /// Shares of one session.
    pub shares: usize,
    /// Events kept in the log.
    pub events: usize,
}

/// Why no session was added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuotaError {
    /// The owner has as many as it may have.
    #[error(
        "this owner has {limit} live sessions, the limit of live_sessions_per_owner; close one first"
    )]
    PerOwner {
        /// The limit.
        limit: usize,
    },
    /// There are as many as there may be.
    #[error("the broker has {limit} live sessions, the limit of live_sessions; close one first")]
    Total {
        /// The limit.
        limit: usize,
    },
}

/// Whom a new session lives for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseWish {
    /// The opener's own lease, which is made where it has none.
    Caller,
    /// A lease of its own, held by token.
    Token {
        /// How long without a claim or renewal.
        ttl: Duration,
    },
}

/// The one owner of state.
#[derive(Debug)]
pub struct Broker {
    pub(super) quotas: Quotas,
    pub(super) sessions: BTreeMap<SessionId, Session>,
    pub(super) leases: BTreeMap<LeaseId, Lease>,
    /// The leases that a connection holds or has shown the token of.
    pub(super) held: BTreeMap<Connection, BTreeSet<LeaseId>>,
    pub(super) deadlines: Deadlines,
    pub(super) shares: Shares,
    pub(super) events: Events,
    lanes: Lanes,
    retained: VecDeque<SessionId>,
    leases_made: u64,
}

impl Broker {
    /// Begins with nothing.
    #[must_use]
    pub fn new(quotas: Quotas) -> Self {
        Self {
            quotas,
            sessions: BTreeMap::new(),
            leases: BTreeMap::new(),
            held: BTreeMap::new(),
            deadlines: Deadlines::default(),
            shares: Shares::default(),
            events: Events::new(quotas.events),
            lanes: Lanes::new(quotas.opens_per_owner),
            retained: VecDeque::new(),
            leases_made: 0,
        }
    }

    /// Adds a session for its opener; it opens when it is its turn.
    ///
    /// `secret` goes into the token of a lease that has to be made.
    ///
    /// # Errors
    /// [`QuotaError`] where a quota is used up; nothing is changed then.
    pub fn open(
        &mut self,
        facts: Facts,
        wish: &LeaseWish,
        secret: &Secret,
        now: Now,
    ) -> Result<Vec<Effect>, QuotaError> {
        self.check_quotas(&facts.opener)?;
        let (id, opener) = (facts.id.clone(), facts.opener.clone());
        let lease = self.lease_for(&opener, wish, secret, now);
        if let Some(lease) = self.leases.get_mut(&lease) {
            lease.sessions.insert(id.clone());
        }
        self.sessions.insert(id.clone(), Session::new(facts, lease));
        self.record(&id, What::Starting, now);
        if self.lanes.enter(&opener, &id) { Ok(self.on(&id, Event::Turn, now)) } else { Ok(vec![]) }
    }

    /// Gives an event to a session, keeps its deadlines, and gives the effects left to perform.
    pub fn on(&mut self, id: &SessionId, event: Event, now: Now) -> Vec<Effect> {
        let Some(session) = self.sessions.get_mut(id) else { return Vec::new() };
        let had_ended = session.ending().is_some();
        let caused = session.on(event, now);
        if let (false, Some((ending, reason))) = (had_ended, session.ending()) {
            self.record(id, What::Exited(ending, reason), now);
        }
        let mut effects = Vec::new();
        for effect in caused {
            self.record_effect(&effect, now);
            match &effect {
                Effect::Arm(key, at) => self.deadlines.arm(key.clone(), *at),
                Effect::Disarm(key) => self.deadlines.disarm(key),
                Effect::Launch(_)
                | Effect::AbortLaunch(_)
                | Effect::End(..)
                | Effect::Changed(_) => effects.push(effect),
                Effect::Opened(_) => {
                    effects.push(effect);
                    effects.extend(self.leave_lane(id, now));
                }
                Effect::OpenFailed(..) => {
                    effects.push(effect);
                    effects.extend(self.leave_lane(id, now));
                    self.remove(id);
                }
                Effect::Closed(_) => {
                    effects.push(effect);
                    effects.extend(self.retain(id, now));
                }
                Effect::Retired(_) => {
                    effects.push(effect);
                    self.remove(id);
                }
            }
        }
        effects
    }

    /// Ends every session because the broker is going down.
    pub fn shutdown(&mut self, now: Now) -> Vec<Effect> {
        let all: Vec<_> = self.sessions.keys().cloned().collect();
        all.iter().flat_map(|id| self.on(id, Event::Shutdown, now)).collect()
    }

    /// When [`Broker::elapse`] has something to do next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        self.deadlines.next()
    }

    /// Acts on every deadline whose time has come.
    pub fn elapse(&mut self, now: Now) -> Vec<Effect> {
        let mut effects = Vec::new();
        while let Some(key) = self.deadlines.take_elapsed(now.elapsed) {
            effects.extend(match key {
                Key::Grace(id) => self.on(&id, Event::GraceElapsed, now),
                Key::Timeout(id) => self.on(&id, Event::TimeoutElapsed, now),
                Key::Retention(id) => self.on(&id, Event::Forgotten, now),
                Key::Lease(lease) => self.on_all(lease, &Event::LeaseElapsed, now),
            });
        }
        effects
    }

    /// A session, live or retained.
    #[must_use]
    pub fn session(&self, id: &SessionId) -> Option<&Session> {
        self.sessions.get(id)
    }

    /// All sessions, live and retained, by id.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.sessions.values()
    }

    /// The token that claims a session's lease now.
    #[must_use]
    pub fn token(&self, id: &SessionId) -> Option<&Token> {
        let session = self.sessions.get(id)?;
        self.leases.get(&session.lease).map(|lease| &lease.token)
    }

    /// How many sessions are live.
    #[must_use]
    pub fn live(&self) -> usize {
        self.sessions.len() - self.retained.len()
    }

    /// Gives an event to every session of a lease.
    pub(super) fn on_all(&mut self, lease: LeaseId, event: &Event, now: Now) -> Vec<Effect> {
        let Some(lease) = self.leases.get(&lease) else { return Vec::new() };
        let sessions: Vec<_> = lease.sessions.iter().cloned().collect();
        sessions.iter().flat_map(|id| self.on(id, event.clone(), now)).collect()
    }

    /// Drops a lease that ties nothing and that no connection holds.
    pub(super) fn tidy(&mut self, id: LeaseId) {
        let Some(lease) = self.leases.get(&id) else { return };
        if !lease.sessions.is_empty() || matches!(lease.holder, Holder::Present(_)) {
            return;
        }
        if let Holder::Token { shown_by, .. } = &lease.holder {
            for connection in shown_by.clone() {
                self.let_go(&connection, id);
            }
        }
        self.leases.remove(&id);
        self.deadlines.disarm(&Key::Lease(id));
    }

    /// Takes a lease from what a connection holds.
    pub(super) fn let_go(&mut self, connection: &Connection, lease: LeaseId) {
        if let Some(held) = self.held.get_mut(connection) {
            held.remove(&lease);
            if held.is_empty() {
                self.held.remove(connection);
            }
        }
    }

    fn check_quotas(&self, opener: &Connection) -> Result<(), QuotaError> {
        let limit = self.quotas.sessions;
        if self.live() >= limit {
            return Err(QuotaError::Total { limit });
        }
        let limit = self.quotas.sessions_per_owner;
        let of_owner = self.held.get(opener).into_iter().flatten();
        let live = of_owner
            .filter_map(|lease| self.leases.get(lease))
            .flat_map(|lease| &lease.sessions)
            .filter(|id| self.sessions.get(*id).is_some_and(Session::is_live))
            .count();
        if live >= limit { Err(QuotaError::PerOwner { limit }) } else { Ok(()) }
    }

    fn lease_for(
        &mut self,
        opener: &Connection,
        wish: &LeaseWish,
        secret: &Secret,
        now: Now,
    ) -> LeaseId {
        let holder = match wish {
            LeaseWish::Caller => {
                let present = |id: &&LeaseId| {
                    let holder = self.leases.get(id).map(|lease| &lease.holder);
                    matches!(holder, Some(Holder::Present(_)))
                };
                if let Some(id) = self.held.get(opener).into_iter().flatten().find(present) {
                    return *id;
                }
                Holder::Present(opener.clone())
            }
            LeaseWish::Token { ttl } => {
                Holder::Token { ttl: *ttl, shown_by: BTreeSet::from([opener.clone()]) }
            }
        };
        self.leases_made += 1;
        let id = LeaseId(self.leases_made);
        if let Holder::Token { ttl, .. } = holder {
            self.deadlines.arm(Key::Lease(id), now.elapsed + ttl);
        }
        let token = Token::of(id, secret);
        self.leases.insert(id, Lease { id, token, holder, sessions: BTreeSet::new() });
        self.held.entry(opener.clone()).or_default().insert(id);
        id
    }

    fn leave_lane(&mut self, id: &SessionId, now: Now) -> Vec<Effect> {
        let Some(session) = self.sessions.get(id) else { return Vec::new() };
        let opener = session.facts.opener.clone();
        match self.lanes.leave(&opener, id) {
            Some(next) => self.on(&next, Event::Turn, now),
            None => Vec::new(),
        }
    }

    fn retain(&mut self, id: &SessionId, now: Now) -> Vec<Effect> {
        self.retained.push_back(id.clone());
        let until = now.elapsed + self.quotas.retention;
        self.deadlines.arm(Key::Retention(id.clone()), until);
        if self.retained.len() <= self.quotas.retained {
            return Vec::new();
        }
        match self.retained.front().cloned() {
            Some(oldest) => self.on(&oldest, Event::Forgotten, now),
            None => Vec::new(),
        }
    }

    fn remove(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.remove(id) else { return };
        self.retained.retain(|retained| retained != id);
        self.shares.revoke(id);
        for key in [Key::Grace(id.clone()), Key::Timeout(id.clone()), Key::Retention(id.clone())] {
            self.deadlines.disarm(&key);
        }
        if let Some(lease) = self.leases.get_mut(&session.lease) {
            lease.sessions.remove(id);
        }
        self.tidy(session.lease);
    }
}

#[cfg(test)]
pub(super) mod tests;
