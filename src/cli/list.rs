//! `st2-tools list`.

use super::{
    connect::Reach, error::CliError, human, json, open_args::pair, output::Output, render,
    status::Status, table::table, tokens,
};
use crate::client::{Dict, Filter};

/// List sessions: those that run, and for a while those that ended
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only those of this tool
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,

    /// Only those in this phase: opening, running, closing or closed
    #[arg(long, value_name = "PHASE")]
    phase: Option<String>,

    /// Only those with this label; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    label: Vec<(String, String)>,
}

const HEADER: [&str; 7] = ["ID", "TOOL", "PHASE", "OWNER", "OPENED", "WORKSPACE", "COMMAND"];

/// Lists sessions.
pub(super) async fn list(args: Args, reach: &Reach, output: Output) -> Result<Status, CliError> {
    let filter =
        Filter { phase: args.phase, tool: args.tool, labels: args.label.into_iter().collect() };
    let rows = reach.bus().await?.sessions(&filter).await?;
    if filter == Filter::default() {
        tokens::forget_others(&rows);
    }
    output.print(|| json::array(&rows), || text(&rows))?;
    Ok(Status::SUCCESS)
}

fn text(rows: &[Dict]) -> String {
    if rows.is_empty() {
        return "no sessions\n".into();
    }
    let now = human::now_usec();
    let mut rows: Vec<&Dict> = rows.iter().collect();
    rows.sort_by_key(|row| row.number("CreatedUsec"));
    table(&HEADER, rows.into_iter().map(|row| cells(row, now)).collect())
}

fn cells(row: &Dict, now: u64) -> Vec<String> {
    let text = |key| row.text(key).unwrap_or("-").to_owned();
    let opened = row.number("CreatedUsec").map_or("-".into(), |usec| human::relative(usec, now));
    vec![
        text("Id"),
        text("Tool"),
        phase(row),
        owner(row, now),
        opened,
        text("Workspace"),
        human::command_summary(&row.texts("Command")),
    ]
}

fn phase(row: &Dict) -> String {
    let phase = row.text("Phase").unwrap_or("-");
    match row.dict("Outcome") {
        Some(outcome) if phase == "closed" && !outcome.is_empty() => {
            format!("closed: {}", render::outcome(&outcome))
        }
        _ if row.flag("Paused") == Some(true) => format!("{phase}, paused"),
        _ => phase.to_owned(),
    }
}

fn owner(row: &Dict, now: u64) -> String {
    if row.text("Phase") == Some("closed") {
        return "-".into();
    }
    match row.text("OwnerState") {
        Some("present") => row.text("Owner").unwrap_or("present").to_owned(),
        Some("grace") => {
            let end = row.number("GraceDeadlineUsec").map(|usec| human::relative(usec, now));
            format!("vanished, ends {}", end.unwrap_or_else(|| "soon".into()))
        }
        Some(other) => other.to_owned(),
        None => "-".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_a_person_asks_first() {
        let row = Dict::new()
            .with("Id", "a1")
            .with("Tool", "git-add")
            .with("Phase", "running")
            .with("OwnerState", "grace")
            .with("GraceDeadlineUsec", 8_000_000_u64)
            .with("CreatedUsec", 1_u64)
            .with("Workspace", "/w")
            .with("Command", vec!["git".to_owned(), "add".to_owned(), "a b".to_owned()]);
        assert_eq!(
            cells(&row, 3_000_000),
            ["a1", "git-add", "running", "vanished, ends in 5s", "2s ago", "/w", "git add 'a b'"]
        );
    }
}
