//! `st2-tools doctor`.

use serde_json::{Value, json};

use super::{error::CliError, output::Output, status::Status, table::table};
use crate::doctor::{self, Check, Diagnosis};

/// Say how well sessions are confined on this machine, why not better, and what to do
///
/// Needs neither a broker nor a bus, and changes nothing. The exit status is 1 where no tool can be
/// opened.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

const HEADER: [&str; 3] = ["CHECK", "VERDICT", "FOUND"];

/// Looks, and tells.
pub(super) async fn doctor(_: Args, output: Output) -> Result<Status, CliError> {
    let facts = doctor::gather().await.map_err(|source| CliError::Surroundings { source })?;
    let diagnosis = doctor::judge(&facts);
    output.print(|| json(&diagnosis), || text(&diagnosis))?;
    Ok(if diagnosis.tier.is_some() { Status::SUCCESS } else { Status::FAILURE })
}

/// What is absent is an empty text, as on the bus.
fn json(diagnosis: &Diagnosis) -> Value {
    let text = |option: &Option<String>| option.clone().unwrap_or_default();
    let check = |check: &Check| {
        json!({
            "name": check.name,
            "verdict": check.verdict.as_str(),
            "found": check.found,
            "cost": text(&check.cost),
            "advice": text(&check.advice),
        })
    };
    json!({
        "checks": diagnosis.checks.iter().map(check).collect::<Vec<_>>(),
        "tier": text(&diagnosis.tier),
        "summary": diagnosis.summary,
    })
}

fn text(diagnosis: &Diagnosis) -> String {
    let rows = diagnosis.checks.iter().flat_map(rows).collect();
    format!("{}\n{}.\n", table(&HEADER, rows), super::human::visible(&diagnosis.summary))
}

/// A line for what was found, one for what that costs, one for what to do.
fn rows(check: &Check) -> Vec<Vec<String>> {
    let first = [check.name, check.verdict.as_str(), &check.found].map(str::to_owned).to_vec();
    let below = |word: &str, text: &Option<String>| {
        let text = text.as_ref()?;
        Some(vec![String::new(), String::new(), format!("{word}: {text}")])
    };
    let below = [below("costs", &check.cost), below("to do", &check.advice)];
    std::iter::once(first).chain(below.into_iter().flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    fn diagnosis() -> Diagnosis {
        let check = |name, verdict, cost: Option<&str>, advice: Option<&str>| Check {
            name,
            found: "found\u{1b}".into(),
            verdict,
            cost: cost.map(str::to_owned),
            advice: advice.map(str::to_owned),
        };
        Diagnosis {
            checks: vec![
                check("kernel", Verdict::Good, None, None),
                check("landlock", Verdict::Missing, Some("all"), Some("boot another")),
            ],
            tier: None,
            summary: "no tool can be opened here: it is off".into(),
        }
    }

    #[test]
    fn what_it_costs_and_what_to_do_stand_below_what_was_found() {
        let shown = text(&diagnosis());
        assert_eq!(
            shown,
            "CHECK     VERDICT  FOUND\n\
             kernel    good     found\\u{1b}\n\
             landlock  missing  found\\u{1b}\n                   \
                                costs: all\n                   \
                                to do: boot another\n\
             \n\
             no tool can be opened here: it is off.\n"
        );
    }

    #[test]
    fn in_json_what_is_absent_is_empty() {
        let document = json(&diagnosis());
        assert_eq!(document["tier"], "");
        assert_eq!(document["checks"][0]["advice"], "");
        assert_eq!(document["checks"][1]["advice"], "boot another");
        assert_eq!(document["checks"][1]["verdict"], "missing");
    }
}
