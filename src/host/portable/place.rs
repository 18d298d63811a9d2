//! A session below its supervisor.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use nix::unistd::{Pid, getpgid};
use tokio::{
    task::AbortHandle,
    time::{Instant, sleep, timeout},
};

use crate::{
    broker::outcome::Usage,
    host::{EndedBy, HostError, Place, cgroup::Cgroup, pidfd::PidFd},
    launch::descendants::{descendants, kill_all},
};

/// How long the rounds of one kill may go on before [`Place::emptied`] has to tell.
const KILL: Duration = Duration::from_secs(1);

/// From one round of killing to the next.
const ROUND: Duration = Duration::from_millis(5);

/// How long freezing and thawing may take.
const FREEZE: Duration = Duration::from_secs(10);

/// Everything below one supervisor.
#[derive(Debug)]
pub struct Supervised {
    below: Arc<Below>,
    stop_timeout: Duration,
    frozen: AtomicBool,
    /// The one who kills when a stop has had its time.
    escalation: Mutex<Option<AbortHandle>>,
}

#[derive(Debug)]
struct Below {
    supervisor: PidFd,
    group: Option<Cgroup>,
}

impl Supervised {
    pub(super) fn new(supervisor: PidFd, group: Option<Cgroup>, stop_timeout: Duration) -> Self {
        let below = Arc::new(Below { supervisor, group });
        let (frozen, escalation) = (AtomicBool::new(false), Mutex::default());
        Self { below, stop_timeout, frozen, escalation }
    }

    /// Sees to it that nothing outlives the stop timeout; a second stop does not prolong it.
    fn escalate(&self) {
        let mut escalation = self.escalation.lock().unwrap_or_else(PoisonError::into_inner);
        if escalation.is_some() {
            return;
        }
        let (below, most) = (Arc::clone(&self.below), self.stop_timeout);
        let task = tokio::spawn(async move {
            if !matches!(below.emptied(most).await, Ok(0))
                && let Err(error) = below.kill().await
            {
                tracing::warn!(%error, "cannot kill what did not stop");
            }
        });
        *escalation = Some(task.abort_handle());
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let escalation = self.escalation.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(escalation) = escalation {
            escalation.abort();
        }
    }
}

impl Below {
    fn pid(&self) -> Pid {
        Pid::from_raw(self.supervisor.pid())
    }

    /// Those below the supervisor. None once it has ended, which it does last of all.
    fn members(&self) -> io::Result<Vec<Pid>> {
        if self.supervisor.has_ended()? { Ok(Vec::new()) } else { descendants(self.pid()) }
    }

    /// Signals every one that `wanted` accepts; gives how many. Each is held by pidfd before its
    /// descent is looked at once more: so its number cannot have come to mean somebody else.
    fn signal(&self, signal: i32, wanted: impl Fn(Pid) -> bool) -> io::Result<u32> {
        if let Some(group) = &self.group {
            return group.signal(signal, |pid| wanted(Pid::from_raw(pid)));
        }
        let hold = |pid: Pid| PidFd::open(pid.as_raw()).ok();
        let held: Vec<PidFd> = self.members()?.into_iter().filter_map(hold).collect();
        let still = self.members()?;
        let mut signalled = 0;
        for process in held {
            let pid = Pid::from_raw(process.pid());
            if !still.contains(&pid) || !wanted(pid) {
                continue;
            }
            signalled += u32::from(process.signal_if_there(signal)?);
        }
        Ok(signalled)
    }

    /// Kills round after round: what forks faster than it is found is met by the next.
    async fn kill(&self) -> io::Result<()> {
        if let Some(group) = &self.group {
            return group.kill();
        }
        let until = Instant::now() + KILL;
        while !self.supervisor.has_ended()? && kill_all(self.pid())? > 0 && Instant::now() < until {
            sleep(ROUND).await;
        }
        Ok(())
    }

    async fn emptied(&self, at_most: Duration) -> io::Result<u32> {
        if let Some(group) = &self.group {
            return group.emptied(at_most).await;
        }
        match timeout(at_most, self.supervisor.ended()).await {
            Ok(ended) => ended.map(|()| 0),
            Err(_) => Ok(u32::try_from(self.members()?.len()).unwrap_or(u32::MAX)),
        }
    }
}

impl Place for Supervised {
    async fn stop(&self) -> Result<(), HostError> {
        // What is frozen cannot end gently.
        if self.frozen.load(Ordering::Relaxed)
            && let Err(error) = self.freeze(false).await
        {
            tracing::warn!(%error, "cannot thaw a session before its end");
        }
        self.escalate();
        for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGCONT] {
            let sent = self.below.signal(signal, |_| true);
            sent.map_err(|source| HostError::system("stop a session", source))?;
        }
        Ok(())
    }

    async fn kill(&self) -> Result<(), HostError> {
        let killed = self.below.kill().await;
        killed.map_err(|source| HostError::system("kill a session", source))
    }

    async fn emptied(&self, at_most: Duration) -> u32 {
        self.below.emptied(at_most).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot see whether a session is over");
            1
        })
    }

    async fn freeze(&self, frozen: bool) -> Result<(), HostError> {
        let what = if frozen { "freeze a session" } else { "thaw a session" };
        let Some(group) = &self.below.group else {
            return Err(HostError::system(what, nix::errno::Errno::EOPNOTSUPP));
        };
        // Noted before: given up on, it may still come.
        self.frozen.fetch_or(frozen, Ordering::Relaxed);
        let done = group.freeze(frozen, FREEZE).await;
        done.map_err(|source| HostError::system(what, source))?;
        self.frozen.store(frozen, Ordering::Relaxed);
        Ok(())
    }

    fn signal_group(&self, group: i32, signal: i32) -> Result<u32, HostError> {
        let group = Pid::from_raw(group);
        let signalled = self.below.signal(signal, |pid| getpgid(Some(pid)) == Ok(group));
        signalled.map_err(|source| HostError::system("signal a process group", source))
    }

    async fn ended_by(&self) -> EndedBy {
        let killed = self.below.group.as_ref().map_or(0, Cgroup::out_of_memory_kills);
        if killed > 0 { EndedBy::OutOfMemory } else { EndedBy::Itself }
    }

    async fn usage(&self) -> Usage {
        self.below.group.as_ref().map(Cgroup::usage).unwrap_or_default()
    }

    async fn retire(&self) {
        if let Some(group) = &self.below.group
            && let Err(error) = group.remove()
        {
            tracing::warn!(path = %group.path().display(), %error, "cannot remove a control group");
        }
    }
}
