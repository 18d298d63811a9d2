//! How leases change hands: vanish, claim, renewal.

use std::collections::BTreeSet;

use super::{
    clock::Now,
    deadline::Key,
    effect::Effect,
    lease::{Connection, Holder, Lease, LeaseId, Secret, Token},
    name::SessionId,
    registry::Broker,
    session::{Event, Phase, Session},
};

/// Why a token opens nothing. The message never repeats the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It was never given, or was used: a claim makes a new one.
    #[error("token is not one that is in force: it is wrong, or a later claim replaced it")]
    Unknown,
    /// What it claimed has ended.
    #[error("token has expired: every session it was for has ended")]
    Expired,
    /// Only a lease held by token can be renewed.
    #[error(
        "token belongs to a lease that a connection holds; claim it, only a token lease is renewed"
    )]
    NotRenewable,
}

/// What a claim gave.
#[derive(Debug)]
pub struct Claim {
    /// The token from now on.
    pub token: Token,
    /// The sessions that came with the lease, those closed and still retained included.
    pub sessions: Vec<SessionId>,
    /// What is left to perform.
    pub effects: Vec<Effect>,
}

impl Broker {
    /// Acts on a connection's end: its sessions enter their grace, what it was opening ends at once.
    pub fn owner_vanished(&mut self, connection: &Connection, now: Now) -> Vec<Effect> {
        let held = self.held.remove(connection).unwrap_or_default();
        let mut effects = Vec::new();
        for id in self.unanswered(&held, connection) {
            effects.extend(self.on(&id, Event::OwnerVanished, now));
        }
        for id in held {
            let Some(lease) = self.leases.get_mut(&id) else { continue };
            match &mut lease.holder {
                Holder::Present(_) => {
                    lease.holder = Holder::Vanished(connection.clone());
                    effects.extend(self.on_all(id, &Event::OwnerVanished, now));
                }
                Holder::Token { shown_by, .. } => {
                    shown_by.remove(connection);
                }
                Holder::Vanished(_) => {}
            }
            self.tidy(id);
        }
        effects
    }

    /// Moves a lease to a connection, and gives it a new token made of `secret`.
    ///
    /// # Errors
    /// [`TokenError::Unknown`] or [`TokenError::Expired`]; nothing is changed then.
    pub fn claim(
        &mut self,
        text: &str,
        connection: &Connection,
        secret: &Secret,
        now: Now,
    ) -> Result<Claim, TokenError> {
        let id = self.lease_of(text)?;
        self.fence(id);
        let Some(lease) = self.leases.get_mut(&id) else { return Err(TokenError::Unknown) };
        lease.holder = Holder::Present(connection.clone());
        lease.token = Token::of(id, secret);
        let token = lease.token.clone();
        let tied = lease.sessions.clone();
        tied.iter().for_each(|session| self.shares.revoke(session));
        self.held.entry(connection.clone()).or_default().insert(id);
        self.deadlines.disarm(&Key::Lease(id));
        let effects = self.on_all(id, &Event::Claimed, now);
        let shown = |id: &SessionId| self.sessions.get(id).is_some_and(|s| s.ran().is_some());
        let sessions = tied.into_iter().filter(shown).collect();
        Ok(Claim { token, sessions, effects })
    }

    /// Renews a token lease, and lets the connection act as its owner until it vanishes; gives the new deadline,
    /// µs since the epoch.
    ///
    /// # Errors
    /// [`TokenError`]; nothing is changed then.
    pub fn renew(
        &mut self,
        text: &str,
        connection: &Connection,
        now: Now,
    ) -> Result<u64, TokenError> {
        let id = self.lease_of(text)?;
        let Some(lease) = self.leases.get_mut(&id) else { return Err(TokenError::Unknown) };
        let Holder::Token { ttl, shown_by } = &mut lease.holder else {
            return Err(TokenError::NotRenewable);
        };
        shown_by.insert(connection.clone());
        let deadline = now.elapsed + *ttl;
        self.held.entry(connection.clone()).or_default().insert(id);
        self.deadlines.arm(Key::Lease(id), deadline);
        Ok(now.wall_at(deadline))
    }

    /// The lease that a token is for.
    fn lease_of(&self, text: &str) -> Result<LeaseId, TokenError> {
        let lease = Token::names(text)
            .and_then(|id| self.leases.get(&id))
            .filter(|lease| lease.token.matches(text))
            .ok_or(TokenError::Unknown)?;
        if matches!(lease.holder, Holder::Present(_)) || self.has_unended(lease) {
            Ok(lease.id)
        } else {
            Err(TokenError::Expired)
        }
    }

    fn has_unended(&self, lease: &Lease) -> bool {
        lease.sessions.iter().filter_map(|id| self.sessions.get(id)).any(|session| {
            matches!(session.phase, Phase::Waiting | Phase::Opening | Phase::Running(_))
        })
    }

    /// Takes a lease from whoever holds it or has shown its token.
    fn fence(&mut self, id: LeaseId) {
        let Some(lease) = self.leases.get(&id) else { return };
        let holders = match &lease.holder {
            Holder::Present(connection) => BTreeSet::from([connection.clone()]),
            Holder::Vanished(_) => BTreeSet::new(),
            Holder::Token { shown_by, .. } => shown_by.clone(),
        };
        for connection in holders {
            self.let_go(&connection, id);
        }
    }

    /// Sessions of token leases that a connection is opening and has no answer for yet.
    fn unanswered(&self, held: &BTreeSet<LeaseId>, opener: &Connection) -> Vec<SessionId> {
        let unanswered = |session: &&Session| {
            session.facts.opener == *opener
                && matches!(session.phase, Phase::Waiting | Phase::Opening)
        };
        held.iter()
            .filter_map(|id| self.leases.get(id))
            .filter(|lease| matches!(lease.holder, Holder::Token { .. }))
            .flat_map(|lease| &lease.sessions)
            .filter_map(|id| self.sessions.get(id))
            .filter(unanswered)
            .map(|session| session.facts.id.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests;
