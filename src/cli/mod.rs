//! The command `st2-tools`: one file a subcommand, and the terminal between a person and a session.
//!
//! Exit statuses: 0; 1 a failure; 2 a command line that cannot be understood. `run` and `attach` give
//! the tool's own status, or 128 + N where signal N ended it; 125 where st2-tools itself failed, 126
//! where the tool could not be executed, 127 where it was not found. 141 (128 + SIGPIPE) says that
//! whoever read the output is gone.
#![forbid(unsafe_code)]

use std::{io, process::ExitCode};

use clap::{Parser, Subcommand};
use tokio::runtime::{self, Runtime};

pub mod embedded;

mod attach;
mod bridge;
mod close;
mod completions;
mod confinement;
mod connect;
mod control;
mod detach;
mod doctor;
mod duration;
mod error;
mod events;
mod explain;
mod gaps;
mod human;
mod input;
mod json;
mod keys;
mod kill;
mod list;
mod mcp;
mod modes;
mod open;
mod open_args;
mod output;
mod paste;
mod read;
mod render;
mod run;
mod share;
mod sheet;
mod show;
mod signals;
mod status;
mod streams;
mod table;
mod terminal;
mod tokens;
mod tools;
mod write;

use self::{connect::Reach, embedded::Embedded, error::CliError, output::Output, status::Status};

/// Run short-lived interactive tools in a workspace: each on a terminal of its own, confined, and gone
/// when its owner is gone.
#[derive(Debug, Parser)]
#[command(name = "st2-tools", version, max_term_width = 100, after_help = EXIT_STATUSES)]
struct Cli {
    /// One JSON document instead of text; keys are those of the bus
    #[arg(long, global = true, display_order = 900)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

const EXIT_STATUSES: &str = "\
Exit status: 0; 1 a failure; 2 a command line that cannot be understood.
`run` and `attach`: the tool's own, or 128+N where signal N ended it;
125 where st2-tools itself failed; 126 where the tool could not be executed;
127 where it was not found.";

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    Open(open::Args),
    List(list::Args),
    Show(show::Args),
    Attach(attach::Args),
    Read(read::Args),
    Write(write::Args),
    Keys(keys::Args),
    Paste(paste::Args),
    Share(share::Args),
    Close(close::Args),
    Kill(kill::Args),
    Tools(tools::Args),
    Explain(explain::Args),
    Mcp(mcp::Args),
    Events(events::Args),
    Doctor(doctor::Args),
    Completions(completions::Args),
}

/// Runs the command line of this program; `embedded` is the broker that `run`, `mcp`, `tools` and `explain` fall back to.
#[must_use]
pub fn main(embedded: Option<Embedded>) -> ExitCode {
    let cli = Cli::parse();
    let runtime = match cli.command.runtime() {
        Ok(runtime) => runtime,
        Err(source) => return report(&CliError::Runtime { source }, Status::FAILURE),
    };
    let failure = cli.command.failure();
    let result = runtime.block_on(perform(cli, embedded));
    // A read of the terminal may be pending for ever: it is not waited for.
    runtime.shutdown_background();
    match result {
        Ok(status) => status.into(),
        Err(error) => report(&error, error.status(failure)),
    }
}

async fn perform(cli: Cli, embedded: Option<Embedded>) -> Result<Status, CliError> {
    let reach = Reach { embedded };
    let output = Output { json: cli.json };
    match cli.command {
        Command::Run(args) => run::run(args, &reach, output).await,
        Command::Open(args) => open::open(args, &reach, output).await,
        Command::List(args) => list::list(args, &reach, output).await,
        Command::Show(args) => show::show(args, &reach, output).await,
        Command::Attach(args) => attach::attach(args, &reach, output).await,
        Command::Read(args) => read::read(args, &reach, output).await,
        Command::Write(args) => write::write(args, &reach, output).await,
        Command::Keys(args) => keys::keys(args, &reach, output).await,
        Command::Paste(args) => paste::paste(args, &reach, output).await,
        Command::Share(args) => share::share(args, &reach, output).await,
        Command::Close(args) => close::close(args, &reach, output).await,
        Command::Kill(args) => kill::kill(args, &reach, output).await,
        Command::Tools(args) => tools::tools(args, &reach, output).await,
        Command::Explain(args) => explain::explain(args, &reach, output).await,
        Command::Mcp(args) => mcp::mcp(args, &reach).await,
        Command::Events(args) => events::events(args, &reach, output).await,
        Command::Doctor(args) => doctor::doctor(args, output).await,
        Command::Completions(args) => completions::completions(&args),
    }
}

impl Command {
    /// What it runs on. `mcp` has one thread: calls begin in the order in which they arrive.
    fn runtime(&self) -> io::Result<Runtime> {
        match self {
            Self::Mcp(_) => runtime::Builder::new_current_thread().enable_all().build(),
            _ => Runtime::new(),
        }
    }

    /// The status of a failure of st2-tools itself.
    fn failure(&self) -> Status {
        match self {
            Self::Run(_) | Self::Attach(_) => Status::OURS,
            _ => Status::FAILURE,
        }
    }
}

fn report(error: &CliError, status: Status) -> ExitCode {
    if !error.is_silent() {
        error::say(&error.line());
    }
    status.into()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_fits_a_terminal_of_80_columns() {
        let mut all = Cli::command().term_width(80);
        all.build();
        let each = all.get_subcommands().cloned().collect::<Vec<_>>();
        for mut command in std::iter::once(all).chain(each) {
            for help in [command.render_help(), command.render_long_help()] {
                for line in help.to_string().lines() {
                    assert!(line.chars().count() <= 80, "{}: {line:?}", command.get_name());
                }
            }
        }
    }
}
