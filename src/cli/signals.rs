//! The signals that this program answers while a session uses its terminal.

use nix::sys::signal::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use super::error::CliError;

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// The terminal has another size.
    Resize,
    /// End, by this signal.
    End(Signal),
    /// Stop until continued.
    Stop,
    /// We run again after a stop, of whatever kind.
    Continued,
}

/// The signals, subscribed to.
#[derive(Debug)]
pub(super) struct Signals {
    window: Stream,
    terminate: Stream,
    hangup: Stream,
    interrupt: Stream,
    quit: Stream,
    stop: Option<Stream>,
    continued: Stream,
}

impl Signals {
    /// Subscribes. A stop is answered only where the terminal is raw; elsewhere it is the kernel's.
    pub(super) fn subscribe(raw: bool) -> Result<Self, CliError> {
        let subscribe = |number: Signal| {
            signal(SignalKind::from_raw(number as i32))
                .map_err(|source| CliError::Signals { source })
        };
        Ok(Self {
            window: subscribe(Signal::SIGWINCH)?,
            terminate: subscribe(Signal::SIGTERM)?,
            hangup: subscribe(Signal::SIGHUP)?,
            interrupt: subscribe(Signal::SIGINT)?,
            quit: subscribe(Signal::SIGQUIT)?,
            stop: raw.then(|| subscribe(Signal::SIGTSTP)).transpose()?,
            continued: subscribe(Signal::SIGCONT)?,
        })
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Asked {
        let stop = async {
            match &mut self.stop {
                Some(stop) => stop.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.window.recv() => Asked::Resize,
            _ = self.terminate.recv() => Asked::End(Signal::SIGTERM),
            _ = self.hangup.recv() => Asked::End(Signal::SIGHUP),
            _ = self.interrupt.recv() => Asked::End(Signal::SIGINT),
            _ = self.quit.recv() => Asked::End(Signal::SIGQUIT),
            _ = stop => Asked::Stop,
            _ = self.continued.recv() => Asked::Continued,
        }
    }
}
