//! The arguments of each tool: what the schema tells is what the parser takes, and what it does not know it refuses.
//!
//! The comments on the fields are what an agent reads.

mod bounds;
mod exec;
mod process;
mod screen;
mod session;

pub use self::{
    bounds::{Bounded, Few, Whole},
    exec::{Command, Exec},
    process::{
        Kill, List, Log, Paste, Poll, Process, Remove, SendKeys, Submit, Write,
        schema as process_schema,
    },
    screen::Screen,
    session::{Close, Inspect, Language, Open, Read, Status, WriteSession},
};

/// The longest path, name or id.
pub const NAME_MAX: usize = 4096;
/// The longest label, as on the bus.
pub const LABEL_MAX: usize = 256;
/// The longest text of one input, characters.
pub const INPUT_MAX: usize = 262_144;

/// A path, a name or an id.
pub type Name = Bounded<NAME_MAX>;
/// A label.
pub type Label = Bounded<LABEL_MAX>;
/// What is typed.
pub type Input = Bounded<INPUT_MAX>;
