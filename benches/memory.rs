//! Memory and threads: of the broker alone, and what a session adds that has said nothing, and one that has said much.
//!
//! Of a peer, what its own processes have; the tools are nobody's. What files are mapped is counted for the broker
//! alone at rest: it does not grow. Others on the machine do not change these figures, so that few rounds do.

use crate::{
    Plan,
    rig::{
        broker::Broker,
        cue::Cue,
        pack::Pack,
        process::Process,
        report::{Bound, Measure, Metric, Report, Subject, Target},
        stage::Middle,
    },
};

const PEERS: [Middle; 3] = [Middle::Dtach, Middle::Tmux, Middle::Shpool];

/// Sessions that each figure is divided by.
const SESSIONS: usize = 50;

/// More tell nothing more.
const ROUNDS: usize = 3;

/// What each says in the end: four rings' worth.
const SAYS: &str = "head -c 1048576 text";

const ALONE: Metric = Metric { name: "alone, resident", unit: "MiB" };
const OWN: Metric = Metric { name: "alone, its own", unit: "MiB" };
const IDLE: Metric = Metric { name: "a session that said nothing", unit: "KiB" };
const FILLED: Metric = Metric { name: "a session that said 1 MiB", unit: "KiB" };
const THREADS: Metric = Metric { name: "threads", unit: "" };
const MORE_THREADS: Metric = Metric { name: "threads more with 50 sessions", unit: "" };

const BROKER: &str = Middle::Broker.name();

/// What a session's memory is to be that has a screen of 80 × 24 and a ring of the default size, KiB: 64 for itself,
/// the ring, and the screen. The emulator always has both of its buffers, of 24 bytes a cell.
const FILLED_AT_MOST: f64 = 64.0 + 256.0 + 2.0 * 24.0 * (80.0 * 24.0) / 1024.0;

const TARGETS: [Target; 4] = [
    Target::new(ALONE, BROKER, Measure::Value, Bound::AtMost(12.0)),
    Target::new(IDLE, BROKER, Measure::Value, Bound::AtMost(64.0)),
    Target::new(FILLED, BROKER, Measure::Value, Bound::AtMost(FILLED_AT_MOST)),
    Target::new(MORE_THREADS, BROKER, Measure::Value, Bound::AtMost(0.0)),
];

/// Measures.
///
/// # Errors
/// Where anything fails: what was measured until then is not worth having.
pub async fn run(plan: Plan) -> anyhow::Result<Report> {
    let peers = Middle::present(&PEERS);
    let mut report = Report::new("memory", &TARGETS);
    for _ in 0..plan.rounds.min(ROUNDS) {
        broker(&mut report).await?;
        for middle in &peers {
            peer(&mut report, *middle)?;
        }
    }
    Ok(report)
}

async fn broker(report: &mut Report) -> anyhow::Result<()> {
    let subject = Subject { name: BROKER, condition: "" };
    let broker = Broker::start().await?;
    crate::rig::bulk::lay_out(broker.workspace())?;
    let mut cue = Cue::make(broker.workspace(), "memory")?;
    let process = broker.process();
    // What the first session leaves behind is the broker's.
    broker.open(&["true"]).await?.session.wait().await?;
    let alone = look(process)?;
    report.add(subject, ALONE, process.resident()? as f64 / f64::from(1 << 20));
    report.add(subject, OWN, alone.0 / 1024.0);
    report.add(subject, THREADS, alone.1);
    let script = cue.script(SAYS);
    for _ in 0..SESSIONS {
        broker.open(&["sh", "-c", &script]).await?;
    }
    let idle = look(process)?;
    cue.go(SESSIONS)?;
    cue.until_done(SESSIONS)?;
    add(report, subject, alone, idle, look(process)?);
    Ok(())
}

fn peer(report: &mut Report, middle: Middle) -> anyhow::Result<()> {
    let subject = Subject { name: middle.name(), condition: "" };
    let workspace = tempfile::Builder::new().prefix("workspace").tempdir()?;
    crate::rig::bulk::lay_out(workspace.path())?;
    let mut cue = Cue::make(workspace.path(), "memory")?;
    let script = format!("cd {}; {}", workspace.path().display(), cue.script(SAYS));
    let mut pack = Pack::start(middle)?;
    let look = |pack: &Pack| -> anyhow::Result<(f64, f64)> {
        Ok((pack.anonymous()? as f64 / 1024.0, pack.threads()? as f64))
    };
    let alone = look(&pack)?;
    report.add(subject, OWN, alone.0 / 1024.0);
    report.add(subject, THREADS, alone.1);
    pack.add(SESSIONS, &script)?;
    let idle = look(&pack)?;
    cue.go(SESSIONS)?;
    cue.until_done(SESSIONS)?;
    add(report, subject, alone, idle, look(&pack)?);
    Ok(())
}

/// Memory of its own in KiB, and threads.
fn look(process: Process) -> anyhow::Result<(f64, f64)> {
    Ok((process.anonymous()? as f64 / 1024.0, process.threads()? as f64))
}

fn add(
    report: &mut Report,
    subject: Subject,
    alone: (f64, f64),
    idle: (f64, f64),
    filled: (f64, f64),
) {
    report.add(subject, IDLE, (idle.0 - alone.0) / SESSIONS as f64);
    report.add(subject, FILLED, (filled.0 - alone.0) / SESSIONS as f64);
    report.add(subject, MORE_THREADS, filled.1 - alone.1);
}
