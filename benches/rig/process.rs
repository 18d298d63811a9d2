//! What the kernel counts of a process.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::Context;

/// A process, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process(pub u32);

/// What all threads of a process together have used since they began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// Time on a CPU.
    pub cpu: Duration,
    /// How often a thread was given a CPU (proc_pid_schedstat(5)): at rest, how often it was woken.
    pub turns: u64,
}

impl Process {
    /// Resident memory, files that are mapped included, bytes.
    ///
    /// # Errors
    /// Where it has ended.
    pub fn resident(self) -> anyhow::Result<u64> {
        self.status("VmRSS:")
    }

    /// Resident memory that is its own, bytes: what grows with what it does.
    ///
    /// # Errors
    /// Where it has ended.
    pub fn anonymous(self) -> anyhow::Result<u64> {
        self.status("RssAnon:")
    }

    /// Its threads.
    ///
    /// # Errors
    /// Where it has ended.
    pub fn threads(self) -> anyhow::Result<u64> {
        Ok(fs::read_dir(self.path("task"))?.count().try_into()?)
    }

    /// What its threads have used.
    ///
    /// # Errors
    /// Where it, or a thread of it, has ended.
    pub fn used(self) -> anyhow::Result<Used> {
        let mut used = Used { cpu: Duration::ZERO, turns: 0 };
        for thread in fs::read_dir(self.path("task"))? {
            let text = fs::read_to_string(thread?.path().join("schedstat"))?;
            let numbers =
                text.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
            let [cpu, _waited, turns] = numbers[..] else {
                anyhow::bail!("schedstat is {text:?}");
            };
            used.cpu += Duration::from_nanos(cpu);
            used.turns += turns;
        }
        Ok(used)
    }

    fn status(self, key: &str) -> anyhow::Result<u64> {
        let status = fs::read_to_string(self.path("status"))?;
        let value = status.lines().find_map(|line| line.strip_prefix(key));
        let value = value.and_then(|value| value.trim().strip_suffix(" kB"));
        let kibibytes: u64 =
            value.with_context(|| format!("no {key} of {self:?}"))?.trim().parse()?;
        Ok(kibibytes * 1024)
    }

    fn path(self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.0))
    }
}
