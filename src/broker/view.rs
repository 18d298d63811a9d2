//! What can be seen of a session from outside, as one snapshot.

use super::{
    lease::Holder,
    outcome::Outcome,
    registry::Broker,
    session::{Facts, Running, Session},
};

/// Whether the owner is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerState {
    /// A connection on the bus.
    Present,
    /// It vanished; the grace runs.
    Grace,
    /// Whoever shows the token.
    Token,
    /// Nobody will come back.
    Gone,
}

impl OwnerState {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Grace => "grace",
            Self::Token => "token",
            Self::Gone => "gone",
        }
    }
}

/// A session's state at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// What is settled.
    pub facts: Facts,
    /// The phase's word.
    pub phase: &'static str,
    /// Unique name of the owner; empty for a token lease.
    pub owner: String,
    /// Whether the owner is there.
    pub owner_state: OwnerState,
    /// When the grace ends, µs since the epoch; 0 while none runs.
    pub grace_deadline_usec: u64,
    /// How it runs or had run, once the tool had started.
    pub ran: Option<Running>,
    /// How it ended, once it has.
    pub outcome: Option<Outcome>,
}

impl Broker {
    /// Takes a snapshot of a session.
    #[must_use]
    pub fn view(&self, session: &Session) -> View {
        let (owner, owner_state) = self.owner(session);
        View {
            facts: session.facts.clone(),
            phase: session.phase.as_str(),
            owner,
            owner_state,
            grace_deadline_usec: session.grace_deadline_usec,
            ran: session.ran().cloned(),
            outcome: session.outcome().cloned(),
        }
    }

    /// A session's owner by name, and whether it is there.
    #[must_use]
    pub fn owner(&self, session: &Session) -> (String, OwnerState) {
        match self.leases.get(&session.lease).map(|lease| &lease.holder) {
            Some(Holder::Present(connection)) => (connection.to_string(), OwnerState::Present),
            Some(Holder::Vanished(connection)) if session.grace_deadline_usec > 0 => {
                (connection.to_string(), OwnerState::Grace)
            }
            Some(Holder::Vanished(connection)) => (connection.to_string(), OwnerState::Gone),
            Some(Holder::Token { .. }) if session.is_live() => (String::new(), OwnerState::Token),
            Some(Holder::Token { .. }) | None => (String::new(), OwnerState::Gone),
        }
    }
}
