//! Rows and answers of the manager.

use zbus::{DBusError, Variant};

use super::{
    Error,
    dict::{self, Dict},
    properties, session_path,
};
use crate::{
    broker::{
        effect::OpenFailure,
        events::{Row, What},
        outcome::Ending,
    },
    engine::State,
    policy::{
        catalogue::ToolRow,
        explain::{Explanation, Facts},
    },
};

/// The answer of `Open`.
#[must_use]
pub fn info(state: &State, token: String, reused: bool) -> Dict {
    let facts = &state.view.facts;
    let mut info = Dict::from([
        ("id", facts.id.as_str().to_owned().into()),
        ("unit", facts.unit.as_str().to_owned().into()),
        ("token", token.into()),
        ("reused", reused.into()),
        ("io", state.io.as_str().into()),
        ("columns", state.size.columns.into()),
        ("rows", state.size.rows.into()),
    ]);
    if state.fell_back {
        info.insert("io_fallback", true.into());
    }
    if let Some(ran) = &state.view.ran {
        info.insert("pid", ran.pid.into());
        info.insert("confinement", dict::confinement(&ran.confinement).into());
    }
    info
}

/// A row of `ListSessions`.
#[must_use]
pub fn session(state: &State) -> Dict {
    let mut row = Dict::from([("path", session_path(&state.view.facts.id).into_inner().into())]);
    row.extend(properties::constant(state));
    row.extend(properties::changing(state));
    row
}

/// A row of `ListEvents`.
#[must_use]
pub fn event(row: Row) -> Dict {
    let mut dict = Dict::from([
        ("seq", row.seq.into()),
        ("at_usec", row.at_usec.into()),
        ("kind", row.what.as_str().into()),
        ("session", row.session.as_str().to_owned().into()),
        ("tool", row.tool.as_str().to_owned().into()),
        ("labels", row.labels.into()),
    ]);
    match &row.what {
        What::Exited(ending, reason) | What::Closed(ending, reason) => {
            dict.extend(end(ending, reason.as_str()));
        }
        What::Failed(OpenFailure::Launch(failure)) => {
            dict.extend(end(&Ending::Failed(failure.clone()), "launch-failed"));
        }
        What::Failed(OpenFailure::Ended(reason)) => {
            dict.insert("reason", reason.as_str().into());
        }
        What::Starting | What::Started | What::Reused | What::Busy | What::Idle => {}
    }
    dict
}

/// An end as an event tells it: `kind` is the event's own.
fn end(ending: &Ending, reason: &'static str) -> Vec<(&'static str, Variant<'static>)> {
    let mut entries = dict::ending(ending);
    entries.iter_mut().filter(|(key, _)| *key == "kind").for_each(|entry| entry.0 = "ended");
    entries.push(("reason", reason.into()));
    entries
}

/// A row of `ListTools`.
#[must_use]
pub fn tool(row: ToolRow) -> Dict {
    Dict::from([
        ("name", row.name.into()),
        ("title", row.title.into()),
        ("command", row.command.into()),
        ("arguments", row.arguments.into()),
        ("io", row.io.into()),
        ("profile", row.profile.into()),
        ("agent", row.agent.into()),
        ("prompt", row.prompt.into()),
        ("source", row.source.into()),
        ("error", row.error.into()),
    ])
}

/// The answer of `Explain`.
#[must_use]
pub fn explanation(explanation: Explanation) -> Dict {
    match explanation {
        Explanation::Granted(facts) => granted(*facts),
        Explanation::Refused(refusal) => {
            let error = Error::from(refusal);
            let message = error.description().unwrap_or_default().to_owned();
            Dict::from([("refusal", error.name().to_string().into()), ("message", message.into())])
        }
    }
}

fn granted(facts: Facts) -> Dict {
    let gaps: Vec<&str> = facts.gaps.iter().map(|gap| gap.as_str()).collect();
    let (columns, rows) = facts.size;
    let (profiles, files): (Vec<String>, Vec<String>) = facts.profiles.into_iter().unzip();
    Dict::from([
        ("title", facts.title.into()),
        ("source", facts.source.into()),
        ("profiles", profiles.into()),
        ("profile_sources", files.into()),
        ("settings", facts.settings.unwrap_or_default().into()),
        ("command_source", facts.command_source.into()),
        ("argv", facts.argv.into()),
        ("program", facts.program.unwrap_or_default().into()),
        ("cwd", facts.cwd.into()),
        ("workspace", facts.workspace.into()),
        ("environment", facts.environment.into()),
        ("read", facts.read.into()),
        ("write", facts.write.into()),
        ("execute", facts.execute.into()),
        ("devices", facts.devices.into()),
        ("protect", facts.protect.into()),
        ("network", facts.network.into()),
        ("sockets", facts.sockets.into()),
        ("tier", facts.tier.as_str().into()),
        ("landlock_abi", facts.landlock_abi.into()),
        ("gaps", gaps.into()),
        ("grace_ms", facts.grace_ms.into()),
        ("timeout_ms", facts.timeout_ms.into()),
        ("silence_timeout_ms", facts.silence_timeout_ms.into()),
        ("stop_timeout_ms", facts.stop_timeout_ms.into()),
        ("memory_max", facts.memory_max.into()),
        ("tasks_max", facts.tasks_max.into()),
        ("ring_bytes", facts.ring_bytes.into()),
        ("direct", facts.direct.into()),
        ("io", facts.io.as_str().into()),
        ("io_fallback", facts.io_fallback.into()),
        ("stdin", if facts.input { "open" } else { "closed" }.into()),
        ("columns", columns.into()),
        ("rows", rows.into()),
    ])
}
