//! `st2-tools kill`.

use super::{
    connect::Reach, control::Target, error::CliError, json, output::Output, render, status::Status,
};

/// End a session at once; prints its outcome
///
/// A session that is over already is no failure.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
}

/// Kills a session.
pub(super) async fn kill(args: Args, reach: &Reach, output: Output) -> Result<Status, CliError> {
    let reached = args.target.reach(reach).await?;
    let outcome = reached.ended(reached.session.kill().await).await?;
    reached.over();
    output.print(|| json::object(&outcome), || render::outcome(&outcome) + "\n")?;
    Ok(Status::SUCCESS)
}
