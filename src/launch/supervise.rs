//! The launcher that stays: where no service manager watches over a session, its parent does.
//!
//! The launcher forks before anything else. The child becomes the tool; the parent passes the few
//! messages of opening between it and the broker, is child subreaper for all that comes of it, and
//! ends only when nothing of that is left. It holds no descriptor of the terminal or the pipes and waits for
//! nothing that the tool controls: neither can keep it from its work, and of the signals only KILL
//! and STOP reach it.

use std::{
    fs::{self, File},
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    process::ExitCode,
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        prctl::set_child_subreaper,
        signal::{SigSet, SigmaskHow, Signal, sigprocmask},
        signalfd::{SfdFlags, SignalFd},
        socket::{AddressFamily, SockFlag, SockType, socketpair},
    },
    unistd::{ForkResult, Pid, dup2_stderr, dup2_stdin, dup2_stdout, fork, setsid},
};

use self::reaper::{Ended, reap};
use super::{
    control::Control,
    descendants,
    failure::failure,
    run::{Stop, as_tool, end},
    spec::{Failure, FromLauncher, LaunchSpec, Step, Supervise},
};

mod reaper;

/// From one round of killing to the next, milliseconds, where no child's end is announced sooner.
const ROUND: u16 = 20;

/// Why a session cannot be watched over.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}: {source}")]
struct SuperviseError {
    what: &'static str,
    source: io::Error,
}

/// Forks: the child becomes the tool, the caller watches over it until nothing of it is left.
#[must_use]
pub fn run(
    control: Control,
    spec: &LaunchSpec,
    received: Vec<OwnedFd>,
    supervise: &Supervise,
) -> ExitCode {
    let failed = |error: SuperviseError, control: &Control| {
        end(&Stop::Failed(failure(Step::Spawn, &error)), control)
    };
    let (null, ended, [ours, theirs]) = match prepare() {
        Ok(prepared) => prepared,
        Err(error) => return failed(error, &control),
    };
    // SAFETY: the launcher has one thread, so the child may do whatever the parent could.
    match unsafe { fork() }.map_err(call("fork")) {
        Err(error) => failed(error, &control),
        Ok(ForkResult::Child) => {
            drop((control, null, ended, ours));
            become_child(Control::new(theirs), spec, &received, supervise.cgroup.as_deref())
        }
        Ok(ForkResult::Parent { child }) => {
            drop((theirs, received));
            if let Err(error) = leave_streams(&null) {
                let _ = failed(error, &control);
            }
            let inner = Some(Control::new(ours));
            let cgroup = supervise.cgroup.as_deref();
            Watch { control, inner, child, ended, cgroup, opening: Opening::Begun }.watch()
        }
    }
}

/// Everything that can fail before the fork: out of the way of the terminal's signals, and all of
/// ours blocked.
fn prepare() -> Result<(File, SignalFd, [OwnedFd; 2]), SuperviseError> {
    super::inherited::reset_signals().map_err(call("reset the signals"))?;
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None)
        .map_err(call("block the signals"))?;
    // Where it is a leader already, it is apart from the broker's terminal as well.
    let _ = setsid();
    set_child_subreaper(true).map_err(call("become child subreaper"))?;
    let null = File::options().read(true).write(true).open("/dev/null");
    let null = null.map_err(call("open /dev/null"))?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let ended = SignalFd::with_flags(&SigSet::from(Signal::SIGCHLD), flags);
    let ended = ended.map_err(call("watch for ended children"))?;
    let (family, flags) = (AddressFamily::Unix, SockFlag::SOCK_CLOEXEC);
    let (ours, theirs) =
        socketpair(family, SockType::Stream, None, flags).map_err(call("make a socket pair"))?;
    Ok((null, ended, [ours, theirs]))
}

fn call<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> SuperviseError {
    move |source| SuperviseError { what, source: source.into() }
}

/// Joins the session's cgroup, if there is one, and becomes the tool.
fn become_child(
    mut control: Control,
    spec: &LaunchSpec,
    received: &[OwnedFd],
    cgroup: Option<&Path>,
) -> ExitCode {
    // "0" is whoever writes it (cgroups(7)).
    let joined = cgroup.map_or(Ok(()), |cgroup| fs::write(cgroup.join("cgroup.procs"), "0"));
    let stop = match joined.map_err(call("join the session's cgroup")) {
        Err(error) => Stop::Failed(failure(Step::Scope, &error)),
        Ok(()) => as_tool(&mut control, spec, received),
    };
    end(&stop, &control)
}

fn leave_streams(null: &File) -> Result<(), SuperviseError> {
    dup2_stdin(null)
        .and_then(|()| dup2_stdout(null))
        .and_then(|()| dup2_stderr(null))
        .map_err(call("leave the terminal or the pipes"))
}

/// How far the child has come on its way to the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    /// It is not confined yet.
    Begun,
    /// It is confined; `execve` is next.
    Confined,
    /// It is the tool.
    Started,
    /// It failed, and the broker knows.
    Failed,
}

/// The broker is gone.
struct Alone;

/// A parent at its work.
struct Watch<'a> {
    control: Control,
    /// The child's control socket, until it closes.
    inner: Option<Control>,
    child: Pid,
    /// Readable when a child has ended.
    ended: SignalFd,
    cgroup: Option<&'a Path>,
    opening: Opening,
}

impl Watch<'_> {
    /// Watches until the leader has ended or the broker is gone, then ends all that is left.
    fn watch(mut self) -> ExitCode {
        let over = loop {
            match self.turn() {
                Ok(None) => {}
                over => break over,
            }
        };
        self.end_all();
        if let (Err(Alone), Some(cgroup)) = (over, self.cgroup) {
            // Nobody else will. The next broker sweeps what stays.
            let _ = fs::remove_dir(cgroup);
        }
        ExitCode::SUCCESS
    }

    /// Waits for one thing to happen and does what it asks; gives the leader's end once it came.
    fn turn(&mut self) -> Result<Option<Ended>, Alone> {
        let (broker, child, ended) = self.wait(PollTimeout::NONE);
        if child {
            self.relay()?;
        }
        if broker {
            self.listen()?;
        }
        if !ended {
            return Ok(None);
        }
        let Some(leader) = self.reap() else { return Ok(None) };
        while self.inner.is_some() {
            self.relay()?;
        }
        if self.opening == Opening::Started {
            self.tell(&leader.message())?;
        }
        Ok(Some(leader))
    }

    /// Waits until something is there: a message or the end of the broker, one of the child, the
    /// end of a child.
    fn wait(&self, timeout: PollTimeout) -> (bool, bool, bool) {
        let inner = self.inner.as_ref().unwrap_or(&self.control);
        let mut fds = [self.control.as_fd(), inner.as_fd(), self.ended.as_fd()]
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        // No signal interrupts: all are blocked. Other errors tell as little as a timeout does.
        let _ = poll(&mut fds, timeout);
        let [broker, child, ended] = fds.map(|fd| fd.any().unwrap_or(false));
        (broker, child && self.inner.is_some(), ended)
    }

    /// Passes the release on. Anything else than that, or end of file, is a broker that is gone.
    fn listen(&mut self) -> Result<(), Alone> {
        match (self.control.released(), &self.inner) {
            (Ok(true), Some(inner)) => {
                // Where the child is gone, its end says more.
                let _ = inner.release();
                Ok(())
            }
            _ => Err(Alone),
        }
    }

    /// Passes one message of the child on, or tells what the end of its socket means.
    fn relay(&mut self) -> Result<(), Alone> {
        let Some(inner) = &mut self.inner else { return Ok(()) };
        let Ok(Some(message)) = inner.receive::<FromLauncher>() else {
            self.inner = None;
            return self.closed();
        };
        self.opening = match &message {
            FromLauncher::Confined(_) => Opening::Confined,
            FromLauncher::Failed(_) => Opening::Failed,
            FromLauncher::Ready | FromLauncher::Started { .. } | FromLauncher::Exited { .. } => {
                self.opening
            }
        };
        self.tell(&message)
    }

    /// The child's socket closed: by `execve`, or because it ended.
    fn closed(&mut self) -> Result<(), Alone> {
        let (opening, message) = match self.opening {
            Opening::Confined => {
                (Opening::Started, FromLauncher::Started { pid: self.child.as_raw() })
            }
            Opening::Begun => {
                let message = "the launcher ended before it was confined".to_owned();
                let failure = Failure { step: Step::Spawn, errno: 0, message };
                (Opening::Failed, FromLauncher::Failed(failure))
            }
            Opening::Started | Opening::Failed => return Ok(()),
        };
        self.opening = opening;
        self.tell(&message)
    }

    fn tell(&self, message: &FromLauncher) -> Result<(), Alone> {
        self.control.send(message).map_err(|_| Alone)
    }

    /// Reaps every child that has ended; gives the leader's end if it is among them.
    fn reap(&self) -> Option<Ended> {
        // One announcement stands for any number of ends: take it before looking, so that none is
        // missed.
        let _ = self.ended.read_signal();
        std::iter::from_fn(|| reap().ok().flatten())
            .fold(None, |leader, ended| leader.or((ended.pid == self.child).then_some(ended)))
    }

    /// Kills, round after round, until there is no child any more.
    ///
    /// Everything that the tool started is or becomes a child of ours. What the kernel cannot end
    /// (uninterruptible sleep) is waited for.
    fn end_all(&mut self) {
        loop {
            if let Some(cgroup) = self.cgroup {
                // Absent before Linux 5.14; the descent finds the same processes.
                let _ = fs::write(cgroup.join("cgroup.kill"), "1");
            }
            // Where /proc cannot be listed, the cgroup is all there is.
            let _ = descendants::kill_all(Pid::this());
            self.reap();
            if reap().is_err() {
                return;
            }
            let mut fds = [PollFd::new(self.ended.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut fds, ROUND);
        }
    }
}
