//! The launcher's one sequence: take the terminal or the pipes, confine, wait at the gate, execute.
//!
//! It forks nothing (under supervision the fork comes before all of this), so that whoever is
//! placed in the scope is the one who becomes the tool. What takes time comes before the gate, while
//! the service manager starts the scope; nothing of it depends on where the launcher is placed.

use std::{
    convert::Infallible,
    error::Error,
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    process::ExitCode,
};

use nix::{errno::Errno, sys::stat::fstat, unistd::fchdir};

use super::{
    confine::{Descriptors, Prepared},
    control::Control,
    exec::Program,
    failure::failure,
    inherited,
    spec::{Failure, FromLauncher, Io, LaunchSpec, Slot, Step},
    supervise,
};

/// Why the launcher ends without having become the tool.
#[derive(Debug)]
pub(super) enum Stop {
    /// A step failed: the broker is told.
    Failed(Failure),
    /// The broker is gone: there is nobody to tell.
    Alone,
}

/// Runs the launcher on the process's standard descriptors: control socket, and twice the pty's user
/// end or the tool's ends of two pipes.
#[must_use]
pub fn run() -> ExitCode {
    let control = inherited::close_descriptors().and_then(|()| Control::from_stdin());
    match control {
        Ok(control) => serve(control),
        Err(error) => {
            let mut stderr = io::stderr();
            let _ = writeln!(
                stderr,
                "st2-tools-launch is run by st2-toolsd, with a control socket: {error}"
            );
            ExitCode::from(2)
        }
    }
}

fn serve(mut control: Control) -> ExitCode {
    match control.specification() {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some((spec, descriptors))) => match &spec.supervise {
            Some(supervise) => supervise::run(control, &spec, descriptors, supervise),
            None => {
                let stop = as_tool(&mut control, &spec, &descriptors);
                end(&stop, &control)
            }
        },
        Err(error) => end(&Stop::Failed(failure(Step::Spec, &error)), &control),
    }
}

/// Tells the broker what there is to tell.
pub(super) fn end(stop: &Stop, control: &Control) -> ExitCode {
    match stop {
        Stop::Alone => ExitCode::SUCCESS,
        Stop::Failed(failure) => {
            // Where this fails the broker is gone, and there is nobody else.
            let _ = control.send(&FromLauncher::Failed(failure.clone()));
            ExitCode::FAILURE
        }
    }
}

/// Becomes the tool; comes back only with the reason why not.
pub(super) fn as_tool(control: &mut Control, spec: &LaunchSpec, received: &[OwnedFd]) -> Stop {
    match become_tool(control, spec, received) {
        Ok(never) => match never {},
        Err(stop) => stop,
    }
}

fn become_tool(
    control: &mut Control,
    spec: &LaunchSpec,
    received: &[OwnedFd],
) -> Result<Infallible, Stop> {
    let stdout = io::stdout();
    let terminal = match spec.io {
        Io::Pty => {
            inherited::take_terminal(stdout.as_fd())
                .map_err(call(Step::Terminal, "take the controlling terminal"))?;
            Some(stdout.as_fd())
        }
        Io::Pipe => {
            inherited::take_pipes(received[Slot::Stdin as usize].as_fd())
                .map_err(call(Step::Pipes, "take the pipes"))?;
            None
        }
    };
    inherited::reset_signals().map_err(call(Step::Spec, "reset the signals"))?;
    inherited::apply(spec).map_err(call(Step::Spec, "set the limits"))?;
    let program = Program::new(spec).map_err(stop(Step::Exec))?;
    let cwd = &received[Slot::Cwd as usize];
    exists(cwd)?;
    fchdir(cwd).map_err(call(Step::Cwd, CWD))?;
    let descriptors = Descriptors { received, terminal };
    let prepared = Prepared::new(&spec.confinement, &descriptors).map_err(stop(Step::Confine))?;
    let report = prepared.restrict(&descriptors).map_err(stop(Step::Confine))?;

    control.send(&FromLauncher::Ready).map_err(|_| Stop::Alone)?;
    if !control.released().map_err(stop(Step::Spec))? {
        return Err(Stop::Alone);
    }
    exists(cwd)?;
    control.send(&FromLauncher::Confined(Box::new(report))).map_err(|_| Stop::Alone)?;
    Err(stop(Step::Exec)(program.exec()))
}

/// Refuses a directory that was removed since the broker opened it: fchdir(2) would enter it all
/// the same.
fn exists(directory: &OwnedFd) -> Result<(), Stop> {
    let stat = fstat(directory).map_err(call(Step::Cwd, CWD))?;
    if stat.st_nlink > 0 { Ok(()) } else { Err(call(Step::Cwd, CWD)(Errno::ENOENT)) }
}

/// What step [`Step::Cwd`] does.
const CWD: &str = "enter the working directory";

/// A call that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}: {source}")]
struct CallError<E: Error + 'static> {
    what: &'static str,
    source: E,
}

/// Stops at a step, for an error that says itself what was tried.
fn stop<E: Error + 'static>(step: Step) -> impl FnOnce(E) -> Stop {
    move |error| Stop::Failed(failure(step, &error))
}

/// Stops at a step, for the bare error of a call.
fn call<E: Error + 'static>(step: Step, what: &'static str) -> impl FnOnce(E) -> Stop {
    move |source| stop(step)(CallError { what, source })
}
