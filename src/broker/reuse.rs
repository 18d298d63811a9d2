//! Reuse: an open that takes a session which is there already.

use std::ffi::OsString;

use super::{
    lease::Holder,
    name::SessionId,
    registry::{Broker, LeaseWish},
    session::{Facts, Phase, Session},
};

impl Broker {
    /// The session that an open may be answered with instead of a new one: the opener's own, of the same tool, argv
    /// without a prompt, workspace, io and `agent` label, on the same kind of lease, private where that is asked, and
    /// healthy: it runs, or else is on its way. One that is ending never is.
    #[must_use]
    pub fn reusable(&self, wanted: &Facts, wish: &LeaseWish) -> Option<&SessionId> {
        let fits = |session: &&Session| {
            is_same(&session.facts, wanted)
                && self.is_owner(session, &wanted.opener)
                && self.is_lease(session, wish)
        };
        let of_rank = |rank| self.sessions.values().filter(move |s| self::rank(&s.phase) == rank);
        let found = of_rank(Some(0)).chain(of_rank(Some(1))).find(fits);
        found.map(|session| &session.facts.id)
    }

    fn is_lease(&self, session: &Session, wish: &LeaseWish) -> bool {
        let holder = self.leases.get(&session.lease).map(|lease| &lease.holder);
        matches!(
            (wish, holder),
            (LeaseWish::Caller, Some(Holder::Present(_)))
                | (LeaseWish::Token { .. }, Some(Holder::Token { .. }))
        )
    }
}

/// Whether a session may be taken: at once, or when it has opened.
fn rank(phase: &Phase) -> Option<u8> {
    match phase {
        Phase::Running(_) => Some(0),
        Phase::Waiting | Phase::Opening => Some(1),
        Phase::Aborting(_) | Phase::Closing { .. } | Phase::Closed { .. } | Phase::Gone => None,
    }
}

/// Whether what is there is what is asked for.
fn is_same(there: &Facts, wanted: &Facts) -> bool {
    there.tool == wanted.tool
        && unprompted(there) == unprompted(wanted)
        && there.workspace == wanted.workspace
        && there.io == wanted.io
        && there.labels.get("agent") == wanted.labels.get("agent")
        && (there.private || !wanted.private)
}

/// The argv without a prompt.
fn unprompted(facts: &Facts) -> &[OsString] {
    &facts.command[..facts.command.len().saturating_sub(facts.prompt_words)]
}

#[cfg(test)]
mod tests {
    use std::{os::unix::ffi::OsStringExt, time::Duration};

    use super::*;
    use crate::{
        broker::{
            clock::Now,
            lease::{Connection, Secret},
            registry::tests::QUOTAS,
            session::{
                Event,
                tests::{confinement, facts},
            },
        },
        launch::spec::Io,
    };

    const NOW: Now = Now { elapsed: Duration::from_secs(5), wall_usec: 1 };

    fn broker() -> Broker {
        Broker::new(QUOTAS)
    }

    fn open(broker: &mut Broker, facts: Facts, wish: &LeaseWish) -> SessionId {
        let id = facts.id.clone();
        broker.open(facts, wish, &Secret::new([1; 16]), NOW).unwrap();
        id
    }

    #[test]
    fn only_the_same_of_the_same_owner_is_reused() {
        let mut broker = broker();
        let mut there = facts("a", ":1.1");
        there.labels.insert("agent".to_owned(), "x".to_owned());
        let a = open(&mut broker, there.clone(), &LeaseWish::Caller);
        assert_eq!(broker.reusable(&there, &LeaseWish::Caller), Some(&a), "it is on its way");
        broker.on(&a, Event::Started { pid: 1, confinement: confinement() }, NOW);
        let wanted = |change: fn(&mut Facts)| {
            let mut wanted = there.clone();
            wanted.id = SessionId::new("new").unwrap();
            change(&mut wanted);
            wanted
        };
        let same = wanted(|facts| facts.labels.extend([("task".to_owned(), "other".to_owned())]));
        assert_eq!(broker.reusable(&same, &LeaseWish::Caller), Some(&a));
        let lossy = OsString::from_vec(vec![0xff]);
        for other in [
            wanted(|facts| facts.opener = Connection::new(":1.2")),
            wanted(|facts| facts.workspace = "/w/sub".into()),
            wanted(|facts| facts.command.push("-l".into())),
            wanted(|facts| facts.labels.clear()),
            wanted(|facts| facts.private = true),
            Facts { command: vec![lossy], ..there.clone() },
            wanted(|facts| facts.io.io = Io::Pipe),
            wanted(|facts| facts.io.fallback = true),
            wanted(|facts| facts.io.input = true),
        ] {
            assert_eq!(broker.reusable(&other, &LeaseWish::Caller), None, "{other:?}");
        }
        let prompted = wanted(|facts| {
            facts.command.extend(["--".into(), "say it again".into()]);
            facts.prompt_words = 2;
        });
        assert_eq!(broker.reusable(&prompted, &LeaseWish::Caller), Some(&a), "but for its prompt");
        let ttl = Duration::from_secs(60);
        assert_eq!(broker.reusable(&same, &LeaseWish::Token { ttl }), None);
        broker.on(&a, Event::KillRequested { requester: String::new() }, NOW);
        assert_eq!(broker.reusable(&same, &LeaseWish::Caller), None, "it is ending");
    }

    #[test]
    fn one_that_runs_comes_before_one_on_its_way() {
        let mut broker = broker();
        open(&mut broker, facts("a", ":1.1"), &LeaseWish::Caller);
        let b = open(&mut broker, facts("b", ":1.1"), &LeaseWish::Caller);
        broker.on(&b, Event::Started { pid: 1, confinement: confinement() }, NOW);
        assert_eq!(broker.reusable(&facts("c", ":1.1"), &LeaseWish::Caller), Some(&b));
    }
}
