//! From a resolved request to a running tool. Each step that fails undoes what came before it.

use std::{
    os::fd::{AsFd, BorrowedFd},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    run::Live,
    wiring::{self, Line, Wired},
};
use crate::{
    broker::session::Facts,
    host::{
        Host, HostError, Place, ScopeSpec,
        child::Exit,
        spawn::{self, Launcher},
        tmpdir::{TmpDir, TmpRoot},
    },
    launch::{
        report::{Gap, Report, all_gaps},
        spec::{Failure, Step},
    },
    policy::resolved::Resolved,
    terminal::{Bounds, RingPool},
};

/// How long what was placed may take to die when opening failed after all.
const UNDO: Duration = Duration::from_secs(5);

/// What every opening shares.
#[derive(Debug)]
pub(super) struct Workshop<H> {
    pub host: Arc<H>,
    pub launcher: PathBuf,
    pub tmp_root: TmpRoot,
    pub rings: RingPool,
    pub bounds: Bounds,
}

/// A tool that runs.
#[derive(Debug)]
pub(super) struct Arrived<P> {
    pub live: Arc<Live<P>>,
    pub launcher: Launcher,
    pub exit: watch::Sender<Option<Exit>>,
    pub pid: u32,
    /// Whether it has pipes because there is no pty.
    pub fell_back: bool,
    pub confinement: Box<Report>,
}

impl<H: Host> Workshop<H> {
    /// Opens a session, or leaves nothing of it.
    ///
    /// # Errors
    /// The step that failed. `abort` makes the step under way fail.
    pub async fn open(
        &self,
        facts: &Facts,
        resolved: Resolved,
        abort: &CancellationToken,
    ) -> Result<Arrived<H::Place>, Failure> {
        let (resolved, wired) = wiring::open(resolved, self.bounds, &self.rings)?;
        let tmpdir = self.tmp_root.make(&facts.id).map_err(|error| error.at(Step::TmpDir))?;
        let result = self.start(facts, resolved, wired, tmpdir.as_fd(), abort).await;
        match result {
            Ok(started) => Ok(started.arrive(tmpdir, &self.host.gaps())),
            Err(failure) => {
                if let Err(error) = tmpdir.remove() {
                    tracing::warn!(%error, "cannot remove the TMPDIR of a session that did not open");
                }
                Err(failure)
            }
        }
    }

    async fn start(
        &self,
        facts: &Facts,
        mut resolved: Resolved,
        wired: Wired,
        tmpdir: BorrowedFd<'_>,
        abort: &CancellationToken,
    ) -> Result<Started<H::Place>, Failure> {
        resolved.spec.supervise =
            self.host.supervise(&facts.id).map_err(|error| error.at(Step::Scope))?;
        let Wired { line, stdout, stderr, stdin, fell_back } = wired;
        let mut launcher = match Launcher::spawn_on(&self.launcher, stdout, stderr) {
            Ok(launcher) => launcher,
            Err(failure) => {
                self.host.abandon(&facts.id);
                return Err(failure);
            }
        };
        let mut descriptors = vec![resolved.workspace_fd.as_fd(), resolved.cwd_fd.as_fd(), tmpdir];
        descriptors.extend(stdin.as_ref().map(AsFd::as_fd));
        let sent = unless(abort, launcher.send_spec(&resolved.spec, &descriptors)).await;
        // The tool's end of input is the launcher's alone now, as those of output are: or its end is never seen.
        drop(stdin);
        let started = match sent {
            Ok(()) => {
                self.place_and_release(&scope_spec(facts, &resolved), &mut launcher, abort).await
            }
            Err(failure) => Err(failure),
        };
        match started {
            Ok((place, started)) => Ok(Started { place, launcher, started, line, fell_back }),
            Err(failure) => {
                launcher.abort().await;
                self.host.abandon(&facts.id);
                Err(failure)
            }
        }
    }

    /// The launcher takes its terminal or its pipes and confines itself while the manager starts the scope; then the
    /// gate opens.
    async fn place_and_release(
        &self,
        scope: &ScopeSpec,
        launcher: &mut Launcher,
        abort: &CancellationToken,
    ) -> Result<(H::Place, spawn::Started), Failure> {
        let process = launcher.process().try_clone().map_err(|error| {
            HostError::system("copy the launcher's pidfd", error).at(Step::Scope)
        })?;
        let (ready, placed) =
            tokio::join!(unless(abort, launcher.ready()), self.host.place(scope, &process));
        let place = match (ready, placed) {
            (Ok(()), Ok(place)) => place,
            (Ok(()), Err(error)) => return Err(error.at(Step::Scope)),
            (Err(failure), Err(error)) => return Err(blame(failure, &error)),
            (Err(failure), Ok(place)) => {
                undo(place).await;
                return Err(failure);
            }
        };
        match unless(abort, launcher.release()).await {
            Ok(started) => Ok((place, started)),
            Err(failure) => {
                undo(place).await;
                Err(failure)
            }
        }
    }
}

/// A started tool, before its parts are shared.
struct Started<P> {
    place: P,
    launcher: Launcher,
    started: spawn::Started,
    line: Line,
    fell_back: bool,
}

impl<P: Place> Started<P> {
    /// Shares the parts out. What the host cannot promise is added to what the kernel did not accept.
    fn arrive(self, tmpdir: TmpDir, gaps: &[Gap]) -> Arrived<P> {
        let mut confinement = self.started.report;
        confinement.gaps = all_gaps(&confinement.gaps, gaps);
        let (exit, exited) = watch::channel(None);
        let pid = u32::try_from(self.started.pid).unwrap_or_default();
        let Self { place, launcher, line, fell_back, .. } = self;
        let live = Live::new(place, self.started.leader, line, tmpdir, exited);
        Arrived { live: Arc::new(live), launcher, exit, pid, fell_back, confinement }
    }
}

fn scope_spec(facts: &Facts, resolved: &Resolved) -> ScopeSpec {
    ScopeSpec {
        id: facts.id.clone(),
        unit: facts.unit.clone(),
        description: format!("{} in {}", facts.tool, facts.workspace.display()),
        stop_timeout: facts.stop_timeout,
        runtime_max: facts.timeout,
        memory_max: resolved.memory_max,
        tasks_max: resolved.tasks_max,
        bind_unit: resolved.bind_unit.clone(),
    }
}

/// Which of two failures is the reason of the other. A launcher that failed on its own says why better than a manager
/// that finds it dead; one that was killed because it could not be placed says nothing.
fn blame(launcher: Failure, host: &HostError) -> Failure {
    let is_silent = launcher.errno == nix::errno::Errno::ECHILD as i32;
    if is_silent && !matches!(host, HostError::Ended) { host.at(Step::Scope) } else { launcher }
}

/// Does a step unless opening is stopped.
async fn unless<T>(
    abort: &CancellationToken,
    step: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        biased;
        () = abort.cancelled() => Err(Failure {
            step: Step::Spawn,
            errno: nix::errno::Errno::ECANCELED as i32,
            message: "ended while it was being opened".to_owned(),
        }),
        result = step => result,
    }
}

async fn undo<P: Place>(place: P) {
    if let Err(error) = place.kill().await {
        tracing::warn!(%error, "cannot kill what was placed");
    }
    let survivors = place.emptied(UNDO).await;
    if survivors > 0 {
        tracing::error!(survivors, "a session that did not open leaves processes");
    }
    place.retire().await;
}
