//! The program that tests run as the tool: says what it finds, or tries one way out and says how
//! that went.
//!
//! `facts` prints one line of JSON. `try NAME ARGUMENTS` prints `ok`, or `errno NUMBER` of the call
//! that was refused; `batch FILE` tries many. `hold`, `escape` and `comet` leave processes behind, each announced as `pid
//! NUMBER`; `treasure` is one with something worth stealing in its memory, and `shared` has what else
//! there is to steal. `leave KIND` leaves one process behind, and stays. `client` is none of these: it opens a session.

use std::{io, process::ExitCode};

mod attempts;
mod batch;
mod client;
mod facts;
mod remain;
mod shared;

fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into());
    let arguments: Vec<String> = arguments.collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["facts", ..] => println!("{}", facts::facts()),
        ["try", name, ref arguments @ ..] => {
            println!("{}", verdict(attempts::run(name, arguments)))
        }
        ["batch", file] => batch::run(file),
        ["shared", ref words @ ..] => println!("{}", shared::run(words)),
        ["leave", kind] => remain::leave_and_hold(kind),
        ["treasure"] => remain::treasure(),
        ["hold"] => remain::hold(),
        ["escape"] => remain::escape(),
        ["escape-and-hold"] => {
            remain::escape();
            remain::hold()
        }
        ["client", rounds, tool, workspace, ref argv @ ..] => {
            client::run(rounds, tool, workspace, argv)
        }
        ["comet"] => remain::leave_comet(),
        ["exit", code] => return ExitCode::from(code.parse::<u8>().expect("a code")),
        ["die", signal] => remain::die(signal.parse().expect("a signal")),
        _ => panic!("unknown arguments {arguments:?}"),
    }
    ExitCode::SUCCESS
}

fn verdict(attempt: io::Result<()>) -> String {
    match attempt.map_err(|error| error.raw_os_error()) {
        Ok(()) => "ok".to_owned(),
        Err(Some(errno)) => format!("errno {errno}"),
        Err(None) => "script failed".to_owned(),
    }
}
