//! How the methods of a session reach the engine.

use std::time::Duration;

use tokio::{sync::watch, task::spawn_blocking, time::timeout};
use zbus::message::Header;

use super::Session;
use crate::{
    broker::{access::Need, outcome::Outcome},
    bus::{
        Error,
        dict::{self, Dict},
        error::Contract,
        options::{Options, in_bounds},
    },
    engine::{Act, Caller, EndWish, State},
    host::{
        pty::{self, Size},
        reading,
    },
    terminal::{Chunk, Source},
};

/// How long a tool that waits for input has been quiet.
const QUIET: Duration = Duration::from_secs(15);

impl Session {
    pub(super) fn caller(
        &self,
        header: &Header<'_>,
        token: Option<String>,
    ) -> Result<Caller, Error> {
        Ok(Caller { connection: self.callers.connection(header)?, token })
    }

    /// Checks a caller; the token may be in the options.
    pub(super) async fn admit(
        &self,
        header: &Header<'_>,
        options: &mut Options,
        need: Need,
    ) -> Result<(), Error> {
        let caller = self.caller(header, options.take("token")?)?;
        Ok(self.engine.find(&self.id, caller, need).await?)
    }

    pub(super) async fn act(&self, header: &Header<'_>, act: Act) -> Result<(), Error> {
        Ok(self.engine.act(&self.id, self.caller(header, None)?, act).await?)
    }

    pub(super) async fn end(&self, caller: Caller, wish: EndWish) -> Result<Dict, Error> {
        let mut state = self.engine.end(&self.id, caller, wish).await?;
        ended(&mut state).await.map(|outcome| dict::outcome(Some(&outcome)))
    }

    /// The screen as text, and on request as bytes.
    pub(super) async fn show_screen(
        &self,
        mut options: Options,
        header: &Header<'_>,
    ) -> Result<Dict, Error> {
        let formatted = options.take("formatted")?.unwrap_or(false);
        self.admit(header, &mut options, Need::Observe).await?;
        let terminal = self.terminal()?;
        let mut screen = dict::screen(terminal.screen().await?);
        if formatted {
            screen.insert("formatted", terminal.baseline()?.into());
        }
        Ok(screen)
    }

    pub(super) async fn read_output(
        &self,
        cursor: u64,
        max_bytes: u32,
        mut options: Options,
        header: &Header<'_>,
    ) -> Result<Chunk, Error> {
        let wait: u64 = options.take("wait_ms")?.unwrap_or_default();
        let most = self.limits.read_wait_ms;
        if wait > most {
            return Err(Error::InvalidArgs(format!("wait_ms {wait} is above {most}")));
        }
        let sources = [("output", Source::Output), ("stderr", Source::Stderr)];
        let source = options.one_of("stream", &sources)?;
        self.admit(header, &mut options, Need::Observe).await?;
        let max = u64::from(max_bytes).min(self.limits.read_bytes);
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let wait = Duration::from_millis(wait);
        Ok(self.channel.read_wait(source, cursor, max, wait).await?)
    }

    pub(super) async fn resize_terminal(
        &self,
        columns: u16,
        rows: u16,
        mut options: Options,
        header: &Header<'_>,
    ) -> Result<(), Error> {
        let size = Size {
            columns: in_bounds("columns", columns)?,
            rows: in_bounds("rows", rows)?,
            pixel_width: options.take("pixel_width")?.unwrap_or_default(),
            pixel_height: options.take("pixel_height")?.unwrap_or_default(),
        };
        self.terminal()?;
        let caller = self.caller(header, options.take("token")?)?;
        Ok(self.engine.act(&self.id, caller, Act::Resize(size)).await?)
    }

    pub(super) async fn share_with(
        &self,
        mode: &str,
        header: &Header<'_>,
    ) -> Result<String, Error> {
        let need = match mode {
            "observe" => Need::Observe,
            "control" => Need::Control,
            other => {
                let text = format!("mode {other:?} is none of observe, control");
                return Err(Error::InvalidArgs(text));
            }
        };
        let token = self.engine.share(&self.id, self.caller(header, None)?, need).await?;
        Ok(token.reveal().to_owned())
    }

    /// Whether the tool waits for somebody to type.
    pub(super) async fn waits_for_input(&self) -> bool {
        let is_seen = {
            let state = self.state.borrow();
            state.view.phase == "running" && !state.paused && !state.held
        };
        let Some(terminal) = self.channel.terminal() else { return false };
        if !is_seen || terminal.pulse().last_output().elapsed() < QUIET {
            return false;
        }
        let group = terminal.controller(pty::foreground).and_then(Result::ok).flatten();
        let Some(group) = group else { return false };
        spawn_blocking(move || reading::group_reads(group)).await.unwrap_or(false)
    }

    pub(super) async fn wait_for_end(&self, at_most: Duration) -> Result<(bool, Dict), Error> {
        let mut state = self.state.clone();
        match timeout(at_most, ended(&mut state)).await {
            Ok(outcome) => Ok((true, dict::outcome(Some(&outcome?)))),
            Err(_) => Ok((false, Dict::new())),
        }
    }
}

/// Waits for the outcome.
async fn ended(state: &mut watch::Receiver<State>) -> Result<Outcome, Error> {
    let ended = state.wait_for(|state| state.view.outcome.is_some()).await;
    let outcome = ended.ok().and_then(|state| state.view.outcome.clone());
    outcome.ok_or_else(|| Contract::NoSuchSession("the session was forgotten".to_owned()).into())
}

/// The number of a signal's name, with or without `SIG`.
pub(super) fn signal(name: &str) -> Result<i32, Error> {
    let full = if name.starts_with("SIG") { name.to_owned() } else { format!("SIG{name}") };
    let signal: nix::sys::signal::Signal = full.parse().map_err(|_| {
        Error::InvalidArgs(format!("{name:?} is not the name of a signal, such as \"SIGTERM\""))
    })?;
    Ok(signal as i32)
}
