//! `st2-tools write`.

use std::{io::Read, time::Duration};

use serde_json::json;

use super::{connect::Reach, control::Target, error::CliError, output::Output, status::Status};
use crate::client::{ClientError, Refusal, Session, WRITE_MAX};

/// Type text into a session, or what standard input holds; nothing is added to it
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,

    /// What is typed [default: standard input]
    #[arg(value_name = "TEXT")]
    text: Option<String>,

    /// Press Enter at the end
    #[arg(short, long)]
    enter: bool,
}

/// How long a session that does not read its input is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is tried meanwhile.
const RETRY: Duration = Duration::from_millis(50);

/// Writes to a session.
pub(super) async fn write(args: Args, reach: &Reach, output: Output) -> Result<Status, CliError> {
    let reached = args.target.reach(reach).await?;
    let session = &reached.session;
    let mut accepted = 0;
    let mut source = Source::new(args.text);
    while let Some(piece) = source.next()? {
        accepted = reached.told(patiently(session, &piece).await).await?;
    }
    // Also where nothing is typed: whether it could be is worth knowing.
    let last: &[u8] = if args.enter { b"\r" } else { b"" };
    if args.enter || accepted == 0 {
        accepted = reached.told(patiently(session, last).await).await?;
    }
    output.print(|| json!({ "accepted": accepted }), String::new)?;
    Ok(Status::SUCCESS)
}

/// Writes one piece, as soon as the session has room for it.
async fn patiently(session: &Session, piece: &[u8]) -> Result<u64, ClientError> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        match session.write(piece).await {
            Err(error)
                if error.refusal() == Some(Refusal::InputFull)
                    && tokio::time::Instant::now() < deadline =>
            {
                tokio::time::sleep(RETRY).await;
            }
            result => return result,
        }
    }
}

/// What is typed, in pieces that one call may carry.
enum Source {
    Text(Vec<u8>),
    Stdin,
}

impl Source {
    fn new(text: Option<String>) -> Self {
        text.map_or(Self::Stdin, |text| Self::Text(text.into_bytes()))
    }

    fn next(&mut self) -> Result<Option<Vec<u8>>, CliError> {
        let piece = match self {
            Self::Text(text) => text.drain(..text.len().min(WRITE_MAX)).collect(),
            Self::Stdin => read_piece().map_err(|source| CliError::Input { source })?,
        };
        Ok(Some(piece).filter(|piece| !piece.is_empty()))
    }
}

fn read_piece() -> std::io::Result<Vec<u8>> {
    let mut piece = vec![0; WRITE_MAX];
    let read = std::io::stdin().lock().read(&mut piece)?;
    piece.truncate(read);
    Ok(piece)
}
