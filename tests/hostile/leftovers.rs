//! Processes that are to outlive their session. One is left behind in each way that is known, then the session is closed,
//! or, unconfined, the program that left it is killed.

use st2_tools::client::Dict;

use super::{
    attempt::Attempt,
    control::Control,
    from::From,
    judge::Verdict,
    scene::{LEAK, text},
    side::{Side, Stage},
};
use crate::support::{
    error_of,
    manager::{group, is_empty},
    output_until, short, soon, until,
};

/// A name for the table, what the probe calls it, and the session that leaves it.
const KINDS: [(&str, &str, From); 6] = [
    ("outlive the session: a session of its own", "own-session", From::Plain),
    ("outlive the session: an orphan", "orphan", From::Plain),
    ("outlive the session: deaf to signals", "deaf", From::Plain),
    ("outlive the session: stopped", "stopped", From::Plain),
    ("outlive the session: forking without end", "comet", From::Plain),
    ("outlive the session: connected to a granted socket", "connected", From::Keys),
];

/// Rows for the table. The attempts themselves are made by [`try_all`].
pub fn attempts() -> Vec<Attempt> {
    let row = |(name, kind, from): (_, &'static str, _)| {
        Attempt::new(name, move |_| vec![kind.to_owned()]).from(from)
    };
    KINDS.into_iter().map(row).collect()
}

/// Makes them all, in their order.
pub async fn try_all(stage: &Stage) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (_, kind, from) in KINDS {
        verdicts.push(match stage.side {
            Side::Unconfined => unconfined(stage, kind).await,
            Side::Tier(_) => confined(stage, kind, from).await,
        });
    }
    verdicts
}

async fn unconfined(stage: &Stage, kind: &str) -> Verdict {
    let scene = &stage.scene;
    let (place, leak) = (scene.plain().to_owned(), scene.out(LEAK));
    let socket = format!("SSH_AUTH_SOCK={}", scene.agent.socket().display());
    let argv = ["env".to_owned(), socket, text(&scene.probe), "leave".to_owned(), kind.to_owned()];
    let outlives = move || {
        let argv = argv.each_ref().map(String::as_str);
        let mut control = Control::start(&place, leak.as_ref(), &argv);
        // The one that is left announces itself, then the one that leaves it.
        let mut said = control.output_until("pid ");
        while said.matches("pid ").count() < 2 {
            said += &control.output_until("pid ");
        }
        control.end_leader();
        control.lives()
    };
    Verdict::seen(tokio::task::spawn_blocking(outlives).await.unwrap(), Vec::new())
}

async fn confined(stage: &Stage, kind: &str, from: From) -> Verdict {
    let argv = [text(&stage.scene.probe), "leave".to_owned(), kind.to_owned()].to_vec();
    let options = from.options(&stage.scene, argv);
    let (session, _) = match stage.client.open(from.tool(), options).await {
        Ok(opened) => opened,
        Err(refused) => {
            return Verdict::not_opened(short(&error_of(Err::<(), _>(refused)).0));
        }
    };
    let group = group(&session.unit().await.unwrap());
    until("both", || output_has_two(&group)).await;
    output_until(&session, "pid ").await;
    let closing = Dict::new().with("timeout_ms", 300_u64);
    let outcome = soon("Close", session.close(&closing)).await.unwrap();
    assert_eq!(outcome.number("survivors"), Some(0));
    Verdict::seen(!is_empty(&group), Vec::new())
}

/// Whether the one that leaves and the one that is left are both there.
fn output_has_two(group: &std::path::Path) -> bool {
    crate::support::manager::members(group).len() >= 2
}
