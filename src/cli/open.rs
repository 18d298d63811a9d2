//! `st2-tools open`.

use std::time::Duration;

use serde_json::json;

use super::{
    connect::Reach, duration::duration, error::CliError, error::say, json, open_args::OpenArgs,
    output::Output, status::Status, tokens,
};
use crate::client::{Dict, Filter, Lease, Session};

/// Open a tool and leave it running; prints its id, unit, path and token
///
/// The session lives as long as its token lease: --ttl without a use, each use of the token renewing it.
/// The token is kept in $XDG_RUNTIME_DIR/st2-tools/tokens, readable by you alone, so that `write`,
/// `attach`, `close` and `kill` find it. All programs of one user that are not confined are one trust
/// domain: the token guards against mistakes between them.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The tool [default: `command` with ARGV, `shell` without]
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,

    /// How long it lives without a use of its token [default: the broker's]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    ttl: Option<Duration>,

    /// Columns of its terminal [default: 80]
    #[arg(long, value_name = "N")]
    columns: Option<u16>,

    /// Rows of its terminal [default: 24]
    #[arg(long, value_name = "N")]
    rows: Option<u16>,

    #[command(flatten)]
    open: OpenArgs,
}

/// Opens a tool under a token lease and keeps the token.
pub(super) async fn open(args: Args, reach: &Reach, output: Output) -> Result<Status, CliError> {
    let tool = args.open.tool(args.tool.as_deref());
    let mut options = args.open.options()?;
    options.lease = Lease::Token { ttl: args.ttl };
    options.size = match (args.columns, args.rows) {
        (None, None) => None,
        (columns, rows) => Some((columns.unwrap_or(80), rows.unwrap_or(24))),
    };
    let client = reach.bus().await?;
    let opened = client.open(&tool, &options).await.map_err(|source| CliError::Open { source })?;
    if let Err(error) = tokens::keep(opened.session.id(), opened.token.reveal()) {
        // The session is open and its token about to be printed: that is worth more than an error.
        say(&error.line());
    }
    if let Ok(rows) = client.sessions(&Filter::default()).await {
        tokens::forget_others(&rows);
    }
    output.print(
        || document(&opened.session, &opened.info),
        || text(&opened.session, &opened.info),
    )?;
    Ok(Status::SUCCESS)
}

fn document(session: &Session, info: &Dict) -> serde_json::Value {
    let mut document = json::object(info);
    document["path"] = json!(session.id().path().as_str());
    document["id"] = json!(session.id().as_str());
    document
}

fn text(session: &Session, info: &Dict) -> String {
    let value = |key| info.text(key).unwrap_or("-");
    format!(
        "id     {}\nunit   {}\npath   {}\ntoken  {}\n",
        session.id(),
        value("unit"),
        session.id().path().as_str(),
        value("token"),
    )
}
