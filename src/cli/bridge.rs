//! The way between this terminal and a session: bytes both ways, sizes, signals, and a stream that is
//! attached again where it was cut.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use nix::sys::signal::{Signal, raise};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::{OwnedReadHalf, OwnedWriteHalf},
};

use super::{
    error::{CliError, say},
    input::{Input, InputEnd},
    modes::Modes,
    output,
    signals::{Asked, Signals},
    terminal::{self, RawTerminal},
};
use crate::client::{
    AttachOptions, Attached, ClientError, Dict, Mode, READ_MAX, ReadOptions, Refusal, Session,
    Start,
};

/// How long one question about a stream that ended waits for the session to end as well.
const SETTLE: Duration = Duration::from_millis(250);
/// How long a call that a signal caused may take: a broker that hangs must not hold the terminal.
const CALL: Duration = Duration::from_secs(2);
/// Bytes of one read of the stream.
const PIECE: usize = 64 * 1024;

/// A session on this terminal.
#[derive(Debug)]
pub(super) struct Bridge<'a> {
    session: &'a Session,
    options: AttachOptions,
    input: Input,
    signals: Signals,
    raw: Option<RawTerminal>,
    output: Shown,
}

/// Why it is over.
#[derive(Debug)]
pub(super) enum BridgeEnd {
    /// The session ended; this is its outcome.
    Ended(Dict),
    /// The detach keys were typed.
    Detached,
    /// We were told to end.
    Signaled(Signal),
}

/// What was shown of the session's output.
#[derive(Debug, Default)]
struct Shown {
    /// Absolute offset after the last byte shown, where it is known.
    position: Option<u64>,
    /// Bytes that came too fast to be shown, and are gone.
    skipped: u64,
    /// Shared, because a stop needs them while output is being shown.
    modes: Arc<Mutex<Modes>>,
}

/// Why one attached stream was left.
enum Left {
    EndOfFile,
    Detached,
    Signaled(Signal),
}

impl<'a> Bridge<'a> {
    /// Takes the terminal, where there is one.
    pub(super) fn begin(
        session: &'a Session,
        options: AttachOptions,
        input: impl FnOnce() -> Input,
    ) -> Result<Self, CliError> {
        let interactive = terminal::is_interactive();
        let signals = Signals::subscribe(interactive)?;
        let raw = interactive.then(RawTerminal::enter).transpose()?;
        let position = match options.start {
            Start::Cursor(cursor) => Some(cursor),
            Start::Screen | Start::Now => None,
        };
        let output = Shown { position, ..Shown::default() };
        Ok(Self { session, options, input: input(), signals, raw, output })
    }

    /// Carries the session until it is over, and gives the terminal back.
    pub(super) async fn run(mut self) -> Result<BridgeEnd, CliError> {
        let end = self.carry().await;
        self.leave();
        end
    }

    async fn carry(&mut self) -> Result<BridgeEnd, CliError> {
        loop {
            self.options.start = self.output.position.map_or(Start::Screen, Start::Cursor);
            match self.session.attach(&self.options).await {
                Ok(attached) => {
                    self.output.begins(attached.begin());
                    match self.stream(attached).await? {
                        Left::EndOfFile => {}
                        Left::Detached => return Ok(BridgeEnd::Detached),
                        Left::Signaled(signal) => return Ok(BridgeEnd::Signaled(signal)),
                    }
                }
                Err(error) if error.refusal() == Some(Refusal::Closed) => {}
                Err(error) => return Err(self.failed(error)),
            }
            if let Some(outcome) = self.settle().await? {
                return Ok(BridgeEnd::Ended(outcome));
            }
        }
    }

    /// Carries one stream until it ends or is left.
    async fn stream(&mut self, stream: Attached) -> Result<Left, CliError> {
        self.resize().await;
        let (reader, mut writer) = stream.into_split();
        let Self { session, options, input, signals, raw, output } = self;
        let modes = Arc::clone(&output.modes);
        let mut shown = std::pin::pin!(output.show(reader));
        let mut typed = std::pin::pin!(forward(input, &mut writer));
        let mut typing = true;
        loop {
            tokio::select! {
                end = &mut shown => return end.map(|()| Left::EndOfFile),
                end = &mut typed, if typing => match end? {
                    InputEnd::Detached => return Ok(Left::Detached),
                    InputEnd::EndOfFile | InputEnd::StreamClosed => typing = false,
                },
                asked = signals.next() => match asked {
                    Asked::End(signal) => return Ok(Left::Signaled(signal)),
                    Asked::Resize => resize(session, options).await,
                    Asked::Stop => stop(raw.as_ref(), &modes)?,
                    Asked::Continued => {
                        continued(raw.as_ref(), &modes)?;
                        redraw(session, options).await;
                    }
                },
            }
        }
    }

    /// After a stream's end: shows what it did not carry, and tells the session's end from a cut.
    async fn settle(&mut self) -> Result<Option<Dict>, CliError> {
        let Some(mut position) = self.output.position else {
            return self.outcome(SETTLE).await;
        };
        loop {
            let options = ReadOptions { wait: Some(SETTLE), ..ReadOptions::default() };
            let read = self.session.read(position, READ_MAX, &options).await;
            let chunk = read.map_err(|error| self.failed(error))?;
            self.output.begins(Some(chunk.begin));
            self.output.write(&chunk.data).await?;
            position = chunk.next;
            self.output.position = Some(position);
            if chunk.eof {
                return self.outcome(Duration::MAX).await;
            }
            if chunk.data.is_empty() {
                return Ok(None);
            }
        }
    }

    /// The outcome, if the session is closed within that time.
    async fn outcome(&self, at_most: Duration) -> Result<Option<Dict>, CliError> {
        match tokio::time::timeout(at_most, self.session.wait()).await {
            Ok(outcome) => outcome.map(Some).map_err(|error| self.failed(error)),
            Err(_) => Ok(None),
        }
    }

    async fn resize(&self) {
        resize(self.session, &self.options).await;
    }

    /// Brings the terminal to rest and gives it back.
    fn leave(self) {
        let Self { raw, output: shown, .. } = self;
        if raw.is_some() {
            // A terminal that takes nothing any more needs no rest.
            let modes = shown.modes.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = output::write(&modes.to_rest());
        }
        drop(raw);
        if shown.skipped > 0 {
            say(&format!("{} bytes of output came too fast and were skipped", shown.skipped));
        }
    }

    /// A session that its broker does not know any more went with an earlier broker.
    fn failed(&self, source: ClientError) -> CliError {
        let source = match source {
            ClientError::Absent { reason } => ClientError::Gone { reason },
            ClientError::Refused { refusal: Refusal::NoSuchSession, message, .. } => {
                ClientError::Gone { reason: message }
            }
            other => other,
        };
        CliError::Session { id: self.session.id().clone(), unit: None, source }
    }
}

impl Shown {
    /// Output goes on at this offset.
    fn begins(&mut self, at: Option<u64>) {
        if let (Some(position), Some(at)) = (self.position, at) {
            self.skipped += at.saturating_sub(position);
        }
        self.position = at.or(self.position);
    }

    /// Shows a stream until its end.
    async fn show(&mut self, mut stream: OwnedReadHalf) -> Result<(), CliError> {
        let mut piece = vec![0; PIECE];
        loop {
            // A broker that was killed resets the stream: the next question to it says so better.
            let read = stream.read(&mut piece).await.unwrap_or(0);
            if read == 0 {
                return Ok(());
            }
            self.write(&piece[..read]).await?;
            if let Some(position) = &mut self.position {
                *position += u64::try_from(read).unwrap_or(u64::MAX);
            }
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.modes.lock().unwrap_or_else(PoisonError::into_inner).see(bytes);
        let mut stdout = tokio::io::stdout();
        stdout.write_all(bytes).await.map_err(CliError::output)?;
        stdout.flush().await.map_err(CliError::output)
    }
}

async fn forward(input: &mut Input, writer: &mut OwnedWriteHalf) -> Result<InputEnd, CliError> {
    input.forward(writer).await
}

/// Gives the session this terminal's size. Not for an observer, and no reason to end: whatever keeps a
/// session from it shows elsewhere.
async fn resize(session: &Session, options: &AttachOptions) {
    if options.mode == Mode::Observe {
        return;
    }
    if let Some((columns, rows)) = terminal::size() {
        let _ = tokio::time::timeout(CALL, session.resize(columns, rows)).await;
    }
}

/// Has full-screen tools draw again, also where the size is the same.
async fn redraw(session: &Session, options: &AttachOptions) {
    resize(session, options).await;
    if options.mode == Mode::Control {
        let _ = tokio::time::timeout(CALL, session.proxy().signal("SIGWINCH")).await;
    }
}

/// Stops as if the signal had not been caught, with the terminal as it was.
fn stop(raw: Option<&RawTerminal>, modes: &Mutex<Modes>) -> Result<(), CliError> {
    if let Some(raw) = raw {
        output::write(&modes.lock().unwrap_or_else(PoisonError::into_inner).to_rest())?;
        raw.suspend();
    }
    raise(Signal::SIGSTOP).map_err(|errno| CliError::Signals { source: errno.into() })
}

/// Takes the terminal again, after whatever kind of stop.
fn continued(raw: Option<&RawTerminal>, modes: &Mutex<Modes>) -> Result<(), CliError> {
    let Some(raw) = raw else { return Ok(()) };
    raw.make_raw()?;
    output::write(&modes.lock().unwrap_or_else(PoisonError::into_inner).again())
}
