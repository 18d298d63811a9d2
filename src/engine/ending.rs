//! The one way a session ends: asked gently, then killed, then seen to be empty, then drained.

use std::{sync::Arc, time::Duration};

use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep_until, timeout},
};

use super::run::Live;
use crate::{
    broker::{
        effect::How,
        outcome::{Reason, Usage},
        session::Emptied,
    },
    host::{EndedBy, Place, child::Exit},
};

/// How long the kernel may take to be done with killed processes.
const KILL_WAIT: Duration = Duration::from_secs(5);

/// How long the output is read on after the end, for what a survivor's descriptor may keep from ending.
const DRAIN: Duration = Duration::from_millis(250);

/// How long the end of a session waits for its place to be let go of.
const RETIRE: Duration = Duration::from_millis(250);

/// How long the host may take to tell who ended a leader.
const REASON: Duration = Duration::from_secs(2);

/// How long the leader may take to be reaped after its scope is empty.
const REAP: Duration = Duration::from_secs(1);

/// Begins the end of a session, or makes it come sooner. The first call performs it, and gives what was left to say.
pub(super) async fn end<P: Place>(live: Arc<Live<P>>, how: How) -> Option<Emptied> {
    let within = match how {
        How::Stop { within } => within,
        How::Kill => Duration::ZERO,
    };
    if !live.end_within(within) {
        return None;
    }
    let before = live.place.usage().await;
    let survivors = empty(&live).await;
    let exit = leader_exit(&live).await;
    let code = exit.as_ref().map_or(-1, |exit| exit.ending.code());
    let channel = live.line.channel();
    tokio::join!(channel.drain(DRAIN, code), tidy(&live));
    let stats = channel.stats();
    Some(Emptied {
        survivors,
        ending: exit.as_ref().map(|exit| exit.ending.clone()),
        usage: usage(before, exit),
        bytes_out: stats.bytes_out,
        bytes_dropped: stats.bytes_dropped,
        unseen: channel.has_unseen(),
    })
}

/// Who ended a leader that is gone.
pub(super) async fn reason<P: Place>(live: &Live<P>) -> Reason {
    // What we asked for has its reason already.
    if live.was_asked() {
        return Reason::Exit;
    }
    let Ok(ended_by) = timeout(REASON, live.place.ended_by()).await else {
        tracing::warn!("nobody tells who ended a session; taken for its own end");
        return Reason::Exit;
    };
    match ended_by {
        EndedBy::Itself => Reason::Exit,
        EndedBy::Manager => Reason::StoppedByManager,
        EndedBy::BoundUnit => Reason::BoundUnitStopped,
        EndedBy::Broker => Reason::BrokerShutdown,
        EndedBy::Timeout => Reason::Timeout,
        EndedBy::OutOfMemory => Reason::OomKill,
    }
}

async fn empty<P: Place>(live: &Live<P>) -> u32 {
    if live.place.emptied(Duration::ZERO).await == 0 {
        return 0;
    }
    // Side by side: a manager that does not answer is no reason to kill later than was promised.
    let asking = async {
        ask(live).await;
        std::future::pending().await
    };
    let is_empty = tokio::select! {
        is_empty = emptied_in_time(live) => is_empty,
        never = asking => never,
    };
    if is_empty {
        return 0;
    }
    if let Err(error) = live.place.kill().await {
        tracing::warn!(%error, "cannot kill a session's processes at once");
    }
    live.place.emptied(KILL_WAIT).await
}

/// Waits until nothing lives in the place, or until KILL is due.
async fn emptied_in_time<P: Place>(live: &Live<P>) -> bool {
    let mut kill_at = live.kill_at.subscribe();
    loop {
        let Some(at) = *kill_at.borrow_and_update() else { return false };
        let left = at.saturating_duration_since(Instant::now());
        tokio::select! {
            survivors = live.place.emptied(left) => return survivors == 0,
            _ = kill_at.changed() => {}
        }
    }
}

/// Asks everything in the place to end: HUP to the leader, as a terminal that hangs up does, then the manager's stop.
async fn ask<P: Place>(live: &Live<P>) {
    let at_once = live.kill_at.borrow().is_some_and(|at| at <= Instant::now());
    if at_once {
        return;
    }
    if let Some(leader) = &live.leader
        && let Err(error) = leader.signal(nix::libc::SIGHUP)
    {
        tracing::debug!(%error, "cannot hang up on the leader");
    }
    if let Err(error) = live.place.stop().await {
        tracing::warn!(%error, "cannot stop a session gently; it is killed");
        live.end_within(Duration::ZERO);
    }
}

/// Lets go of the place and removes the `TMPDIR`, which may hold a lot: off the runtime's threads.
async fn tidy<P: Place>(live: &Arc<Live<P>>) {
    let removed = live.take_tmpdir().map(|tmpdir| spawn_blocking(|| tmpdir.remove()));
    let place = live.clone();
    // The end is told even while a manager does not answer; the letting go goes on.
    let retired = tokio::spawn(async move { place.place.retire().await });
    let _ = timeout(RETIRE, retired).await;
    let Some(removed) = removed else { return };
    match removed.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "cannot remove a session's TMPDIR"),
        Err(error) => tracing::error!(%error, "removing a session's TMPDIR failed"),
    }
}

async fn leader_exit<P: Place>(live: &Live<P>) -> Option<Exit> {
    let mut exit = live.exit.clone();
    let exited = timeout(REAP, exit.wait_for(Option::is_some)).await;
    exited.ok().and_then(Result::ok).and_then(|exit| exit.clone())
}

fn usage(place: Usage, exit: Option<Exit>) -> Usage {
    let leader = exit.map(|exit| exit.usage).unwrap_or_default();
    Usage {
        cpu_usec: place.cpu_usec.max(leader.cpu_usec),
        memory_peak: place.memory_peak.max(leader.memory_peak),
    }
}

/// Sleeps until a deadline, or for ever.
pub(super) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
