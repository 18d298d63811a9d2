//! On which CPUs everything that takes part runs.

use std::{fs, io, path::Path, sync::OnceLock};

use anyhow::Context;
use nix::{
    errno::Errno,
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::Pid,
};

/// Where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// On every CPU there is.
    Free,
    /// All on one.
    Pinned,
}

impl Placement {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Free, Self::Pinned];

    /// The word in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Pinned => "pinned",
        }
    }
}

/// Places every thread of every process of the bed: the bus, the manager, the broker, the peers, the
/// tools and this one; what they start follows them. What belongs to root there (the journal) stays.
///
/// # Errors
/// As sched_setaffinity(2).
pub fn place(placement: Placement) -> anyhow::Result<()> {
    static ALL: OnceLock<CpuSet> = OnceLock::new();
    // Nobody has been placed before the first call.
    let now = sched_getaffinity(Pid::this())?;
    let all = ALL.get_or_init(|| now);
    let cpus = match placement {
        Placement::Free => *all,
        Placement::Pinned => first_of(all)?,
    };
    for process in numbers_in(Path::new("/proc"))? {
        // It, or one of its threads, may have ended meanwhile.
        let Ok(threads) = numbers_in(&Path::new("/proc").join(process.to_string()).join("task"))
        else {
            continue;
        };
        for thread in threads {
            match sched_setaffinity(Pid::from_raw(thread), &cpus) {
                Ok(()) | Err(Errno::ESRCH | Errno::EPERM) => {}
                Err(errno) => Err(errno).with_context(|| format!("cannot place {thread}"))?,
            }
        }
    }
    Ok(())
}

fn numbers_in(directory: &Path) -> io::Result<Vec<i32>> {
    let entries = fs::read_dir(directory)?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

fn first_of(all: &CpuSet) -> anyhow::Result<CpuSet> {
    let mut one = CpuSet::new();
    let first = (0..CpuSet::count()).find(|cpu| all.is_set(*cpu).unwrap_or(false));
    one.set(first.context("no CPU may be used")?)?;
    Ok(one)
}
