//! CPU time of everything in the bed: the subject, whatever it starts, the bus, the manager, the journal.

use std::{fs, time::Duration};

use anyhow::Context;

/// The control group of the bed, which is the top of what is seen inside.
const STAT: &str = "/sys/fs/cgroup/cpu.stat";

/// A measurement that has begun.
#[derive(Debug, Clone, Copy)]
pub struct Cost(Duration);

impl Cost {
    /// Begins to measure.
    ///
    /// # Errors
    /// Outside of a bed: the top of all control groups has no such account.
    pub fn begin() -> anyhow::Result<Self> {
        Ok(Self(used()?))
    }

    /// CPU time used since the beginning.
    pub fn so_far(self) -> anyhow::Result<Duration> {
        Ok(used()?.saturating_sub(self.0))
    }
}

fn used() -> anyhow::Result<Duration> {
    let stat = fs::read_to_string(STAT).with_context(|| format!("cannot read {STAT}"))?;
    let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec "));
    let usage = usage.with_context(|| format!("{STAT} has no usage_usec: run benches/run"))?;
    Ok(Duration::from_micros(usage.trim().parse()?))
}
