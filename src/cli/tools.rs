//! `st2-tools tools`.

use super::{
    connect::Reach, error::CliError, human, json, output::Output, status::Status, table::table,
};
use crate::client::{Client, Dict};

/// List the tools that exist here, and those that are disabled and why
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

const HEADER: [&str; 5] = ["TOOL", "TITLE", "COMMAND", "ARGUMENTS", "PROFILE"];

/// Lists tools.
pub(super) async fn tools(_: Args, reach: &Reach, output: Output) -> Result<Status, CliError> {
    let rows = reach.ask(Client::tools, CliError::from).await?;
    output.print(|| json::array(&rows), || text(&rows))?;
    Ok(Status::SUCCESS)
}

fn text(rows: &[Dict]) -> String {
    let (disabled, enabled): (Vec<_>, Vec<_>) =
        rows.iter().partition(|row| row.text("error").is_some_and(|error| !error.is_empty()));
    let mut text = match enabled.is_empty() {
        true => "no tools\n".to_owned(),
        false => table(&HEADER, enabled.into_iter().map(cells).collect()),
    };
    for row in disabled {
        let value = |key| human::visible(row.text(key).unwrap_or("-"));
        text += &format!("disabled: {}: {}\n", value("name"), value("error"));
    }
    text
}

fn cells(row: &Dict) -> Vec<String> {
    let text = |key| row.text(key).unwrap_or("-").to_owned();
    let command = match row.texts("command").as_slice() {
        [] => "-".to_owned(),
        words => human::command_summary(words),
    };
    vec![text("name"), text("title"), command, text("arguments"), text("profile")]
}
