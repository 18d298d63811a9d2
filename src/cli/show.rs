//! `st2-tools show`.

use super::{
    connect::Reach, control::Target, error::CliError, json, output::Output, render, status::Status,
};

/// Show a session: where it runs, for whom, how confined, how it ended
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
}

/// In which order a person reads a session's properties; others follow by name.
const ORDER: [&str; 23] = [
    "Id",
    "Tool",
    "Command",
    "Phase",
    "Outcome",
    "Workspace",
    "Cwd",
    "Unit",
    "Owner",
    "OwnerState",
    "GraceDeadlineUsec",
    "CreatedUsec",
    "LastActivityUsec",
    "Labels",
    "Io",
    "Columns",
    "RowsCount",
    "Attached",
    "Paused",
    "BytesIn",
    "BytesOut",
    "BytesDropped",
    "Confinement",
];

/// Shows a session.
pub(super) async fn show(args: Args, reach: &Reach, output: Output) -> Result<Status, CliError> {
    let reached = args.target.reach(reach).await?;
    let properties = reached.told(reached.session.properties().await).await?;
    output.print(|| json::object(&properties), || render::fields(&properties, &ORDER))?;
    Ok(Status::SUCCESS)
}
