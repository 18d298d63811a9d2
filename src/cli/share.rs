//! `st2-tools share`.

use serde_json::json;

use super::{connect::Reach, control::Target, error::CliError, output::Output, status::Status};
use crate::client::Mode;

/// Print a token with which others may observe a session, or control it; give it to them as --token
///
/// It is good until the session is forgotten or claimed by another. At most 16 a session.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,

    /// Let them control it as well
    #[arg(long)]
    control: bool,
}

/// Shares a session.
pub(super) async fn share(args: Args, reach: &Reach, output: Output) -> Result<Status, CliError> {
    let reached = args.target.reach(reach).await?;
    let mode = if args.control { Mode::Control } else { Mode::Observe };
    let token = reached.told(reached.session.share(mode).await).await?;
    output.print(|| json!({ "token": token.reveal() }), || format!("{}\n", token.reveal()))?;
    Ok(Status::SUCCESS)
}
