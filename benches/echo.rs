//! The echo of a key: from writing a byte until it has come back from a tool that writes what it reads.

use std::time::Instant;

use crate::{
    Plan,
    rig::{
        cost::Cost,
        placement::{Placement, place},
        report::{Bound, Measure, Metric, Report, Subject, Target},
        stage::{Middle, Played, Stage},
    },
};

const MIDDLES: [Middle; 5] =
    [Middle::Broker, Middle::Nothing, Middle::Dtach, Middle::Tmux, Middle::Shpool];

const ECHO: Metric = Metric { name: "echo", unit: "µs" };
const CPU: Metric = Metric { name: "CPU of all", unit: "µs" };

const TARGETS: [Target; 1] = [Target::new(
    ECHO,
    Middle::Broker.name(),
    Measure::Ratio(Middle::Dtach.name()),
    Bound::AtMost(1.2),
)
.only(Placement::Pinned.as_str())];

const SCRIPT: &str = "stty raw -echo; printf READY; exec cat";

/// In turn, so that none is taken for the one before; and what draws a screen does not write them otherwise.
const KEYS: [&str; 4] = ["Q", "V", "W", "Y"];

/// Keys for each of what other benchmarks measure: one takes only microseconds.
const KEYS_EACH: usize = 10;

/// Measures.
///
/// # Errors
/// Where anything fails: what was measured until then is not worth having.
pub async fn run(plan: Plan) -> anyhow::Result<Report> {
    let mut stage = Stage::set().await?;
    let mut subjects = Vec::new();
    for middle in Middle::present(&MIDDLES) {
        subjects.push((middle, stage.play(middle, SCRIPT, 1).await?));
    }
    let mut report = Report::new("echo", &[]);
    let keys = plan.count * KEYS_EACH;
    for (middle, played) in &mut subjects {
        block(&mut report, Subject { name: middle.name(), condition: "warm" }, played, 20)?;
    }
    report = Report::new("echo", &TARGETS);
    for _ in 0..plan.rounds {
        for placement in Placement::BOTH {
            place(placement)?;
            for (middle, played) in &mut subjects {
                let subject = Subject { name: middle.name(), condition: placement.as_str() };
                block(&mut report, subject, played, keys)?;
            }
            subjects.rotate_left(1);
        }
    }
    place(Placement::Free)?;
    report.order(&MIDDLES.map(Middle::name));
    Ok(report)
}

/// Presses so many keys in a row.
fn block(
    report: &mut Report,
    subject: Subject,
    played: &mut Played,
    count: usize,
) -> anyhow::Result<()> {
    let line = played.line()?;
    let cost = Cost::begin()?;
    for key in KEYS.iter().cycle().take(count) {
        line.drain()?;
        let began = Instant::now();
        line.send(key.as_bytes())?;
        let came = line.expect(key)?;
        report.add(subject, ECHO, (came - began).as_secs_f64() * 1e6);
    }
    let each = cost.so_far()? / u32::try_from(count)?;
    report.add(subject, CPU, each.as_secs_f64() * 1e6);
    Ok(())
}
