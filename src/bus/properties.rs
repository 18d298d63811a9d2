//! The properties of a session that change, as the bus shows them and as their changes are announced.

use zbus::Variant;

use super::dict;
use crate::engine::State;

/// Each changing and announced property with its value.
#[must_use]
pub fn changing(state: &State) -> Vec<(&'static str, Variant<'static>)> {
    let view = &state.view;
    vec![
        ("Phase", view.phase.into()),
        ("Activity", activity(state).into()),
        ("Owner", view.owner.clone().into()),
        ("OwnerState", view.owner_state.as_str().into()),
        ("GraceDeadlineUsec", view.grace_deadline_usec.into()),
        ("Columns", state.size.columns.into()),
        ("RowsCount", state.size.rows.into()),
        ("Title", state.title.clone().into()),
        ("Paused", state.paused.into()),
        ("Attached", state.attached.into()),
        ("Direct", state.held.into()),
        ("Outcome", dict::outcome(view.outcome.as_ref()).into()),
    ]
}

/// The word for whether the tool writes.
#[must_use]
pub fn activity(state: &State) -> &'static str {
    if state.busy { "busy" } else { "idle" }
}

/// Each constant property with its value.
#[must_use]
pub fn constant(state: &State) -> Vec<(&'static str, Variant<'static>)> {
    let facts = &state.view.facts;
    let ran = state.view.ran.as_ref();
    let confinement = ran.map(|ran| dict::confinement(&ran.confinement)).unwrap_or_default();
    vec![
        ("Id", facts.id.as_str().to_owned().into()),
        ("Tool", facts.tool.as_str().to_owned().into()),
        ("Command", dict::texts(&facts.command).into()),
        ("Workspace", dict::text(&facts.workspace).into()),
        ("Cwd", dict::text(&facts.cwd).into()),
        ("Unit", facts.unit.as_str().to_owned().into()),
        ("Io", state.io.as_str().into()),
        ("CreatedUsec", facts.created_usec.into()),
        ("Labels", facts.labels.clone().into()),
        ("Confinement", confinement.into()),
    ]
}

/// What changed between two states.
#[must_use]
pub fn changes(before: &State, after: &State) -> Vec<(&'static str, Variant<'static>)> {
    let before = changing(before);
    changing(after)
        .into_iter()
        .zip(before)
        .filter(|((_, after), (_, before))| after != before)
        .map(|(after, _)| after)
        .collect()
}
