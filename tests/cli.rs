//! The command against a fake broker on a private bus: what the real broker cannot be made to do at will
//! (odd ends, cut streams, a broker that vanishes), and exactly what reaches the bus.
#![allow(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

#[path = "cli/agent.rs"]
mod agent;
#[path = "cli/bus.rs"]
mod bus;
#[path = "cli/fake.rs"]
mod fake;
#[path = "cli/play.rs"]
mod play;
#[path = "cli/program.rs"]
mod program;
#[path = "support/program.rs"]
mod ran;
#[path = "cli/run.rs"]
mod run;
#[path = "support/terminal.rs"]
mod screen;
#[path = "cli/session.rs"]
mod session;
#[path = "cli/terminal.rs"]
mod terminal;
#[path = "cli/typing.rs"]
mod typing;
