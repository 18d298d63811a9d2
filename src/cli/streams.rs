//! A session on pipes, on our own standard streams: each of its outputs on the one of its name.

use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::{
    bridge::BridgeEnd,
    error::{CliError, say},
    input::Input,
    signals::{Asked, Signals},
};
use crate::client::{ClientError, Dict, READ_MAX, ReadOptions, Refusal, Session, Stream};

/// How long one question waits for output.
const POLL: Duration = Duration::from_secs(60);
/// How often it is tried to write to a tool that does not read: nobody tells that it does again.
const RETRY: Duration = Duration::from_millis(10);

/// Copies until the session ends or we are told to end; `input` is closed with ours.
pub(super) async fn carry(session: &Session, input: Option<Input>) -> Result<BridgeEnd, CliError> {
    let mut signals = Signals::subscribe(false)?;
    let mut fed = std::pin::pin!(feed(session, input));
    let mut shown = std::pin::pin!(show(session));
    let mut feeding = true;
    loop {
        tokio::select! {
            ended = &mut shown => return ended.map(BridgeEnd::Ended),
            end = &mut fed, if feeding => {
                end?;
                feeding = false;
            }
            asked = signals.next() => if let Asked::End(signal) = asked {
                return Ok(BridgeEnd::Signaled(signal));
            },
        }
    }
}

/// Shows both outputs to their ends; gives the outcome that follows them.
async fn show(session: &Session) -> Result<Dict, CliError> {
    let output = copy(session, Stream::Output, tokio::io::stdout());
    let error = copy(session, Stream::Stderr, tokio::io::stderr());
    let (skipped, more) = tokio::try_join!(output, error)?;
    let skipped = skipped + more;
    if skipped > 0 {
        say(&format!("{skipped} bytes of output came too fast and were skipped"));
    }
    session.wait().await.map_err(|error| failed(session, error))
}

/// Gives how many bytes were gone before they could be shown.
async fn copy(
    session: &Session,
    stream: Stream,
    mut shown: impl AsyncWrite + Unpin,
) -> Result<u64, CliError> {
    let options = ReadOptions { wait: Some(POLL), stream: Some(stream) };
    let (mut cursor, mut skipped) = (0, 0);
    loop {
        let read = session.read(cursor, READ_MAX, &options).await;
        let chunk = read.map_err(|error| failed(session, error))?;
        skipped += chunk.begin.saturating_sub(cursor);
        cursor = chunk.next;
        shown.write_all(&chunk.data).await.map_err(CliError::output)?;
        shown.flush().await.map_err(CliError::output)?;
        if chunk.eof {
            return Ok(skipped);
        }
    }
}

/// Writes what we are given, and its end. A tool that reads no more has had its input.
async fn feed(session: &Session, input: Option<Input>) -> Result<(), CliError> {
    let Some(mut input) = input else { return Ok(()) };
    loop {
        let piece = input.next().await?;
        let written = match &piece {
            Some(piece) => write(session, piece).await,
            None => session.write_last(b"").await.map(drop),
        };
        match written {
            Ok(()) if piece.is_some() => {}
            Ok(()) => return Ok(()),
            Err(error) if is_end(&error) => return Ok(()),
            Err(error) => return Err(failed(session, error)),
        }
    }
}

async fn write(session: &Session, piece: &[u8]) -> Result<(), ClientError> {
    loop {
        match session.write(piece).await {
            Err(error) if error.refusal() == Some(Refusal::InputFull) => {
                tokio::time::sleep(RETRY).await;
            }
            result => return result.map(drop),
        }
    }
}

fn is_end(error: &ClientError) -> bool {
    matches!(error.refusal(), Some(Refusal::NotPermitted | Refusal::Closed))
}

fn failed(session: &Session, source: ClientError) -> CliError {
    CliError::Session { id: session.id().clone(), unit: None, source }
}
