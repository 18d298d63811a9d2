use proptest::prelude::*;

use super::*;
use crate::{
    broker::{
        access::Need,
        effect::OpenFailure,
        outcome::{Ending, Reason},
        session::{
            Phase,
            tests::{confinement, emptied, facts},
        },
    },
    launch::spec::{Failure, Step},
};

pub(in crate::broker) const QUOTAS: Quotas = Quotas {
    sessions_per_owner: 4,
    sessions: 7,
    retained: 3,
    retention: Duration::from_secs(600),
    opens_per_owner: 2,
    shares: 16,
    events: 1024,
};

#[derive(Debug, Clone)]
enum Op {
    Open { by: u8, token: bool },
    Start(u8),
    FailLaunch(u8),
    ExitLeader(u8),
    Empty(u8),
    Close(u8),
    Kill(u8),
    Vanish(u8),
    Claim { session: u8, by: u8 },
    Renew { session: u8, by: u8 },
    Forget(u8),
    Pass { seconds: u16 },
    Shutdown,
}

fn op() -> impl Strategy<Value = Op> {
    let by = 0..4u8;
    prop_oneof![
        6 => (by.clone(), any::<bool>()).prop_map(|(by, token)| Op::Open { by, token }),
        5 => any::<u8>().prop_map(Op::Start),
        1 => any::<u8>().prop_map(Op::FailLaunch),
        2 => any::<u8>().prop_map(Op::ExitLeader),
        3 => any::<u8>().prop_map(Op::Empty),
        1 => any::<u8>().prop_map(Op::Close),
        1 => any::<u8>().prop_map(Op::Kill),
        2 => by.clone().prop_map(Op::Vanish),
        2 => (any::<u8>(), by.clone()).prop_map(|(session, by)| Op::Claim { session, by }),
        1 => (any::<u8>(), by).prop_map(|(session, by)| Op::Renew { session, by }),
        1 => any::<u8>().prop_map(Op::Forget),
        2 => (0..700u16).prop_map(|seconds| Op::Pass { seconds }),
        1 => Just(Op::Shutdown),
    ]
}

/// A broker and the world around it, as far as events need one.
struct World {
    broker: Broker,
    now: Now,
    made: usize,
    /// Connections come back under a new name, as on a bus.
    names: [u32; 4],
}

impl World {
    fn new() -> Self {
        Self {
            broker: Broker::new(QUOTAS),
            now: Now { elapsed: Duration::ZERO, wall_usec: 1 << 50 },
            made: 0,
            names: [0; 4],
        }
    }

    fn connection(&self, by: u8) -> Connection {
        let by = usize::from(by);
        Connection::new(format!(":{by}.{}", self.names[by]))
    }

    fn pick(&self, nth: u8, wanted: fn(&Phase) -> bool) -> Option<SessionId> {
        let fit: Vec<_> = self.broker.sessions().filter(|s| wanted(&s.phase)).collect();
        if fit.is_empty() { None } else { Some(fit[usize::from(nth) % fit.len()].facts.id.clone()) }
    }

    fn tell(&mut self, id: Option<SessionId>, event: Event) {
        if let Some(id) = id {
            self.broker.on(&id, event, self.now);
        }
    }

    fn secret(&mut self) -> Secret {
        self.made += 1;
        Secret::new((self.made as u128).to_le_bytes())
    }

    fn apply(&mut self, op: Op) {
        let any = |_: &Phase| true;
        let launching = |p: &Phase| matches!(p, Phase::Opening | Phase::Aborting(_));
        let started = |p: &Phase| matches!(p, Phase::Running(_) | Phase::Closing { .. });
        let requester = ":9.9".to_owned();
        match op {
            Op::Open { by, token } => self.open(by, token),
            Op::Start(n) => {
                let event = Event::Started { pid: 1, confinement: confinement() };
                self.tell(self.pick(n, launching), event);
            }
            Op::FailLaunch(n) => {
                let failure = Failure { step: Step::Exec, errno: 2, message: String::new() };
                self.tell(self.pick(n, launching), Event::LaunchFailed(failure));
            }
            Op::ExitLeader(n) => {
                let event = Event::LeaderExited { ending: Ending::Exited(0), reason: Reason::Exit };
                self.tell(self.pick(n, started), event);
            }
            Op::Empty(n) => {
                let closing = |p: &Phase| matches!(p, Phase::Closing { .. });
                self.tell(self.pick(n, closing), Event::ScopeEmpty(emptied()));
            }
            Op::Close(n) => {
                self.tell(self.pick(n, any), Event::CloseRequested { requester, within: None });
            }
            Op::Kill(n) => self.tell(self.pick(n, any), Event::KillRequested { requester }),
            Op::Vanish(by) => {
                let vanished = self.connection(by);
                self.names[usize::from(by)] += 1;
                self.broker.owner_vanished(&vanished, self.now);
            }
            Op::Claim { session, by } => self.claim(session, by),
            Op::Renew { session, by } => {
                let Some(id) = self.pick(session, any) else { return };
                let token = self.broker.token(&id).unwrap().clone();
                let by = self.connection(by);
                let _refused = self.broker.renew(token.reveal(), &by, self.now);
            }
            Op::Forget(n) => self.tell(self.pick(n, any), Event::Forgotten),
            Op::Pass { seconds } => {
                self.now.elapsed += Duration::from_secs(seconds.into());
                self.broker.elapse(self.now);
            }
            Op::Shutdown => {
                self.broker.shutdown(self.now);
            }
        }
    }

    fn open(&mut self, by: u8, token: bool) {
        let secret = self.secret();
        let opener = self.connection(by);
        let facts = facts(&format!("s{}", self.made), opener.as_str());
        let ttl = Duration::from_secs(60);
        let wish = if token { LeaseWish::Token { ttl } } else { LeaseWish::Caller };
        let before = self.broker.live();
        let refused = self.broker.open(facts, &wish, &secret, self.now).is_err();
        assert_eq!(self.broker.live(), before + usize::from(!refused));
    }

    fn claim(&mut self, session: u8, by: u8) {
        let Some(id) = self.pick(session, |_| true) else { return };
        let old = self.broker.token(&id).unwrap().clone();
        let holder = self.broker.leases[&self.broker.session(&id).unwrap().lease].holder.clone();
        let (by, secret) = (self.connection(by), self.secret());
        let Ok(claim) = self.broker.claim(old.reveal(), &by, &secret, self.now) else { return };
        assert!(!claim.token.matches(old.reveal()));
        assert!(self.broker.claim(old.reveal(), &by, &secret, self.now).is_err(), "used twice");
        assert!(self.broker.access(&id, &by, None, Need::Control).is_ok());
        if let Holder::Present(fenced) = holder
            && fenced != by
        {
            assert!(self.broker.access(&id, &fenced, None, Need::Control).is_err());
        }
    }

    /// Lets everything in flight come to its end, and all owners vanish.
    fn settle(&mut self) {
        for by in 0..4 {
            self.apply(Op::Vanish(by));
        }
        for _ in 0..64 {
            self.apply(Op::FailLaunch(0));
            self.apply(Op::Empty(0));
            self.apply(Op::Pass { seconds: 1 });
        }
        self.apply(Op::Pass { seconds: 4000 });
        for _ in 0..16 {
            self.apply(Op::Empty(0));
        }
        self.apply(Op::Pass { seconds: 4000 });
    }
}

fn verify_invariants(broker: &Broker) {
    for (id, session) in &broker.sessions {
        assert_eq!(id, &session.facts.id);
        assert!(broker.leases[&session.lease].sessions.contains(id), "{id} is not in its lease");
        assert_ne!(session.phase, Phase::Gone, "{id} is gone but kept");
        let armed = |key| broker.deadlines.of(&key).is_some();
        let running = matches!(session.phase, Phase::Running(_));
        let closed = matches!(session.phase, Phase::Closed { .. });
        assert_eq!(armed(Key::Grace(id.clone())), session.grace_deadline_usec > 0);
        assert_eq!(armed(Key::Timeout(id.clone())), running);
        assert_eq!(armed(Key::Retention(id.clone())), closed);
        assert_eq!(broker.retained.contains(id), closed);
        let holder = &broker.leases[&session.lease].holder;
        if running && matches!(holder, Holder::Vanished(_)) {
            assert!(session.grace_deadline_usec > 0, "{id} outlives its owner without end");
        }
    }
    for (id, lease) in &broker.leases {
        assert!(lease.sessions.iter().all(|session| broker.sessions.contains_key(session)));
        let present = matches!(lease.holder, Holder::Present(_));
        assert!(present || !lease.sessions.is_empty(), "{id:?} ties nothing");
        for (connection, held) in &broker.held {
            assert_eq!(held.contains(id), lease.is_held_by(connection), "{id:?} {connection}");
        }
    }
    assert!(broker.retained.len() <= QUOTAS.retained && broker.live() <= QUOTAS.sessions);
    let opening =
        |s: &&Session| matches!(s.phase, Phase::Waiting | Phase::Opening | Phase::Aborting(_));
    assert_eq!(broker.lanes.len(), broker.sessions().filter(opening).count());
}

proptest! {
    #[test]
    fn random_operations_keep_the_invariants_and_leave_nothing(
        ops in prop::collection::vec(op(), 1..80)
    ) {
        let mut world = World::new();
        for op in ops {
            world.apply(op);
            verify_invariants(&world.broker);
        }
        world.settle();
        prop_assert!(world.broker.sessions.is_empty(), "{:#?}", world.broker.sessions);
        prop_assert!(world.broker.leases.is_empty() && world.broker.held.is_empty());
        prop_assert!(world.broker.deadlines.is_empty() && world.broker.lanes.is_empty());
    }
}

#[test]
fn an_owner_over_its_quota_is_refused_and_nothing_changes() {
    let mut world = World::new();
    for _ in 0..QUOTAS.sessions_per_owner {
        world.apply(Op::Open { by: 0, token: false });
    }
    let secret = world.secret();
    let refused =
        world.broker.open(facts("x", ":0.0"), &LeaseWish::Caller, &secret, world.now).unwrap_err();
    assert_eq!(refused, QuotaError::PerOwner { limit: 4 });
    assert_eq!(world.broker.live(), 4);
    for _ in 0..3 {
        world.apply(Op::Open { by: 1, token: false });
    }
    let refused =
        world.broker.open(facts("y", ":2.0"), &LeaseWish::Caller, &secret, world.now).unwrap_err();
    assert_eq!(refused, QuotaError::Total { limit: 7 });
}

#[test]
fn a_third_open_waits_until_one_has_its_answer() {
    let mut world = World::new();
    let mut launched = Vec::new();
    for id in ["a", "b", "c"] {
        let secret = world.secret();
        let effects =
            world.broker.open(facts(id, ":0.0"), &LeaseWish::Caller, &secret, world.now).unwrap();
        launched.extend(effects);
    }
    let id = |text| SessionId::new(text).unwrap();
    assert_eq!(launched, [Effect::Launch(id("a")), Effect::Launch(id("b"))]);
    let failure = Failure { step: Step::Pty, errno: 28, message: "no free pty".into() };
    let effects = world.broker.on(&id("a"), Event::LaunchFailed(failure.clone()), world.now);
    let failed = Effect::OpenFailed(id("a"), OpenFailure::Launch(failure));
    assert_eq!(effects, [failed, Effect::Launch(id("c"))]);
}
