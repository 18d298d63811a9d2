use std::fmt::Write as _;

use super::*;
use crate::{
    broker::{
        effect::{How, OpenFailure},
        lease::Connection,
    },
    launch::{report::Tier, spec::Step},
};

const NOW: Now = Now { elapsed: Duration::from_secs(100), wall_usec: 1_000_000_000 };

pub(in crate::broker) fn facts(id: &str, opener: &str) -> Facts {
    let id = SessionId::new(id).unwrap();
    let tool = ToolName::new("shell").unwrap();
    Facts {
        unit: UnitName::scope(&tool, &id),
        id,
        opener: Connection::new(opener),
        tool,
        command: vec!["sh".into()],
        prompt_words: 0,
        workspace: "/w".into(),
        cwd: "/w".into(),
        io: IoWish { io: Io::Pty, fallback: false, input: false },
        created_usec: 1,
        labels: BTreeMap::new(),
        private: false,
        grace: Duration::from_secs(10),
        timeout: Some(Duration::from_secs(3600)),
        silence: None,
        stop_timeout: Duration::from_secs(2),
    }
}

pub(in crate::broker) fn confinement() -> Box<Report> {
    Box::new(Report {
        tier: Tier::Seccomp,
        landlock_abi: 7,
        read: vec![],
        write: vec![],
        execute: vec![],
        devices: vec![],
        protect: Vec::new(),
        network: "none".into(),
        unix_sockets: "none".into(),
        sockets: Vec::new(),
        signals: "session".into(),
        syscalls: "filtered".into(),
        capabilities: "none".into(),
        gaps: vec![],
    })
}

pub(in crate::broker) fn emptied() -> Emptied {
    Emptied {
        survivors: 0,
        ending: None,
        usage: Usage::default(),
        bytes_out: 7,
        bytes_dropped: 0,
        unseen: false,
    }
}

fn ran() -> Running {
    Running { started_usec: 5, pid: 42, confinement: confinement() }
}

fn cause(reason: Reason) -> Cause {
    Cause { reason, requester: String::new() }
}

fn phases() -> Vec<(&'static str, Phase)> {
    let closing = |ending| Phase::Closing { ran: ran(), cause: cause(Reason::Timeout), ending };
    let outcome = transitions::outcome(&ran(), cause(Reason::Exit), None, emptied(), NOW);
    vec![
        ("waiting", Phase::Waiting),
        ("opening", Phase::Opening),
        ("aborting", Phase::Aborting(cause(Reason::ClosedByOwner))),
        ("running", Phase::Running(ran())),
        ("closing", closing(None)),
        ("closing, leader ended", closing(Some(Ending::Exited(3)))),
        ("closed", Phase::Closed { ran: ran(), outcome }),
        ("gone", Phase::Gone),
    ]
}

fn events() -> Vec<(&'static str, Event)> {
    let failure = Failure { step: Step::Exec, errno: 2, message: "no such program".into() };
    let requester = || ":1.9".to_owned();
    let close = |within| Event::CloseRequested { requester: requester(), within };
    vec![
        ("turn", Event::Turn),
        ("started", Event::Started { pid: 42, confinement: confinement() }),
        ("launch failed", Event::LaunchFailed(failure)),
        ("leader exited", Event::LeaderExited { ending: Ending::Exited(0), reason: Reason::Exit }),
        ("scope empty", Event::ScopeEmpty(emptied())),
        ("close", close(None)),
        ("close in 1 s", close(Some(Duration::from_secs(1)))),
        ("close in 9 s", close(Some(Duration::from_secs(9)))),
        ("kill", Event::KillRequested { requester: requester() }),
        ("owner vanished", Event::OwnerVanished),
        ("claimed", Event::Claimed),
        ("grace elapsed", Event::GraceElapsed),
        ("lease elapsed", Event::LeaseElapsed),
        ("timeout elapsed", Event::TimeoutElapsed),
        ("silence elapsed", Event::SilenceElapsed),
        ("forgotten", Event::Forgotten),
        ("shutdown", Event::Shutdown),
    ]
}

fn describe(effect: &Effect) -> String {
    match effect {
        Effect::Arm(key, at) => format!("arm {key:?} +{}s", (*at - NOW.elapsed).as_secs()),
        Effect::Disarm(key) => format!("disarm {key:?}"),
        Effect::Launch(_) => "launch".into(),
        Effect::AbortLaunch(_) => "abort launch".into(),
        Effect::End(_, How::Stop { within }) => format!("stop within {}s", within.as_secs()),
        Effect::End(_, How::Kill) => "kill".into(),
        Effect::Opened(_) => "opened".into(),
        Effect::OpenFailed(_, OpenFailure::Launch(failure)) => format!("open failed: {failure}"),
        Effect::OpenFailed(_, OpenFailure::Ended(reason)) => {
            format!("open ended: {}", reason.as_str())
        }
        Effect::Changed(_) => "changed".into(),
        Effect::Closed(_) => "closed".into(),
        Effect::Retired(_) => "retired".into(),
    }
}

fn phase_in_words(phase: &Phase) -> String {
    match phase {
        Phase::Waiting => "waiting".into(),
        Phase::Opening => "opening".into(),
        Phase::Aborting(cause) => format!("aborting({})", cause.reason.as_str()),
        Phase::Running(_) => "running".into(),
        Phase::Closing { cause, ending, .. } => {
            format!("closing({}, {ending:?})", cause.reason.as_str())
        }
        Phase::Closed { outcome, .. } => {
            format!("closed({}, {:?})", outcome.reason.as_str(), outcome.ending)
        }
        Phase::Gone => "gone".into(),
    }
}

/// Every row of the machine, so that a change of any is seen in review.
#[test]
fn every_phase_answers_every_event() {
    let mut table = String::new();
    for (name, phase) in phases() {
        writeln!(table, "{name}").unwrap();
        for (event_name, event) in events() {
            let mut session = Session::new(facts("a", ":1.1"), LeaseId(1));
            session.phase = phase.clone();
            let effects = session.on(event, NOW);
            if session.phase == phase && effects.is_empty() {
                continue;
            }
            let effects: Vec<_> = effects.iter().map(describe).collect();
            let next = phase_in_words(&session.phase);
            writeln!(table, "  {event_name:16} -> {next}; {}", effects.join(", ")).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn without_grace_a_vanished_owner_ends_the_session_at_once() {
    let mut session = Session::new(facts("a", ":1.1"), LeaseId(1));
    session.facts.grace = Duration::ZERO;
    session.phase = Phase::Running(ran());
    let effects = session.on(Event::OwnerVanished, NOW);
    assert!(effects.contains(&Effect::End(
        session.facts.id.clone(),
        How::Stop { within: session.facts.stop_timeout }
    )));
    assert_eq!(session.phase.as_str(), "closing");
}

#[test]
fn the_first_forced_reason_wins() {
    let mut session = Session::new(facts("a", ":1.1"), LeaseId(1));
    session.phase = Phase::Running(ran());
    session.on(Event::TimeoutElapsed, NOW);
    session.on(Event::KillRequested { requester: ":1.9".into() }, NOW);
    session.on(
        Event::LeaderExited {
            ending: Ending::Signaled { signal: 9, core_dumped: false },
            reason: Reason::StoppedByManager,
        },
        NOW,
    );
    session.on(Event::ScopeEmpty(emptied()), NOW);
    let outcome = session.outcome().unwrap();
    assert_eq!(outcome.reason, Reason::Timeout);
    assert_eq!(outcome.requester, "");
    assert_eq!(outcome.ending, Ending::Signaled { signal: 9, core_dumped: false });
}
