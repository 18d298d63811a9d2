//! The arguments of each tool: what the schema tells is what the parser takes, and what it does not know it refuses.
//!
//! The comments on the fields are what an agent reads.

mod bounds;
mod exec;
mod process;
mod screen;
mod session;

pub use self::{
    bounds::{Bounded, Few, Text, Whole},
    exec::{Command, Exec},
    process::{
        Kill, List, Log, Paste, Poll, Process, Remove, SendKeys, Submit, Write,
        schema as process_schema,
    },
    screen::Screen,
    session::{Close, Inspect, Language, Open, Read, Status, WriteSession},
};

use crate::client::PASTE_MAX;

/// The longest path, name or id, bytes: PATH_MAX.
pub const NAME_MAX: usize = 4096;
/// The longest label, bytes, as on the bus.
pub const LABEL_MAX: usize = 256;
/// The longest text of one input, characters.
pub const INPUT_MAX: usize = 262_144;
/// The longest argument of a command, bytes. All of them and the environment together must fit the broker's
/// `argv_env_bytes`, which is no larger.
pub const ARGUMENT_MAX: usize = 131_072;

/// A path, a name or an id.
pub type Name = Text<NAME_MAX>;
/// A label.
pub type Label = Text<LABEL_MAX>;
/// What is typed.
pub type Input = Bounded<INPUT_MAX>;
/// What is pasted.
pub type Pasted = Text<PASTE_MAX>;
/// An argument of a command, or a script.
pub type Argument = Text<ARGUMENT_MAX>;

/// A call that names a session and a task, of which it can only mean one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("sessionId and task (or subtask) are both given: a session is meant, or all of a task")]
pub struct TwoTargets;

fn one_target(
    session: Option<&Name>,
    task: Option<&Label>,
    subtask: Option<&Label>,
) -> Result<(), TwoTargets> {
    if session.is_some() && (task.is_some() || subtask.is_some()) {
        return Err(TwoTargets);
    }
    Ok(())
}
