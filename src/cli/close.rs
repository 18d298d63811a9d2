//! `st2-tools close`.

use std::time::Duration;

use super::{
    connect::Reach, control::Target, duration::duration, error::CliError, json, output::Output,
    render, status::Status,
};

/// End a session gently: HUP, TERM, then KILL; prints its outcome
///
/// A session that is over already is no failure.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,

    /// Kill it after so long [default and longest: the tool's]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
}

/// Closes a session.
pub(super) async fn close(args: Args, reach: &Reach, output: Output) -> Result<Status, CliError> {
    let reached = args.target.reach(reach).await?;
    let outcome = reached.ended(reached.session.close(args.timeout).await).await?;
    reached.over();
    output.print(|| json::object(&outcome), || render::outcome(&outcome) + "\n")?;
    Ok(Status::SUCCESS)
}
