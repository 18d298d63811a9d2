//! `st2-tools events`.

use std::time::Duration;

use super::{
    connect::Reach,
    error::CliError,
    human::{self, visible},
    json,
    output::{self, Output},
    status::Status,
};
use crate::client::Dict;

/// List what happened to sessions: opened, busy, idle, ended; with --json one document a line
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Go on listing as it happens
    #[arg(short, long)]
    follow: bool,

    /// Only what came after the event of this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,
}

/// Events asked for at once.
const PAGE: u32 = 256;
/// How often it is asked for more: not every event has a signal that tells of it.
const LOOK: Duration = Duration::from_millis(250);

/// Lists events.
pub(super) async fn events(args: Args, reach: &Reach, output: Output) -> Result<Status, CliError> {
    let client = reach.bus().await?;
    let mut after = args.after;
    loop {
        let page = client.list_events(after, PAGE).await?;
        let lines: String = page.rows.iter().map(|row| line(row, output.json)).collect();
        output::write(lines.as_bytes())?;
        let is_last = page.next == after;
        after = page.next;
        match (is_last, args.follow) {
            (true, true) => tokio::time::sleep(LOOK).await,
            (true, false) => return Ok(Status::SUCCESS),
            (false, _) => {}
        }
    }
}

fn line(row: &Dict, as_json: bool) -> String {
    if as_json {
        return format!("{}\n", json::object(row));
    }
    let text = |key| visible(row.text(key).unwrap_or("-"));
    let when = row.number("at_usec").map(|at| human::relative(at, human::now_usec()));
    let mut words = vec![
        row.number("seq").unwrap_or_default().to_string(),
        when.unwrap_or_default(),
        text("kind"),
        text("session"),
        text("tool"),
    ];
    let labels = row.pairs("labels");
    words.extend(labels.iter().map(|(name, value)| visible(&format!("{name}={value}"))));
    words.extend(ended(row));
    words.join("  ") + "\n"
}

/// How a session ended, where the event tells.
fn ended(row: &Dict) -> Option<String> {
    let reason = visible(row.text("reason")?);
    Some(match row.text("ended") {
        Some("exited") => format!("exit {} ({reason})", row.signed("code").unwrap_or_default()),
        Some("signaled") => format!("{} ({reason})", visible(row.text("signal").unwrap_or("-"))),
        Some("failed") => format!("{} ({reason})", visible(row.text("message").unwrap_or("-"))),
        _ => format!("({reason})"),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_line_tells_who_it_is_of_and_how_it_ended() {
        let row = Dict::new()
            .with("seq", 7_u64)
            .with("at_usec", 0_u64)
            .with("kind", "session-exited")
            .with("session", "a1")
            .with("tool", "command")
            .with("labels", BTreeMap::from([("task".to_owned(), "t\u{1b}1".to_owned())]))
            .with("ended", "signaled")
            .with("signal", "SIGKILL")
            .with("reason", "silence-timeout");
        let shown = line(&row, false);
        assert!(shown.starts_with("7  "), "{shown:?}");
        let rest = "ago  session-exited  a1  command  task=t\\u{1b}1  SIGKILL (silence-timeout)\n";
        assert!(shown.ends_with(rest), "{shown:?}");
        let parsed: serde_json::Value = serde_json::from_str(&line(&row, true)).unwrap();
        assert_eq!((&parsed["seq"], line(&row, true).lines().count()), (&7.into(), 1));
    }
}
