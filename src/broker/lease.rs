//! Leases: what ties sessions to an owner, and outlives the owner by the grace.

use std::{collections::BTreeSet, fmt, time::Duration};

use subtle::ConstantTimeEq;

use super::name::SessionId;

/// A connection to the bus, by its unique name. Unique names are never given twice on one bus (D-Bus
/// specification, "Unique names"), so the name of a connection that vanished never means another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Connection(String);

impl Connection {
    /// Takes a unique name as the bus gave it.
    #[must_use]
    pub fn new(unique_name: impl Into<String>) -> Self {
        Self(unique_name.into())
    }

    /// The unique name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which lease; counts up, never given twice by one broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u64);

/// 128 random bits, drawn by the edge.
#[derive(Clone, Copy)]
pub struct Secret([u8; 16]);

impl Secret {
    /// Takes bytes from the system's random source.
    #[must_use]
    pub fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// How the token of a share begins.
const SHARE: &str = "share-";

/// What claims, renews or speaks for a lease, `ID-SECRET` in lower-case hexadecimal, or for one session. Never logged,
/// and compared by [`Token::matches`] only: there is no `==`.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Writes a token.
    #[must_use]
    pub fn of(id: LeaseId, secret: &Secret) -> Self {
        Self(format!("{:x}-{}", id.0, secret.hex()))
    }

    /// Writes the token of a share: `share-SESSION-SECRET`, which no token of a lease begins with.
    #[must_use]
    pub fn share(session: &SessionId, secret: &Secret) -> Self {
        Self(format!("{SHARE}{session}-{}", secret.hex()))
    }

    /// Whether a text has the form of a share's token.
    #[must_use]
    pub fn is_share(text: &str) -> bool {
        text.starts_with(SHARE)
    }

    /// The lease that a token's text names, whether or not its secret is right.
    #[must_use]
    pub fn names(text: &str) -> Option<LeaseId> {
        let (id, secret) = text.split_once('-')?;
        let well_formed = secret.len() == 32 && !id.is_empty() && id.len() <= 16;
        if !well_formed { None } else { u64::from_str_radix(id, 16).ok().map(LeaseId) }
    }

    /// Compares in a time that does not depend on where the texts differ.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        bool::from(self.0.as_bytes().ct_eq(text.as_bytes()))
    }

    /// The text, to hand to its owner.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Who holds a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// A connection that is on the bus.
    Present(Connection),
    /// A connection that vanished; the sessions are in their grace.
    Vanished(Connection),
    /// Nobody in particular: whoever shows the token.
    Token {
        /// How long without a claim or renewal.
        ttl: Duration,
        /// Connections that showed the token and are still on the bus.
        shown_by: BTreeSet<Connection>,
    },
}

/// One lease.
#[derive(Debug, Clone)]
pub struct Lease {
    /// Which.
    pub id: LeaseId,
    /// What claims it; changes at each claim.
    pub token: Token,
    /// Who holds it.
    pub holder: Holder,
    /// The sessions it ties, closed ones that are still retained included.
    pub sessions: BTreeSet<SessionId>,
}

impl Lease {
    /// Whether a connection may act as the owner without showing a token.
    #[must_use]
    pub fn is_held_by(&self, connection: &Connection) -> bool {
        match &self.holder {
            Holder::Present(holder) => holder == connection,
            Holder::Vanished(_) => false,
            Holder::Token { shown_by, .. } => shown_by.contains(connection),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_lease_and_hides_its_secret() {
        let token = Token::of(LeaseId(0x2a), &Secret::new([0xab; 16]));
        assert_eq!(token.reveal(), format!("2a-{}", "ab".repeat(16)));
        assert_eq!(Token::names(token.reveal()), Some(LeaseId(42)));
        assert_eq!(format!("{token:?} {:?}", Secret::new([1; 16])), "Token(…) Secret(…)");
        assert!(token.matches(&format!("2a-{}", "ab".repeat(16))));
        assert!(!token.matches(&format!("2a-{}", "ac".repeat(16))));
    }

    #[test]
    fn a_malformed_token_names_nothing() {
        for text in ["", "-", "2a", "2a-", "zz-00", &format!("-{}", "ab".repeat(16))] {
            assert_eq!(Token::names(text), None, "{text:?}");
        }
    }
}
