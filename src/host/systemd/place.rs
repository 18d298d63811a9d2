//! A session's scope.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{
    is_active,
    manager::{JOB, Link, Properties, SCOPE, UNIT, within},
    micros,
    slices::Room,
};
use crate::{
    broker::{name::UnitName, outcome::Usage},
    host::{EndedBy, HostError, Place, ScopeSpec, cgroup::Cgroup},
};

/// When it was over.
const INACTIVE: &str = "InactiveEnterTimestampMonotonic";

/// What it used, in nanoseconds and bytes; not every manager knows the latter.
const USED: [(&str, &str); 2] = [(SCOPE, "CPUUsageNSec"), (SCOPE, "MemoryPeak")];

/// A scope that was started for a session, pinned until it is retired.
#[derive(Debug)]
pub struct Scope {
    link: Arc<Link>,
    unit: UnitName,
    own: UnitName,
    bound: Option<UnitName>,
    runtime_max: Option<Duration>,
    group: Cgroup,
    frozen: AtomicBool,
    /// What it used in all, as far as the manager has told.
    used: OnceLock<Usage>,
    _room: Room,
}

impl Scope {
    pub(super) fn new(
        link: Arc<Link>,
        own: &UnitName,
        spec: &ScopeSpec,
        room: Room,
        group: Cgroup,
    ) -> Self {
        Self {
            link,
            unit: spec.unit.clone(),
            own: own.clone(),
            bound: spec.bind_unit.clone(),
            runtime_max: spec.runtime_max,
            group,
            frozen: AtomicBool::new(false),
            used: OnceLock::new(),
            _room: room,
        }
    }

    /// The scope's control group.
    #[must_use]
    pub fn group(&self) -> &Cgroup {
        &self.group
    }

    async fn thaw(&self) -> Result<(), HostError> {
        within("thaw a scope", self.link.proxy.thaw_unit(self.unit.as_str())).await?;
        self.frozen.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Tells from the pinned scope's record who ended it. Only the manager's own doing passes
    /// through `deactivating`: what ends by itself becomes inactive in one step.
    async fn judge(&self) -> Result<EndedBy, HostError> {
        let [cpu, memory] = USED;
        let record = [
            (UNIT, "ActiveExitTimestampMonotonic"),
            (UNIT, INACTIVE),
            (SCOPE, "Result"),
            // Wanted next, and cheaper to be told together.
            cpu,
            memory,
        ];
        let record = self.link.some_of_unit(&self.unit, record).await?;
        if record.number(INACTIVE) > 0 {
            self.used.get_or_init(|| used(&record));
        }
        if record.text("Result") == "oom-kill" || self.group.out_of_memory_kills() > 0 {
            return Ok(EndedBy::OutOfMemory);
        }
        if !was_stopped(&record) {
            return Ok(EndedBy::Itself);
        }
        let unit = self.link.of_unit(&self.unit, UNIT).await?;
        if self.ran_out(&unit) {
            return Ok(EndedBy::Timeout);
        }
        if let Some(bound) = &self.bound
            && self.is_ending(bound, &unit).await?
        {
            return Ok(EndedBy::BoundUnit);
        }
        let with_broker = self.is_ending(&self.own, &unit).await?;
        Ok(if with_broker { EndedBy::Broker } else { EndedBy::Manager })
    }

    /// Whether it was active for as long as it may. `Result=timeout` alone does not say so: a scope
    /// that does not stop in time has it, too.
    fn ran_out(&self, unit: &Properties) -> bool {
        let began = unit.number("ActiveEnterTimestampMonotonic");
        let ended = unit.number("ActiveExitTimestampMonotonic");
        self.runtime_max.is_some_and(|most| ended.saturating_sub(began) >= micros(most))
    }

    /// Whether a unit that the scope is bound to is going, or went after the scope had begun. Units
    /// stop in reverse order (`After=`): while the scope stops, the other still waits for its turn.
    async fn is_ending(&self, other: &UnitName, scope: &Properties) -> Result<bool, HostError> {
        let other = self.link.of_unit(other, UNIT).await?;
        let began = scope.number("ActiveEnterTimestampMonotonic");
        if !is_active(&other.text("ActiveState"))
            || other.number("ActiveExitTimestampMonotonic") > began
        {
            return Ok(true);
        }
        let Some((id, path)) = other.get::<(u32, zbus::OwnedObjectPath)>("Job") else {
            return Ok(false);
        };
        if id == 0 {
            return Ok(false);
        }
        let kind = self.link.of_object(&path, JOB).await.map(|job| job.text("JobType"));
        // A job that is over while we ask was one: the unit's state is asked no second time.
        Ok(kind.map_or(true, |kind| kind == "stop" || kind == "restart"))
    }
}

impl Place for Scope {
    async fn stop(&self) -> Result<(), HostError> {
        // What is frozen cannot end gently.
        if self.frozen.load(Ordering::Relaxed)
            && let Err(error) = self.thaw().await
        {
            tracing::warn!(unit = %self.unit, %error, "cannot thaw a scope before its end");
        }
        let stop = self.link.proxy.stop_unit(self.unit.as_str(), "replace");
        match within("stop a scope", stop).await {
            Err(error) if error.is_no_such_unit() => Ok(()),
            other => other.map(drop),
        }
    }

    async fn kill(&self) -> Result<(), HostError> {
        let Err(error) = self.group.kill() else { return Ok(()) };
        tracing::debug!(unit = %self.unit, %error, "no cgroup.kill; asking the manager");
        let kill = self.link.proxy.kill_unit(self.unit.as_str(), "all", libc::SIGKILL);
        match within("kill a scope", kill).await {
            Err(error) if error.is_no_such_unit() => Ok(()),
            other => other,
        }
    }

    async fn emptied(&self, at_most: Duration) -> u32 {
        self.group.emptied(at_most).await.unwrap_or_else(|error| {
            tracing::warn!(unit = %self.unit, %error, "cannot see whether a scope is empty");
            1
        })
    }

    async fn freeze(&self, frozen: bool) -> Result<(), HostError> {
        if !frozen {
            return self.thaw().await;
        }
        // Noted first: given up on, the manager may still do it.
        self.frozen.store(true, Ordering::Relaxed);
        within("freeze a scope", self.link.proxy.freeze_unit(self.unit.as_str())).await
    }

    fn signal_group(&self, group: i32, signal: i32) -> Result<u32, HostError> {
        let signalled = self.group.signal_group(group, signal);
        signalled.map_err(|source| HostError::system("signal a process group", source))
    }

    async fn ended_by(&self) -> EndedBy {
        self.judge().await.unwrap_or_else(|error| {
            tracing::warn!(unit = %self.unit, %error, "cannot learn who ended a scope");
            EndedBy::Itself
        })
    }

    async fn usage(&self) -> Usage {
        let seen = self.group.usage();
        if seen.cpu_usec > 0 {
            return seen;
        }
        // The control group is gone; the pinned scope remembers.
        let told = match self.used.get() {
            Some(told) => *told,
            None => self.link.some_of_unit(&self.unit, USED).await.as_ref().map_or(seen, used),
        };
        Usage { memory_peak: told.memory_peak.max(seen.memory_peak), ..told }
    }

    async fn retire(&self) {
        // Not waited for: whoever hears of the end from us and then asks the manager comes later on the same bus.
        let unref = self.link.proxy.unref_unit(self.unit.as_str());
        if let Err(error) = within("let go of a scope", unref).await {
            tracing::debug!(unit = %self.unit, %error, "cannot let go of a scope");
        }
    }
}

/// Whether the manager stopped it: it passed, or passes, some time between active and inactive.
fn was_stopped(unit: &Properties) -> bool {
    let left = unit.number("ActiveExitTimestampMonotonic");
    left > 0 && left != unit.number(INACTIVE)
}

/// What a record says of [`USED`].
fn used(scope: &Properties) -> Usage {
    let known = |(_, name)| Some(scope.number(name)).filter(|number| *number != u64::MAX);
    let [cpu_nsec, memory_peak] = USED.map(|property| known(property).unwrap_or_default());
    Usage { cpu_usec: cpu_nsec / 1000, memory_peak }
}
