//! Much output that nobody is attached for: how fast the tool may go on. A raw pty must be read by somebody; the peers
//! and the broker read it themselves.

use std::time::Instant;

use crate::{
    Plan,
    rig::{
        bulk,
        cost::Cost,
        cue::Cue,
        placement::{Placement, place},
        report::{Bound, Measure, Metric, Report, Subject, Target},
        stage::{Middle, Played, Stage},
    },
};

const MIDDLES: [Middle; 4] = [Middle::Broker, Middle::Nothing, Middle::Dtach, Middle::Tmux];

const RATE: Metric = Metric { name: "text", unit: "MB/s" };
const CPU: Metric = Metric { name: "CPU of all", unit: "ms/MB" };

const TARGETS: [Target; 1] = [Target::new(
    RATE,
    Middle::Broker.name(),
    Measure::Ratio(Middle::Nothing.name()),
    Bound::AtLeast(0.9),
)];

/// Measures.
///
/// # Errors
/// Where anything fails: what was measured until then is not worth having.
pub async fn run(plan: Plan) -> anyhow::Result<Report> {
    let mut stage = Stage::set().await?;
    bulk::lay_out(stage.workspace())?;
    let mut subjects = Vec::new();
    for middle in Middle::present(&MIDDLES) {
        let cue = Cue::make(stage.workspace(), middle.name())?;
        let clients = usize::from(middle == Middle::Nothing);
        let script =
            format!("stty -echo; printf READY; {}", cue.script(&format!("cat {}", bulk::TEXT)));
        subjects.push((middle, stage.play(middle, &script, clients).await?, cue));
    }
    for (_, played, cue) in &mut subjects {
        write(played, cue)?;
    }
    let mut report = Report::new("unattended", &TARGETS);
    for _ in 0..plan.rounds {
        for placement in Placement::BOTH {
            place(placement)?;
            for (middle, played, cue) in &mut subjects {
                let subject = Subject { name: middle.name(), condition: placement.as_str() };
                let measured = write(played, cue)?;
                bulk::add(&mut report, subject, [RATE, CPU], measured)?;
            }
            subjects.rotate_left(1);
        }
    }
    place(Placement::Free)?;
    report.order(&MIDDLES.map(Middle::name));
    Ok(report)
}

fn write(played: &mut Played, cue: &mut Cue) -> anyhow::Result<(f64, Cost)> {
    let cost = Cost::begin()?;
    let began = Instant::now();
    cue.go(1)?;
    if let Some(line) = played.lines.first_mut() {
        line.drain_until(cue.done())?;
    }
    cue.until_done(1)?;
    Ok((began.elapsed().as_secs_f64(), cost))
}
