//! What confinement costs: a tool opened by the launcher, in each tier that this machine has, beside the same tool opened by
//! a launcher that confines nothing.
//!
//! Both are spawned alike, on a pty of their own, linked statically, take the terminal, say that they are ready, wait at a
//! gate and execute the tool in the same environment: an open needs that with and without confinement, so that the
//! difference is what the specification, the namespaces, the mounts, Landlock, the capabilities and the filter cost, and what
//! the tool pays for living under them.

use std::time::Instant;

use crate::{
    Plan,
    rig::{
        cost::Cost,
        launch::{Confined, Site},
        placement::{Placement, place},
        report::{Bound, Measure, Metric, Report, Subject, Target},
    },
};

const BARE: &str = "unconfined";

const EXEC: Metric = Metric { name: "until execve", unit: "ms" };
const EXIT: Metric = Metric { name: "until exit", unit: "ms" };
const CPU: Metric = Metric { name: "CPU of all", unit: "ms" };

/// What an open may cost more, milliseconds.
const AT_MOST: f64 = 1.5;

/// Measures.
///
/// # Errors
/// Where anything fails: what was measured until then is not worth having.
pub async fn run(plan: Plan) -> anyhow::Result<Report> {
    let site = Site::lay_out()?;
    let tiers = site.tiers()?;
    let openers: Vec<Option<&Confined>> =
        std::iter::once(None).chain(tiers.iter().map(Some)).collect();
    let target = |metric| {
        move |tier: &Confined| {
            Target::new(metric, tier.name, Measure::Difference(BARE), Bound::AtMost(AT_MOST))
        }
    };
    let targets: Vec<_> =
        [EXEC, EXIT].into_iter().flat_map(|metric| tiers.iter().map(target(metric))).collect();
    let mut bench = Bench { site: &site, report: Report::new("confinement", &[]) };
    // What is first touched, read or linked costs once.
    for opener in &openers {
        bench.block(*opener, Placement::Free, 3).await?;
    }
    bench.report = Report::new("confinement", &targets);
    for round in 0..plan.rounds {
        for placement in Placement::BOTH {
            place(placement)?;
            for turn in 0..openers.len() {
                bench.block(openers[(round + turn) % openers.len()], placement, plan.count).await?;
            }
        }
    }
    place(Placement::Free)?;
    Ok(bench.report)
}

struct Bench<'a> {
    site: &'a Site,
    report: Report,
}

impl Bench<'_> {
    /// Opens the tool so many times in a row.
    async fn block(
        &mut self,
        tier: Option<&Confined>,
        placement: Placement,
        count: usize,
    ) -> anyhow::Result<()> {
        let name = tier.map_or(BARE, |tier| tier.name);
        let subject = Subject { name, condition: placement.as_str() };
        let cost = Cost::begin()?;
        for _ in 0..count {
            let began = Instant::now();
            let opened = match tier {
                Some(tier) => self.site.confined(tier).await?,
                None => self.site.bare().await?,
            };
            self.report.add(subject, EXEC, milliseconds(opened.executed - began));
            self.report.add(subject, EXIT, milliseconds(opened.ended - began));
        }
        let each = cost.so_far()? / u32::try_from(count)?;
        self.report.add(subject, CPU, milliseconds(each));
        Ok(())
    }
}

fn milliseconds(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
