//! The launcher, seen from the broker: spawned, told what to become, released, waited for.

use std::{
    env,
    future::Future,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, Interest},
    net::UnixStream,
    time::timeout,
};

use super::{
    child::{Child, Exit, ending},
    hardening,
    pidfd::PidFd,
};
use crate::{
    broker::outcome::{Ending, Usage},
    launch::{
        report::Report,
        spec::{Failure, FromLauncher, LaunchSpec, Step, ToLauncher},
        wire::{Decoder, WireError, encode, send_with_descriptors},
    },
};

/// How long one answer of the launcher may take, and how long a supervisor may take to end after its
/// tool: all of it is far below a second on an idle machine.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Path of the launcher, for tests.
pub const LAUNCHER_VARIABLE: &str = "ST2_TOOLS_LAUNCHER";

/// The launcher's file name.
const PROGRAM: &str = "st2-tools-launch";

/// Where an installed launcher is; set at build time.
const LIBEXECDIR: &str = match option_env!("ST2_TOOLS_LIBEXECDIR") {
    Some(directory) => directory,
    None => "/usr/libexec/st2-tools",
};

/// A spawned launcher, and later the tool that it became or watches over.
///
/// Dropped, it is killed and reaped; one that watches over a running tool is told to end it instead.
#[derive(Debug)]
pub struct Launcher {
    child: Child,
    control: UnixStream,
    decoder: Decoder,
    supervised: bool,
    /// The supervisor's word on its tool.
    told: Option<Exit>,
}

/// A tool whose execve(2) succeeded.
#[derive(Debug)]
pub struct Started {
    /// What the kernel accepted of its confinement.
    pub report: Box<Report>,
    /// The tool's process id.
    pub pid: i32,
    /// The tool itself; none where it ended at once and its supervisor has waited for it.
    pub leader: Option<PidFd>,
}

/// Finds the launcher: `ST2_TOOLS_LAUNCHER`, beside the broker's own executable, or the build-time
/// libexec directory.
///
/// # Errors
/// Step `spawn`, `ENOENT` where it is in none of them.
pub fn locate() -> Result<PathBuf, Failure> {
    if let Some(path) = env::var_os(LAUNCHER_VARIABLE) {
        return Ok(path.into());
    }
    let own = env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(|directory| directory.join(PROGRAM));
    let installed = Path::new(LIBEXECDIR).join(PROGRAM);
    let found = beside.into_iter().chain([installed]).find(|path| path.is_file());
    found.ok_or_else(|| Failure {
        step: Step::Spawn,
        errno: libc::ENOENT,
        message: format!("{PROGRAM} is neither beside the broker nor in {LIBEXECDIR}"),
    })
}

impl Launcher {
    /// Spawns the launcher on a pty's user end, as [`Self::spawn_on`].
    ///
    /// # Errors
    /// Step `spawn`.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn spawn(program: &Path, user: OwnedFd) -> Result<Self, Failure> {
        let second = user.try_clone();
        let second = second
            .map_err(|error| failure(Step::Spawn, &error, "cannot copy the pty's user end"))?;
        Self::spawn_on(program, second, user)
    }

    /// Spawns the launcher, its standard input the control socket, its output and error what it is
    /// given, of which no copy stays here. Takes about a millisecond, until its execve(2) is through.
    ///
    /// # Errors
    /// Step `spawn`.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn spawn_on(program: &Path, stdout: OwnedFd, stderr: OwnedFd) -> Result<Self, Failure> {
        let failed = |what: &'static str| {
            move |error: io::Error| failure(Step::Spawn, &error, &format!("cannot {what}"))
        };
        let (ours, theirs) =
            std::os::unix::net::UnixStream::pair().map_err(failed("make the control socket"))?;
        ours.set_nonblocking(true).map_err(failed("make the control socket"))?;
        let control = UnixStream::from_std(ours).map_err(failed("watch the control socket"))?;
        // Nothing is set that needs code of ours between fork and exec: the library spawns it by
        // posix_spawn(3). Descriptors that another thread had not yet made close-on-exec are none of
        // the tool's: the launcher closes all it does not know.
        let spawned = Command::new(program)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(stdout))
            .stderr(Stdio::from(stderr))
            .spawn()
            .map_err(|error| {
                failure(Step::Spawn, &error, &format!("cannot spawn {}", program.display()))
            })?;
        let child = Child::adopt(spawned).map_err(failed("take hold of the launcher"))?;
        hardening::restore_core_limit(child.process())
            .map_err(failed("give the launcher its limits"))?;
        let decoder = Decoder::default();
        Ok(Self { child, control, decoder, supervised: false, told: None })
    }

    /// The launcher's own process: what is placed, and what becomes the tool unless it supervises.
    #[must_use]
    pub fn process(&self) -> &PidFd {
        self.child.process()
    }

    /// Hands over the specification and its descriptors, in the order of
    /// [`Slot`](crate::launch::spec::Slot).
    ///
    /// # Errors
    /// Step `spec`, `ETIMEDOUT` after [`PATIENCE`]; the launcher is dead then.
    pub async fn send_spec(
        &mut self,
        spec: &LaunchSpec,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), Failure> {
        self.supervised = spec.supervise.is_some();
        if self.supervised {
            // With the control socket, which a drop closes, a supervisor loses its reason to stay; killed,
            // it would leave the tool behind.
            self.child.spare(PATIENCE);
        }
        let message = ToLauncher::Spec(Box::new(spec.clone()));
        let sent = self.send(&message, descriptors);
        let sent = patient(Step::Spec, "take its specification", sent).await;
        self.or_dead(sent).await
    }

    /// Waits until the launcher has taken the terminal or the pipes and confined itself.
    ///
    /// # Errors
    /// The step that failed; step `spawn`, `ETIMEDOUT` after [`PATIENCE`]. The launcher is dead then.
    pub async fn ready(&mut self) -> Result<(), Failure> {
        let message = self.receive(Step::Spawn);
        let message = patient(Step::Spawn, "become ready", message).await;
        let ready = message.and_then(|message| match message {
            Some(FromLauncher::Ready) => Ok(()),
            Some(FromLauncher::Failed(failure)) => Err(failure),
            Some(other) => Err(unexpected(Step::Spawn, &other)),
            None => Err(ended_early(Step::Spawn)),
        });
        self.or_dead(ready).await
    }

    /// Opens the gate, and waits until the tool's execve(2) has succeeded.
    ///
    /// Unless the launcher supervises, success is seen as the end of its control socket. What ends
    /// the launcher from outside between its last word and its execve(2) looks the same; the exit
    /// tells it then.
    ///
    /// # Errors
    /// The step that failed; step `confine`, `ETIMEDOUT` after [`PATIENCE`]. The launcher is dead then.
    pub async fn release(&mut self) -> Result<Started, Failure> {
        let released = async {
            self.send(&ToLauncher::Release, &[]).await?;
            self.follow().await
        };
        let released = patient(Step::Confine, "start the tool", released).await;
        self.or_dead(released).await
    }

    /// Ends and reaps a launcher that is not wanted any more, with the tool below a supervisor.
    pub async fn abort(mut self) {
        self.end().await;
    }

    /// Waits for the leader's end, and for the supervisor's where there is one: by then every process
    /// of the session is dead, or [`PATIENCE`] has passed. Cancelling loses nothing.
    pub async fn exited(&mut self) -> Exit {
        if !self.supervised {
            return self.own_exit().await;
        }
        let told = match self.told.take() {
            Some(told) => told,
            None => self.last_words().await,
        };
        self.told = Some(told.clone());
        if timeout(PATIENCE, self.own_exit()).await.is_err() {
            tracing::warn!(pid = self.process().pid(), "the supervisor does not end");
        }
        told
    }

    async fn last_words(&mut self) -> Exit {
        match self.receive(Step::Exec).await {
            Ok(Some(FromLauncher::Exited { status, cpu_usec, memory_peak })) => {
                Exit { ending: ending(status), usage: Usage { cpu_usec, memory_peak } }
            }
            Ok(Some(other)) => lost(unexpected(Step::Exec, &other)),
            Ok(None) => lost(ended_early(Step::Exec)),
            Err(failure) => lost(failure),
        }
    }

    async fn own_exit(&mut self) -> Exit {
        self.child.exited().await.unwrap_or_else(|error| {
            lost(failure(Step::Exec, &error, "cannot learn how the tool ended"))
        })
    }

    /// Follows the launcher from the gate to the tool.
    async fn follow(&mut self) -> Result<Started, Failure> {
        let (mut report, mut leader) = (None, None);
        loop {
            match self.receive(Step::Confine).await? {
                Some(FromLauncher::Confined(accepted)) => report = Some(accepted),
                Some(FromLauncher::Started { pid }) if self.supervised => leader = Some(pid),
                Some(FromLauncher::Failed(failure)) => return Err(failure),
                Some(other) => return Err(unexpected(Step::Confine, &other)),
                None if self.supervised => return Err(ended_early(Step::Confine)),
                None => leader = Some(self.process().pid()),
            }
            match (report.take(), leader) {
                (Some(report), Some(pid)) => return self.started(report, pid),
                (None, Some(_)) if !self.supervised => return Err(ended_early(Step::Confine)),
                (waiting, _) => report = waiting,
            }
        }
    }

    fn started(&self, report: Box<Report>, pid: i32) -> Result<Started, Failure> {
        let leader = if self.supervised {
            child_of(self.process().pid(), pid)
        } else {
            self.process().try_clone().map(Some)
        };
        let leader =
            leader.map_err(|error| failure(Step::Exec, &error, "cannot take hold of the tool"))?;
        Ok(Started { report, pid, leader })
    }

    /// Sends one message, the descriptors with its first byte.
    async fn send(
        &self,
        message: &ToLauncher,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), Failure> {
        let frame = encode(message).map_err(|error| wire_failure(Step::Spec, &error))?;
        let mut sent = 0;
        while sent < frame.len() {
            let riding = if sent == 0 { descriptors } else { &[] };
            let send = || send_with_descriptors(self.control.as_fd(), &frame[sent..], riding);
            sent += self
                .control
                .async_io(Interest::WRITABLE, send)
                .await
                .map_err(|error| failure(Step::Spec, &error, "cannot write to the launcher"))?;
        }
        Ok(())
    }

    /// Receives one message; `None` is the end of the control socket.
    async fn receive(&mut self, step: Step) -> Result<Option<FromLauncher>, Failure> {
        let mut chunk = [0; 4096];
        loop {
            if let Some(message) = self.decoder.message().map_err(|e| wire_failure(step, &e))? {
                return Ok(Some(message));
            }
            match self.control.read(&mut chunk).await {
                Ok(0) => return Ok(None),
                Ok(count) => self.decoder.extend(&chunk[..count]),
                // It died with words of ours unread.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(failure(step, &error, "cannot read from the launcher")),
            }
        }
    }

    /// On a failure, ends and reaps the launcher before the failure is told.
    async fn or_dead<T>(&mut self, outcome: Result<T, Failure>) -> Result<T, Failure> {
        if outcome.is_err() {
            self.end().await;
        }
        outcome
    }

    /// Kills the launcher, a supervisor only where it does not end by itself when it is left alone.
    async fn end(&mut self) {
        if self.supervised {
            let _ = self.control.shutdown().await;
            if timeout(PATIENCE, self.child.exited()).await.is_ok() {
                return;
            }
        }
        if let Err(error) = self.child.process().kill() {
            tracing::error!(%error, "cannot kill the launcher");
        }
        let _ = timeout(PATIENCE, self.child.exited()).await;
    }
}

/// Takes hold of a process that the supervisor has not waited for, or of none, where it has: the number
/// may belong to another by now, but not to another child of the supervisor outside the session.
fn child_of(supervisor: i32, pid: i32) -> io::Result<Option<PidFd>> {
    let process = match PidFd::open(pid) {
        Ok(process) => process,
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(None),
        Err(error) => return Err(error),
    };
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return Ok(None) };
    // The name, in parentheses, may hold anything; state and parent follow it (proc_pid_stat(5)).
    let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1));
    Ok((parent == Some(&supervisor.to_string())).then_some(process))
}

/// Bounds one wait by [`PATIENCE`].
async fn patient<T>(
    step: Step,
    what: &str,
    wait: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| {
        let message = format!("the launcher did not {what} within {} s", PATIENCE.as_secs());
        Err(Failure { step, errno: libc::ETIMEDOUT, message })
    })
}

fn failure(step: Step, error: &io::Error, what: &str) -> Failure {
    let errno = error.raw_os_error().unwrap_or_default();
    Failure { step, errno, message: format!("{what}: {error}") }
}

fn wire_failure(step: Step, error: &WireError) -> Failure {
    let errno = match error {
        WireError::Socket { source } => source.raw_os_error().unwrap_or_default(),
        WireError::TooLong(_) => libc::E2BIG,
        _ => libc::EPROTO,
    };
    Failure { step, errno, message: error.to_string() }
}

fn unexpected(step: Step, message: &FromLauncher) -> Failure {
    let word = match message {
        FromLauncher::Ready => "ready",
        FromLauncher::Confined(_) => "confined",
        FromLauncher::Failed(_) => "failed",
        FromLauncher::Started { .. } => "started",
        FromLauncher::Exited { .. } => "exited",
    };
    let message = format!("the launcher said {word:?} out of turn");
    Failure { step, errno: libc::EPROTO, message }
}

fn ended_early(step: Step) -> Failure {
    let message = "the launcher ended without a word of why".into();
    Failure { step, errno: libc::ECHILD, message }
}

fn lost(failure: Failure) -> Exit {
    Exit { ending: Ending::Failed(failure), usage: Usage::default() }
}
