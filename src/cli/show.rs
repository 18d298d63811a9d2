//! `st2-tools show`.

use super::{
    confinement, connect::Reach, control::Target, error::CliError, json, output::Output, render,
    sheet::Sheet, status::Status,
};
use crate::client::Dict;

/// Show a session: where it runs, for whom, how confined, how it ended
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
}

/// In which order a person reads a session's properties; others follow by name.
const ORDER: [&str; 22] = [
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
];

/// Shows a session.
pub(super) async fn show(args: Args, reach: &Reach, output: Output) -> Result<Status, CliError> {
    let reached = args.target.reach(reach).await?;
    let properties = reached.told(reached.session.properties().await).await?;
    output.print(|| json::object(&properties), || text(&properties))?;
    Ok(Status::SUCCESS)
}

fn text(properties: &Dict) -> String {
    let text = render::fields_but(properties, &ORDER, &["Confinement"]);
    let Some(confinement) = properties.dict("Confinement") else { return text };
    let sheet = Sheet::default()
        .with(confinement::grants(&confinement))
        .with(confinement::enforcement(&confinement))
        .text();
    if sheet.is_empty() { text } else { format!("{text}\n{sheet}") }
}
