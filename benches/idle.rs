//! What sessions cost in which nothing happens: time on a CPU, and how often a thread is woken, a second.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{
    Plan,
    rig::{
        broker::{Broker, Declared},
        pack::Pack,
        process::Used,
        report::{Bound, Measure, Metric, Report, Subject, Target},
        stage::Middle,
    },
};

const PEERS: [Middle; 3] = [Middle::Dtach, Middle::Tmux, Middle::Shpool];

const SESSIONS: usize = 100;

const CONDITION: &str = "100 sessions";

/// More than the 64 of an owner by default.
const DECLARED: Declared =
    Declared { settings: "[limits]\nlive_sessions_per_owner = 100\n", tools: &[] };

/// How long is looked at once.
const STRETCH: Duration = Duration::from_secs(5);

const TOOL: &str = "exec sleep 1000";

const CPU: Metric = Metric { name: "CPU", unit: "ms/s" };
const WOKEN: Metric = Metric { name: "woken", unit: "/s" };

const BROKER: &str = Middle::Broker.name();

const TARGETS: [Target; 2] = [
    Target::new(CPU, BROKER, Measure::Value, Bound::AtMost(0.0)),
    Target::new(WOKEN, BROKER, Measure::Value, Bound::AtMost(0.0)),
];

/// Measures.
///
/// # Errors
/// Where anything fails: what was measured until then is not worth having.
pub async fn run(plan: Plan) -> anyhow::Result<Report> {
    let broker = Broker::start_with(DECLARED).await?;
    for _ in 0..SESSIONS {
        broker.open(&["sh", "-c", TOOL]).await?;
    }
    let mut packs = Vec::new();
    for middle in Middle::present(&PEERS) {
        let mut pack = Pack::start(middle)?;
        pack.add(SESSIONS, TOOL)?;
        packs.push((middle, pack));
    }
    // Everybody at the same time: what is measured here takes none of it from the others.
    let look = || -> anyhow::Result<Vec<(&'static str, Used)>> {
        let mut all = vec![(BROKER, broker.process().used()?)];
        for (middle, pack) in &packs {
            all.push((middle.name(), pack.used()?));
        }
        Ok(all)
    };
    let mut report = Report::new("idle", &TARGETS);
    sleep(STRETCH);
    for _ in 0..plan.rounds {
        let (began, before) = (Instant::now(), look()?);
        sleep(STRETCH);
        let (seconds, after) = (began.elapsed().as_secs_f64(), look()?);
        for ((name, before), (_, after)) in before.into_iter().zip(after) {
            let subject = Subject { name, condition: CONDITION };
            let cpu = after.cpu.saturating_sub(before.cpu);
            report.add(subject, CPU, cpu.as_secs_f64() * 1000.0 / seconds);
            report.add(subject, WOKEN, after.turns.saturating_sub(before.turns) as f64 / seconds);
        }
    }
    Ok(report)
}
