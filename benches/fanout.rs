//! The same text to four attached clients: until the last of them has all of it.
//!
//! dtach cannot be compared: what a client does not take at once, it never gets.

use std::time::Instant;

use crate::{
    Plan,
    rig::{
        bulk::{self, END},
        cost::Cost,
        line::expect_on_all,
        placement::{Placement, place},
        report::{Metric, Report, Subject},
        stage::{Middle, Played, Stage},
    },
};

/// What is in the middle, the clients, and what that is called.
const CASTS: [(Middle, usize, &str); 4] = [
    (Middle::Broker, 4, "st2-tools, 4 streams"),
    (Middle::Broker, 1, "st2-tools, 1 stream"),
    (Middle::Nothing, 1, "raw pty"),
    (Middle::Tmux, 4, "tmux, 4 clients"),
];

const RATE: Metric = Metric { name: "text to each", unit: "MB/s" };
const CPU: Metric = Metric { name: "CPU of all", unit: "ms/MB" };

/// Measures.
///
/// # Errors
/// Where anything fails: what was measured until then is not worth having.
pub async fn run(plan: Plan) -> anyhow::Result<Report> {
    let mut stage = Stage::set().await?;
    bulk::lay_out(stage.workspace())?;
    let script = format!(
        "stty -echo; printf READY; while read -r _; do cat {}; printf {END}; done",
        bulk::TEXT
    );
    let present = Middle::present(&[Middle::Broker, Middle::Nothing, Middle::Tmux]);
    let mut subjects = Vec::new();
    for (middle, clients, name) in CASTS {
        if present.contains(&middle) {
            subjects.push((name, stage.play(middle, &script, clients).await?));
        }
    }
    for (_, played) in &mut subjects {
        transfer(played)?;
    }
    let mut report = Report::new("fan-out", &[]);
    for _ in 0..plan.rounds {
        for placement in Placement::BOTH {
            place(placement)?;
            for (name, played) in &mut subjects {
                let subject = Subject { name, condition: placement.as_str() };
                let measured = transfer(played)?;
                bulk::add(&mut report, subject, [RATE, CPU], measured)?;
            }
            subjects.rotate_left(1);
        }
    }
    place(Placement::Free)?;
    report.order(&CASTS.map(|(.., name)| name));
    Ok(report)
}

fn transfer(played: &mut Played) -> anyhow::Result<(f64, Cost)> {
    for line in &mut played.lines {
        line.drain()?;
    }
    let cost = Cost::begin()?;
    let began = Instant::now();
    played.line()?.send(b"\n")?;
    let ended = expect_on_all(&mut played.lines, END)?;
    Ok(((ended - began).as_secs_f64(), cost))
}
