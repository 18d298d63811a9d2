use std::time::Duration;

use super::*;
use crate::broker::{
    access::{Denied, Need},
    effect::How,
    registry::{self, LeaseWish, Quotas},
    session::tests::{confinement, facts},
    view::OwnerState,
};

const NOW: Now = Now { elapsed: Duration::from_secs(5), wall_usec: 5_000_000 };
const QUOTAS: Quotas = Quotas {
    sessions_per_owner: 8,
    sessions: 16,
    retained: 4,
    opens_per_owner: 8,
    ..registry::tests::QUOTAS
};

fn after(seconds: u64) -> Now {
    Now {
        elapsed: NOW.elapsed + Duration::from_secs(seconds),
        wall_usec: NOW.wall_usec + seconds * 1_000_000,
    }
}

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

fn connection(name: &str) -> Connection {
    Connection::new(name)
}

fn secret(byte: u8) -> Secret {
    Secret::new([byte; 16])
}

/// A broker with running sessions of `:1.1`.
fn running(sessions: &[&str], wish: &LeaseWish) -> Broker {
    let mut broker = Broker::new(QUOTAS);
    for session in sessions {
        broker.open(facts(session, ":1.1"), wish, &secret(1), NOW).unwrap();
        let started = Event::Started { pid: 1, confinement: confinement() };
        broker.on(&id(session), started, NOW);
    }
    broker
}

fn token(broker: &Broker, session: &str) -> String {
    broker.token(&id(session)).unwrap().reveal().to_owned()
}

fn owner(broker: &Broker, session: &str) -> (String, OwnerState) {
    broker.owner(broker.session(&id(session)).unwrap())
}

#[test]
fn every_session_of_a_vanished_owner_enters_its_grace_and_ends_with_it() {
    let mut broker = running(&["a", "b", "c"], &LeaseWish::Caller);
    let effects = broker.owner_vanished(&connection(":1.1"), NOW);
    assert_eq!(effects, ["a", "b", "c"].map(|s| Effect::Changed(id(s))));
    assert_eq!(owner(&broker, "b"), (":1.1".into(), OwnerState::Grace));
    assert_eq!(broker.elapse(after(9)), []);
    let effects = broker.elapse(after(10));
    for session in ["a", "b", "c"] {
        let within = Duration::from_secs(2);
        assert!(effects.contains(&Effect::End(id(session), How::Stop { within })));
    }
    assert_eq!(owner(&broker, "b"), (":1.1".into(), OwnerState::Gone));
}

#[test]
fn a_claim_inside_the_grace_takes_everything_over_and_fences_the_old_owner() {
    let mut broker = running(&["a", "b"], &LeaseWish::Caller);
    let old = token(&broker, "a");
    assert_eq!(old, token(&broker, "b"), "one owner has one lease");
    broker.owner_vanished(&connection(":1.1"), NOW);
    let claim = broker.claim(&old, &connection(":1.2"), &secret(2), after(3)).unwrap();
    assert_eq!(claim.sessions, [id("a"), id("b")]);
    assert_eq!(owner(&broker, "a"), (":1.2".into(), OwnerState::Present));
    assert_eq!(broker.elapse(after(1000)), [], "no grace runs any more");
    let used = broker.claim(&old, &connection(":1.3"), &secret(3), after(4)).unwrap_err();
    assert_eq!(used, TokenError::Unknown);
}

#[test]
fn a_claim_from_a_present_owner_fences_it() {
    let mut broker = running(&["a"], &LeaseWish::Caller);
    let old = token(&broker, "a");
    broker.claim(&old, &connection(":1.2"), &secret(2), NOW).unwrap();
    let denied = broker.access(&id("a"), &connection(":1.1"), None, Need::Control).unwrap_err();
    assert!(matches!(denied, Denied::NotOwner { .. }), "{denied}");
    assert_eq!(broker.owner_vanished(&connection(":1.1"), NOW), [], "it owns nothing any more");
}

#[test]
fn a_token_lease_outlives_its_opener_until_its_time_is_up() {
    let wish = LeaseWish::Token { ttl: Duration::from_secs(60) };
    let mut broker = running(&["a"], &wish);
    assert_eq!(broker.owner_vanished(&connection(":1.1"), NOW), []);
    assert_eq!(owner(&broker, "a"), (String::new(), OwnerState::Token));
    let until = broker.renew(&token(&broker, "a"), &connection(":1.2"), after(50)).unwrap();
    assert_eq!(until, after(110).wall_usec);
    assert!(broker.access(&id("a"), &connection(":1.2"), None, Need::Control).is_ok());
    broker.owner_vanished(&connection(":1.2"), after(51));
    assert!(broker.access(&id("a"), &connection(":1.2"), None, Need::Control).is_err());
    assert_eq!(broker.elapse(after(109)), []);
    assert!(!broker.elapse(after(110)).is_empty());
    let late = broker.renew(&token(&broker, "a"), &connection(":1.3"), after(111)).unwrap_err();
    assert_eq!(late, TokenError::Expired);
}

#[test]
fn a_token_shown_with_a_call_makes_its_caller_the_owner_for_that_call() {
    let wish = LeaseWish::Token { ttl: Duration::from_secs(60) };
    let broker = running(&["a"], &wish);
    let (token, other) = (token(&broker, "a"), connection(":1.7"));
    assert!(broker.access(&id("a"), &other, Some(&token), Need::Control).is_ok());
    assert!(broker.access(&id("a"), &other, None, Need::Control).is_err());
    let wrong = broker.access(&id("a"), &other, Some("1-00"), Need::Observe).unwrap_err();
    assert_eq!(wrong, Denied::Token(TokenError::Unknown));
}

#[test]
fn a_private_session_is_seen_by_its_owner_only() {
    let mut broker = Broker::new(QUOTAS);
    let facts = crate::broker::session::Facts { private: true, ..facts("a", ":1.1") };
    broker.open(facts, &LeaseWish::Caller, &secret(1), NOW).unwrap();
    assert!(broker.access(&id("a"), &connection(":1.1"), None, Need::Observe).is_ok());
    let denied = broker.access(&id("a"), &connection(":1.2"), None, Need::Observe).unwrap_err();
    assert_eq!(denied, Denied::Private(id("a")));
}

#[test]
fn a_caller_that_vanishes_before_the_answer_gets_no_grace() {
    for wish in [LeaseWish::Caller, LeaseWish::Token { ttl: Duration::from_secs(60) }] {
        let mut broker = Broker::new(QUOTAS);
        broker.open(facts("a", ":1.1"), &wish, &secret(1), NOW).unwrap();
        let effects = broker.owner_vanished(&connection(":1.1"), NOW);
        assert_eq!(effects, [Effect::AbortLaunch(id("a"))]);
    }
}

#[test]
fn only_a_token_lease_is_renewed() {
    let mut broker = running(&["a"], &LeaseWish::Caller);
    let refused = broker.renew(&token(&broker, "a"), &connection(":1.1"), NOW).unwrap_err();
    assert_eq!(refused, TokenError::NotRenewable);
}
