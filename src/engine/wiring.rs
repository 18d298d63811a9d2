//! What a tool reads and writes: a terminal, or pipes; opened, and watched from then on.

use std::{io, os::fd::OwnedFd};

use crate::{
    host::{
        HostError,
        pipes::{Pipes, ToolEnds},
        pty::{Controller, Pty, Size},
    },
    launch::spec::{Failure, Io, Step},
    policy::{request::Stdin, resolved::Resolved},
    terminal::{self, Bounds, Channel, RingPool, Terminal},
};

/// The broker's side: what flows, and of a terminal also what is asked and told beside that.
#[derive(Debug)]
pub(super) enum Line {
    Terminal(Terminal, Controller),
    Pipes(terminal::Pipes),
}

/// Both sides: the broker's, which flows already, and the tool's, for the launcher.
#[derive(Debug)]
pub(super) struct Wired {
    pub line: Line,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    /// Of pipes: what the tool reads.
    pub stdin: Option<OwnedFd>,
    /// Whether these are pipes because there is no pty.
    pub fell_back: bool,
}

impl Line {
    /// What flows.
    pub fn channel(&self) -> Channel {
        match self {
            Self::Terminal(terminal, _) => Channel::Terminal(terminal.clone()),
            Self::Pipes(pipes) => Channel::Pipes(pipes.clone()),
        }
    }

    pub fn io(&self) -> Io {
        match self {
            Self::Terminal(..) => Io::Pty,
            Self::Pipes(_) => Io::Pipe,
        }
    }
}

/// Opens what a request resolved to; pipes where no pty can be opened and the request allows that, which `resolved`
/// tells then.
///
/// # Errors
/// Step `pty` or `pipes`.
pub(super) fn open(
    resolved: Resolved,
    bounds: Bounds,
    rings: &RingPool,
) -> Result<(Resolved, Wired), Failure> {
    let bounds = Bounds { ring_bytes: resolved.ring_bytes, direct: resolved.direct, ..bounds };
    if resolved.spec.io == Io::Pipe {
        let wired = on_pipes(resolved.stdin, bounds, rings)?;
        return Ok((resolved, wired));
    }
    match Pty::open(Size::new(resolved.columns, resolved.rows)) {
        Ok(pty) => on_pty(pty, bounds, rings).map(|wired| (resolved, wired)),
        Err(error) if resolved.io_fallback => {
            tracing::warn!(%error, "a session gets pipes in the place of a terminal");
            let wired = on_pipes(resolved.stdin, bounds, rings)?;
            Ok((resolved.without_terminal(), Wired { fell_back: true, ..wired }))
        }
        Err(error) => Err(error.at(Step::Pty)),
    }
}

fn on_pty(pty: Pty, bounds: Bounds, rings: &RingPool) -> Result<Wired, Failure> {
    let failed = |what| move |error: io::Error| HostError::system(what, error).at(Step::Pty);
    let Pty { controller, user: stdout, .. } = pty;
    let copy = controller.try_clone().map_err(failed("copy the pty's controller end"))?;
    let copied = || stdout.try_clone().map_err(failed("copy the pty's user end"));
    let (held, stderr) = (copied()?, copied()?);
    let terminal = Terminal::start(copy, held, bounds, rings)
        .map_err(failed("watch the pty's controller end"))?;
    let line = Line::Terminal(terminal, controller);
    Ok(Wired { line, stdout, stderr, stdin: None, fell_back: false })
}

fn on_pipes(stdin: Stdin, bounds: Bounds, rings: &RingPool) -> Result<Wired, Failure> {
    let Pipes { broker, tool } =
        Pipes::open(stdin == Stdin::Open).map_err(|error| error.at(Step::Pipes))?;
    let pipes = terminal::Pipes::start(broker, bounds, rings);
    let pipes =
        pipes.map_err(|error| HostError::system("watch the pipes", error).at(Step::Pipes))?;
    let ToolEnds { stdin, output: stdout, stderr } = tool;
    let (line, stdin) = (Line::Pipes(pipes), Some(stdin));
    Ok(Wired { line, stdout, stderr, stdin, fell_back: false })
}
