//! The program under test, run against one bus.

use std::{
    io::Write,
    process::{Command, Stdio},
};

pub use crate::ran::{DEADLINE, Ran, finish, start, wait};
use crate::{bus::Bus, fake::Fake};

/// A bus with a fake broker on it, and the program.
pub struct World {
    pub bus: Bus,
    pub fake: Fake,
}

impl World {
    /// A bus and a fake broker that owns the name.
    pub fn new() -> Self {
        let bus = Bus::start(&[]);
        let fake = Fake::serve(&bus.address);
        Self { bus, fake }
    }

    /// The program with these arguments, its whole environment known.
    pub fn command(&self, arguments: &[&str]) -> Command {
        command(&self.bus, arguments)
    }

    /// Runs it to its end with nothing on standard input.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        finish(self.command(arguments).stdin(Stdio::null()))
    }

    /// Runs it to its end with this on standard input.
    pub fn run_with(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut child = start(self.command(arguments).stdin(Stdio::piped()));
        child.stdin.take().unwrap().write_all(input).unwrap();
        wait(child)
    }
}

/// The program on a bus.
pub fn command(bus: &Bus, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_st2-tools"));
    command
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("DBUS_SESSION_BUS_ADDRESS", &bus.address)
        .env("XDG_RUNTIME_DIR", bus.place())
        .current_dir(bus.place());
    command
}
