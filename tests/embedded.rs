//! `st2-tools run` and `st2-tools mcp` with no bus at all: a broker of its own, and the `portable` host. As a user and as
//! root, where control groups can be made and where not.

#![allow(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

#[path = "embedded/agents.rs"]
mod agents;
#[path = "embedded/confinement.rs"]
mod confinement;
#[path = "embedded/ending.rs"]
mod ending;
#[path = "embedded/forbidden.rs"]
mod forbidden;
#[path = "embedded/interactive.rs"]
mod interactive;
#[path = "embedded/place.rs"]
mod place;
#[path = "support/program.rs"]
mod program;
#[path = "embedded/statuses.rs"]
mod statuses;
mod support;
#[path = "support/terminal.rs"]
mod terminal;
