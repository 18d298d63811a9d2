//! On which CPUs everything that takes part runs.

use std::{fs, process};

use anyhow::Context;
use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::Pid,
};
use zbus::{fdo::DBusProxy, names::BusName};

/// Who takes part besides what is started while measuring.
const SERVICES: [&str; 3] = ["org.freedesktop.DBus", "org.freedesktop.systemd1", "org.st2.Tools"];

/// Where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// On every CPU there is.
    Free,
    /// All on one.
    Pinned,
}

/// The processes that are placed: the bus, the manager, the broker and this one; what they start follows them.
#[derive(Debug)]
pub struct Cast {
    processes: Vec<u32>,
    all: CpuSet,
}

impl Placement {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Free, Self::Pinned];

    /// The word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Pinned => "pinned",
        }
    }
}

impl Cast {
    /// Finds out who takes part.
    ///
    /// # Errors
    /// Where the bus does not know one of them.
    pub async fn on(bus: &zbus::Connection) -> anyhow::Result<Self> {
        let proxy = DBusProxy::new(bus).await?;
        let mut processes = vec![process::id()];
        for service in SERVICES {
            let name = BusName::try_from(service)?;
            let pid = proxy.get_connection_unix_process_id(name).await;
            processes.push(pid.with_context(|| format!("cannot find {service}"))?);
        }
        Ok(Self { processes, all: sched_getaffinity(Pid::this())? })
    }

    /// This process alone, and what it starts.
    ///
    /// # Errors
    /// As sched_getaffinity(2).
    pub fn alone() -> anyhow::Result<Self> {
        Ok(Self { processes: vec![process::id()], all: sched_getaffinity(Pid::this())? })
    }

    /// Places every thread of them.
    ///
    /// # Errors
    /// As sched_setaffinity(2).
    pub fn place(&self, placement: Placement) -> anyhow::Result<()> {
        let cpus = match placement {
            Placement::Free => self.all,
            Placement::Pinned => first_of(&self.all)?,
        };
        for process in &self.processes {
            for thread in fs::read_dir(format!("/proc/{process}/task"))? {
                let thread = thread?.file_name().to_string_lossy().parse()?;
                sched_setaffinity(Pid::from_raw(thread), &cpus)
                    .with_context(|| format!("cannot place thread {thread} of {process}"))?;
            }
        }
        Ok(())
    }
}

fn first_of(all: &CpuSet) -> anyhow::Result<CpuSet> {
    let mut one = CpuSet::new();
    let first = (0..CpuSet::count()).find(|cpu| all.is_set(*cpu).unwrap_or(false));
    one.set(first.context("no CPU may be used")?)?;
    Ok(one)
}
