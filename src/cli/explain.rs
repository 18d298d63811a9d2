//! `st2-tools explain`.

use super::{
    connect::Reach, error::CliError, json, open_args::OpenArgs, output::Output, render,
    status::Status,
};
use crate::client::Client;

/// Show what a tool would run and may touch, or why it is refused; opens nothing
///
/// The exit status is 1 where it is refused.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The tool
    #[arg(value_name = "TOOL")]
    tool: String,

    #[command(flatten)]
    open: OpenArgs,
}

/// In which order a person reads it; what the broker tells beyond that follows by name.
const ORDER: [&str; 12] = [
    "refusal",
    "message",
    "argv",
    "program",
    "workspace",
    "cwd",
    "environment",
    "read",
    "write",
    "execute",
    "devices",
    "network",
];

/// Explains a tool.
pub(super) async fn explain(args: Args, reach: &Reach, output: Output) -> Result<Status, CliError> {
    let options = args.open.options()?;
    let explain = async |client: &Client| client.explain(&args.tool, &options).await;
    let explanation = reach.ask(explain, |source| CliError::Open { source }).await?;
    output.print(|| json::object(&explanation), || render::fields(&explanation, &ORDER))?;
    let refused = explanation.text("refusal").is_some_and(|refusal| !refusal.is_empty());
    Ok(if refused { Status::FAILURE } else { Status::SUCCESS })
}
