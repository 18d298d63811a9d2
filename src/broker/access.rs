//! Who may do what to a session.

use super::{
    lease::{Connection, Token},
    name::SessionId,
    ownership::TokenError,
    registry::Broker,
    session::Session,
};

/// What a caller wants of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Read its output.
    Observe,
    /// Write, resize, signal, end.
    Control,
}

/// Why a caller may not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// There is none, or it was forgotten.
    #[error("no session {0}: it never was, or is no longer retained")]
    NoSuchSession(SessionId),
    /// The caller does not own it.
    #[error("session {session} belongs to {owner}: only the owner, or who shows its token, may")]
    NotOwner {
        /// The session.
        session: SessionId,
        /// Its owner, in words.
        owner: String,
    },
    /// The caller does not own it, and it is private.
    #[error("session {0} is private: only its owner may observe it")]
    Private(SessionId),
    /// The token shown with the call is a share, and not one to control by.
    #[error("session {0} is shared with this token to be observed only")]
    ObserveOnly(SessionId),
    /// The token shown with the call is not the session's.
    #[error("{0}")]
    Token(#[from] TokenError),
}

impl Broker {
    /// Finds a session for a caller that needs something of it; a token shown with the call makes it the owner for that
    /// call, or lets it do what the token was shared for.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn access(
        &self,
        id: &SessionId,
        caller: &Connection,
        token: Option<&str>,
        need: Need,
    ) -> Result<&Session, Denied> {
        let session = self.session(id).ok_or_else(|| Denied::NoSuchSession(id.clone()))?;
        let owns = match token {
            Some(text) if Token::is_share(text) => return self.as_shared(session, text, need),
            Some(text) => self.token_speaks_for(session, text)?,
            None => self.is_owner(session, caller),
        };
        match need {
            _ if owns => Ok(session),
            Need::Observe if !session.facts.private => Ok(session),
            Need::Observe => Err(Denied::Private(id.clone())),
            Need::Control => Err(self.not_owner(session)),
        }
    }

    /// Whether a connection may act as the owner of a session without showing a token.
    #[must_use]
    pub fn is_owner(&self, session: &Session, caller: &Connection) -> bool {
        self.leases.get(&session.lease).is_some_and(|lease| lease.is_held_by(caller))
    }

    /// Whether a token is that of a session's lease.
    ///
    /// # Errors
    /// [`TokenError::Unknown`] where it is not.
    pub fn token_speaks_for(&self, session: &Session, text: &str) -> Result<bool, TokenError> {
        let lease = self.leases.get(&session.lease);
        match lease.filter(|lease| lease.token.matches(text)) {
            Some(_) => Ok(true),
            None => Err(TokenError::Unknown),
        }
    }

    fn not_owner(&self, session: &Session) -> Denied {
        let (owner, _) = self.owner(session);
        let owner = if owner.is_empty() { "a token lease".to_owned() } else { owner };
        Denied::NotOwner { session: session.facts.id.clone(), owner }
    }
}
