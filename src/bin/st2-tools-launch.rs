//! The launcher: receives its specification, takes the terminal, waits at the gate, confines itself,
//! becomes the tool. Or says whether a root of a tool's own can be made here.

use std::process::ExitCode;

use st2_tools::launch::{mounts::probe, run};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == probe::OPTION) {
        return probe::run();
    }
    run::run()
}
