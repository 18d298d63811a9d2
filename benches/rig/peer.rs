//! A command on a pty of its own, run by hand: what every peer is.

use std::{io::Read, time::Instant};

use anyhow::ensure;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// A way to run a tool without the broker: what is put before its argv.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// What it is called in reports.
    pub name: &'static str,
    /// Its own command.
    pub command: &'static [&'static str],
}

/// A command that was started, session leader and owner of its terminal.
struct Running {
    child: Box<dyn Child + Send + Sync>,
    controller: Box<dyn MasterPty + Send>,
}

impl Peer {
    /// Runs a tool; gives when it, and what it was started by, had ended.
    ///
    /// # Errors
    /// Where it cannot be started or fails.
    pub fn until_exit(&self, argv: &[&str]) -> anyhow::Result<Instant> {
        let running = self.start(argv)?;
        running.wait()
    }

    /// Runs a tool that says something; gives when its first byte was there. `None` where nothing of it came:
    /// `systemd-run --pty` at times ends before it has passed on what a short tool said.
    ///
    /// # Errors
    /// Where it cannot be started or fails.
    pub fn until_first_byte(&self, argv: &[&str]) -> anyhow::Result<Option<Instant>> {
        let running = self.start(argv)?;
        let mut output = running.controller.try_clone_reader()?;
        let came = output.read(&mut [0])? > 0;
        let spoke = came.then(Instant::now);
        running.wait()?;
        Ok(spoke)
    }

    fn start(&self, argv: &[&str]) -> anyhow::Result<Running> {
        let pair = native_pty_system().openpty(PtySize::default())?;
        let whole = self.command.iter().chain(argv).map(Into::into).collect();
        let child = pair.slave.spawn_command(CommandBuilder::from_argv(whole))?;
        Ok(Running { child, controller: pair.master })
    }
}

impl Running {
    fn wait(mut self) -> anyhow::Result<Instant> {
        let status = self.child.wait()?;
        let ended = Instant::now();
        ensure!(status.success(), "a peer failed: {status}");
        Ok(ended)
    }
}
