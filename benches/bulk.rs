//! Much output to one attached client: text, of which the kernel makes CR LF line ends, and zeros in raw mode.
//!
//! A rate is of what the tool writes, from telling it to begin until its last word has come to the client. All but tmux
//! deliver the bytes; tmux draws its own screen of them and delivers what that needs.

use std::time::Instant;

use crate::{
    Plan,
    rig::{
        bulk::{self, END},
        cost::Cost,
        placement::{Placement, place},
        report::{Bound, Measure, Metric, Report, Subject, Target},
        stage::{Middle, Played, Stage},
    },
};

const MIDDLES: [Middle; 5] =
    [Middle::Broker, Middle::Nothing, Middle::Dtach, Middle::Tmux, Middle::Shpool];

const TEXT: Metric = Metric { name: "text", unit: "MB/s" };
const TEXT_CPU: Metric = Metric { name: "CPU of all, text", unit: "ms/MB" };
const ZEROS: Metric = Metric { name: "zeros", unit: "MB/s" };
const ZEROS_CPU: Metric = Metric { name: "CPU of all, zeros", unit: "ms/MB" };

const BROKER: &str = Middle::Broker.name();

const TARGETS: [Target; 3] = [
    Target::new(TEXT, BROKER, Measure::Ratio(Middle::Nothing.name()), Bound::AtLeast(0.9)),
    Target::new(TEXT, BROKER, Measure::Ratio(Middle::Dtach.name()), Bound::AtLeast(1.0)),
    Target::new(TEXT, BROKER, Measure::Ratio(Middle::Tmux.name()), Bound::AtLeast(1.5)),
];

/// The terminal's mode, the file, and what is measured of it.
const KINDS: [(&str, &str, [Metric; 2]); 2] = [
    ("stty -echo", bulk::TEXT, [TEXT, TEXT_CPU]),
    ("stty raw -echo", bulk::ZEROS, [ZEROS, ZEROS_CPU]),
];

/// Measures.
///
/// # Errors
/// Where anything fails: what was measured until then is not worth having.
pub async fn run(plan: Plan) -> anyhow::Result<Report> {
    let mut stage = Stage::set().await?;
    bulk::lay_out(stage.workspace())?;
    let mut subjects = Vec::new();
    for middle in Middle::present(&MIDDLES) {
        for (mode, file, metrics) in KINDS {
            let script =
                format!("{mode}; printf READY; while read -r _; do cat {file}; printf {END}; done");
            subjects.push((middle, metrics, stage.play(middle, &script, 1).await?));
        }
    }
    let mut report = Report::new("bulk", &TARGETS);
    for (.., played) in &mut subjects {
        transfer(played)?;
    }
    for _ in 0..plan.rounds {
        for placement in Placement::BOTH {
            place(placement)?;
            for (middle, metrics, played) in &mut subjects {
                let subject = Subject { name: middle.name(), condition: placement.as_str() };
                let measured = transfer(played)?;
                bulk::add(&mut report, subject, *metrics, measured)?;
            }
            subjects.rotate_left(1);
        }
    }
    place(Placement::Free)?;
    report.order(&MIDDLES.map(Middle::name));
    Ok(report)
}

/// Has the tool write; gives the seconds until all had come, and what has been counted since it began.
fn transfer(played: &mut Played) -> anyhow::Result<(f64, Cost)> {
    let line = played.line()?;
    line.drain()?;
    let cost = Cost::begin()?;
    let began = Instant::now();
    line.send(b"\n")?;
    let ended = line.expect(END)?;
    Ok(((ended - began).as_secs_f64(), cost))
}
