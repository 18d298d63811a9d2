//! `st2-tools write`.

use std::io::Read;

use serde_json::json;

use super::{
    connect::Reach,
    control::{Target, patiently},
    error::CliError,
    output::Output,
    status::Status,
};
use crate::client::WRITE_MAX;

/// Type text into a session, or what standard input holds; nothing is added to it
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,

    /// What is typed [default: standard input]
    #[arg(value_name = "TEXT")]
    text: Option<String>,

    /// Press Enter at the end, once the rest was taken; on pipes, end the line
    #[arg(short, long)]
    enter: bool,

    /// End the input: close standard input on pipes, type the end-of-file character in a terminal
    #[arg(long)]
    eof: bool,
}

/// Writes to a session.
pub(super) async fn write(args: Args, reach: &Reach, output: Output) -> Result<Status, CliError> {
    let reached = args.target.reach(reach).await?;
    let session = &reached.session;
    let mut accepted = 0;
    let mut source = Source::new(args.text);
    while let Some(piece) = source.next()? {
        let written = patiently(async || session.write(&piece).await).await;
        accepted = reached.told(written).await?;
    }
    if args.enter {
        reached.press_enter().await?;
    }
    // Also where nothing is typed: whether it could be is worth knowing.
    if args.enter || accepted == 0 {
        accepted = reached.told(session.write(b"").await).await?;
    }
    if args.eof {
        accepted = reached.told(session.write_last(b"").await).await?;
    }
    output.print(|| json!({ "accepted": accepted }), String::new)?;
    Ok(Status::SUCCESS)
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
