//! `st2-tools paste`.

use std::io::{self, Read};

use clap::ValueEnum;
use serde_json::json;

use super::{
    connect::Reach,
    control::{Target, patiently},
    error::CliError,
    output::Output,
    status::Status,
};
use crate::client::{self, WRITE_MAX};

/// Paste a text into a session, or what standard input holds: at most 64 KiB, whole or not at all
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,

    /// What is pasted [default: standard input]
    #[arg(value_name = "TEXT")]
    text: Option<String>,

    /// Whether the program is told that it is a paste: `auto` is where it has asked for that
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    bracketed: Bracketed,

    /// Press Enter afterwards, once the paste was taken
    #[arg(short, long)]
    enter: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Bracketed {
    Auto,
    On,
    Off,
}

impl From<Bracketed> for client::Bracketed {
    fn from(bracketed: Bracketed) -> Self {
        match bracketed {
            Bracketed::Auto => Self::Auto,
            Bracketed::On => Self::On,
            Bracketed::Off => Self::Off,
        }
    }
}

/// Pastes a text.
pub(super) async fn paste(args: Args, reach: &Reach, output: Output) -> Result<Status, CliError> {
    let text = args.text.map_or_else(standard_input, Ok)?;
    let reached = args.target.reach(reach).await?;
    let pasted =
        patiently(async || reached.session.paste(&text, args.bracketed.into()).await).await;
    reached.told(pasted).await?;
    if args.enter {
        reached.press_enter().await?;
    }
    output.print(|| json!({ "pasted": text.len() }), String::new)?;
    Ok(Status::SUCCESS)
}

/// All of standard input, as far as a paste may go: one byte more is for the broker to refuse.
fn standard_input() -> Result<String, CliError> {
    text(std::io::stdin().lock()).map_err(|source| CliError::Input { source })
}

fn text(input: impl Read) -> io::Result<String> {
    let mut text = Vec::new();
    input.take(WRITE_MAX as u64 + 1).read_to_end(&mut text)?;
    // What is too long may have been cut inside a character: it is its length that is refused.
    if text.len() > WRITE_MAX {
        return Ok(String::from_utf8_lossy(&text).into_owned());
    }
    String::from_utf8(text)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_is_refused_for_its_length() {
        let bytes = "漢".repeat(WRITE_MAX);
        assert!(text(bytes.as_bytes()).unwrap().len() > WRITE_MAX);
        assert_eq!(text("漢".as_bytes()).unwrap(), "漢");
        assert_eq!(text(&[0xe6, 0xbc][..]).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
