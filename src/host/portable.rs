//! The host without a service manager: a supervisor stays above each tool (`launch::supervise`), and
//! where a control group of the session's own can be had, that says who belongs to it.

use std::{
    collections::HashMap,
    fs, io,
    path::Path,
    process,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::join_all;
use nix::unistd::{AccessFlags, access};

use self::place::Supervised;
use super::{Host, HostError, ScopeSpec, cgroup::Cgroup, pidfd::PidFd};
use crate::{
    broker::name::SessionId,
    launch::{report::Gap, spec::Supervise},
};

pub mod place;

/// How long a killed control group may take to become empty.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the control groups of sessions are called, before the broker's process id and the session's id.
const PREFIX: &str = "st2tools-";

/// Sessions below supervisors.
#[derive(Debug)]
pub struct Portable {
    /// Our own control group, if we may make others in it.
    group: Option<Cgroup>,
    /// Control groups of sessions that are not placed yet.
    waiting: Mutex<HashMap<SessionId, Cgroup>>,
}

impl Portable {
    /// Finds out what can be had here.
    #[must_use]
    pub fn new() -> Self {
        let group = own_group().inspect_err(|error| tracing::debug!(%error, "no control groups"));
        Self { group: group.ok(), waiting: Mutex::default() }
    }

    /// A host that makes no control groups, even where it could: what it does then is the same
    /// everywhere.
    #[must_use]
    pub fn without_groups() -> Self {
        Self { group: None, waiting: Mutex::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<SessionId, Cgroup>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Control groups of brokers that are gone.
    fn left(&self) -> io::Result<Vec<Cgroup>> {
        let Some(own) = &self.group else { return Ok(Vec::new()) };
        let mut left = Vec::new();
        for entry in fs::read_dir(own.path())? {
            let name = entry?.file_name();
            if name.to_str().is_some_and(is_left) {
                left.push(Cgroup::open(own.name().join(name))?);
            }
        }
        Ok(left)
    }
}

/// Ends and removes one control group that was left; gives whether it is gone.
async fn sweep_one(group: &Cgroup) -> bool {
    let gone = async {
        group.kill()?;
        group.emptied(PATIENCE).await?;
        group.remove()
    };
    let gone = gone.await;
    if let Err(error) = &gone {
        tracing::warn!(path = %group.path().display(), %error, "cannot sweep a control group");
    }
    gone.is_ok()
}

impl Default for Portable {
    fn default() -> Self {
        Self::new()
    }
}

impl Host for Portable {
    type Place = Supervised;

    fn backend(&self) -> &'static str {
        "portable"
    }

    fn gaps(&self) -> Vec<Gap> {
        // Controllers cannot be had for groups below one that holds processes, which ours does
        // (cgroups(7), "no internal processes").
        let no_group = self.group.is_none().then_some(Gap::NoCgroup);
        [Gap::NoScope, Gap::NoResourceLimits].into_iter().chain(no_group).collect()
    }

    fn supervise(&self, id: &SessionId) -> Result<Option<Supervise>, HostError> {
        let Some(own) = &self.group else { return Ok(Some(Supervise { cgroup: None })) };
        let group = own.make(&format!("{PREFIX}{}-{}", process::id(), id.as_str()));
        let group = group.map_err(|e| HostError::system("make the session's control group", e))?;
        let path = group.path().to_owned();
        self.waiting().insert(id.clone(), group);
        Ok(Some(Supervise { cgroup: Some(path) }))
    }

    fn abandon(&self, id: &SessionId) {
        let Some(group) = self.waiting().remove(id) else { return };
        if let Err(error) = group.kill().and_then(|()| group.remove()) {
            tracing::warn!(session = %id, %error, "cannot remove a control group");
        }
    }

    async fn place(&self, spec: &ScopeSpec, launcher: &PidFd) -> Result<Supervised, HostError> {
        let group = self.waiting().remove(&spec.id);
        let supervisor = launcher.try_clone().and_then(|launcher| match launcher.has_ended()? {
            true => Err(io::Error::from_raw_os_error(libc::ESRCH)),
            false => Ok(launcher),
        });
        match supervisor {
            Ok(supervisor) => Ok(Supervised::new(supervisor, group, spec.stop_timeout)),
            Err(error) => {
                let _ = launcher.kill();
                if let Some(group) = group {
                    let _ = group.kill().and_then(|()| group.remove());
                }
                Err(HostError::system("take hold of the supervisor", error))
            }
        }
    }

    async fn sweep(&self) -> Result<usize, HostError> {
        let left = self.left();
        let left = left.map_err(|e| HostError::system("look for left control groups", e))?;
        let swept = join_all(left.iter().map(sweep_one)).await;
        Ok(swept.into_iter().filter(|swept| *swept).count())
    }
}

/// Our own control group, if we may make others in it and move our children there.
fn own_group() -> io::Result<Cgroup> {
    let own = Cgroup::of(process::id().cast_signed())?;
    // To leave a group takes the right to write the list of one above both (cgroups(7)).
    access(&own.path().join("cgroup.procs"), AccessFlags::W_OK)?;
    let probe = own.make(&format!("{PREFIX}{}", process::id()))?;
    let complete = ["cgroup.kill", "cgroup.events", "cgroup.freeze"]
        .iter()
        .all(|file| probe.path().join(file).exists());
    probe.remove()?;
    if complete { Ok(own) } else { Err(io::ErrorKind::Unsupported.into()) }
}

/// Whether this is the name of a group whose broker is gone.
fn is_left(name: &str) -> bool {
    let broker = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
    let broker = broker.and_then(|pid| pid.parse::<u32>().ok());
    broker.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_of_dead_brokers_are_left_ones() {
        let own = process::id();
        assert!(!is_left(&format!("{PREFIX}{own}-a1")));
        assert!(is_left(&format!("{PREFIX}4194999-a1")));
        assert!(is_left(&format!("{PREFIX}4194999")));
        for name in ["st2tools-", "st2tools-x-a1", "other", "st2tools--1-a"] {
            assert!(!is_left(name), "{name}");
        }
    }
}
