//! Shares: tokens with which an owner lets others observe or control one session.
//!
//! They are as good as the owner's word, so they go when the owner does: with the session, and with a claim of its
//! lease, which fences the old owner and whoever it let in.

use std::collections::BTreeMap;

use super::{
    access::{Denied, Need},
    lease::{Secret, Token},
    name::SessionId,
    ownership::TokenError,
    registry::Broker,
    session::Session,
};

/// Why no share was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session has {limit} shares, the limit of shares_per_session")]
pub struct ShareError {
    /// Shares of one session.
    pub limit: usize,
}

/// The shares of all sessions.
#[derive(Debug, Default)]
pub(super) struct Shares(BTreeMap<SessionId, Vec<Share>>);

/// What one token is for.
#[derive(Debug, Clone)]
struct Share {
    token: Token,
    /// What it is good for; who may control may observe.
    need: Need,
}

impl Shares {
    /// Drops the shares of a session.
    pub(super) fn revoke(&mut self, session: &SessionId) {
        self.0.remove(session);
    }

    /// What a text is good for with a session. Each share is compared, so that the time tells nothing of which it is.
    fn find(&self, session: &SessionId, text: &str) -> Option<Need> {
        let shares = self.0.get(session).map(Vec::as_slice).unwrap_or_default();
        let mut found = None;
        for share in shares {
            if share.token.matches(text) {
                found = Some(share.need);
            }
        }
        found
    }
}

impl Broker {
    /// Makes a token that lets its bearer observe or control a session.
    ///
    /// # Errors
    /// [`ShareError`]; nothing is changed then.
    pub fn share(
        &mut self,
        session: &SessionId,
        need: Need,
        secret: &Secret,
    ) -> Result<Token, ShareError> {
        let limit = self.quotas.shares;
        let shares = self.shares.0.entry(session.clone()).or_default();
        if shares.len() >= limit {
            return Err(ShareError { limit });
        }
        let token = Token::share(session, secret);
        shares.push(Share { token: token.clone(), need });
        Ok(token)
    }

    /// Checks a share shown with a call.
    pub(super) fn as_shared<'s>(
        &self,
        session: &'s Session,
        text: &str,
        need: Need,
    ) -> Result<&'s Session, Denied> {
        let id = &session.facts.id;
        match (self.shares.find(id, text).ok_or(TokenError::Unknown)?, need) {
            (Need::Control, _) | (Need::Observe, Need::Observe) => Ok(session),
            (Need::Observe, Need::Control) => Err(Denied::ObserveOnly(id.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::broker::{
        clock::Now,
        lease::Connection,
        registry::{LeaseWish, tests::QUOTAS},
        session::{
            Event,
            tests::{confinement, facts},
        },
    };

    const NOW: Now = Now { elapsed: Duration::from_secs(5), wall_usec: 1 };

    fn secret(byte: u8) -> Secret {
        Secret::new([byte; 16])
    }

    /// Two sessions of `:1.1`, both private.
    fn sessions() -> (Broker, SessionId, SessionId) {
        let mut broker = Broker::new(QUOTAS);
        for id in ["a", "b"] {
            let mut facts = facts(id, ":1.1");
            facts.private = true;
            let id = facts.id.clone();
            broker.open(facts, &LeaseWish::Caller, &secret(1), NOW).unwrap();
            broker.on(&id, Event::Started { pid: 1, confinement: confinement() }, NOW);
        }
        (broker, SessionId::new("a").unwrap(), SessionId::new("b").unwrap())
    }

    fn shown(broker: &Broker, id: &SessionId, token: &Token, need: Need) -> Result<(), Denied> {
        let stranger = Connection::new(":1.9");
        broker.access(id, &stranger, Some(token.reveal()), need).map(|_| ())
    }

    #[test]
    fn a_share_is_for_one_session_and_what_it_was_made_for() {
        let (mut broker, a, b) = sessions();
        let observe = broker.share(&a, Need::Observe, &secret(2)).unwrap();
        let control = broker.share(&a, Need::Control, &secret(3)).unwrap();
        assert_eq!(observe.reveal(), format!("share-a-{}", "02".repeat(16)));
        assert_eq!(shown(&broker, &a, &observe, Need::Observe), Ok(()));
        assert_eq!(
            shown(&broker, &a, &observe, Need::Control),
            Err(Denied::ObserveOnly(a.clone()))
        );
        assert_eq!(shown(&broker, &a, &control, Need::Observe), Ok(()));
        assert_eq!(shown(&broker, &a, &control, Need::Control), Ok(()));
        for need in [Need::Observe, Need::Control] {
            let unknown = Err(Denied::Token(TokenError::Unknown));
            assert_eq!(shown(&broker, &b, &control, need), unknown);
            assert_eq!(shown(&broker, &a, &Token::share(&a, &secret(4)), need), unknown);
        }
        assert!(broker.claim(control.reveal(), &Connection::new(":1.9"), &secret(5), NOW).is_err());
        let session = broker.session(&a).unwrap();
        assert!(broker.token_speaks_for(session, control.reveal()).is_err(), "it owns nothing");
    }

    #[test]
    fn shares_are_bounded_and_go_with_the_session_or_a_claim() {
        let (mut broker, a, b) = sessions();
        let shares: Vec<_> =
            (0..16).map(|n| broker.share(&a, Need::Control, &secret(n)).unwrap()).collect();
        assert_eq!(
            broker.share(&a, Need::Observe, &secret(99)).unwrap_err(),
            ShareError { limit: 16 }
        );
        let kept = broker.share(&b, Need::Control, &secret(50)).unwrap();
        broker.on(&a, Event::KillRequested { requester: String::new() }, NOW);
        broker.on(&a, Event::ScopeEmpty(crate::broker::session::tests::emptied()), NOW);
        assert!(shares.iter().all(|share| shown(&broker, &a, share, Need::Observe).is_ok()));
        broker.on(&a, Event::Forgotten, NOW);
        assert!(shown(&broker, &a, &shares[0], Need::Observe).is_err());
        assert!(!broker.shares.0.contains_key(&a));
        assert!(shown(&broker, &b, &kept, Need::Control).is_ok());
        let token = broker.token(&b).unwrap().reveal().to_owned();
        broker.claim(&token, &Connection::new(":1.2"), &secret(7), NOW).unwrap();
        assert!(shown(&broker, &b, &kept, Need::Control).is_err(), "a claim fences them too");
    }
}
