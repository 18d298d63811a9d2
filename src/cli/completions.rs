//! `st2-tools completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Cli, error::CliError, output::write, status::Status};

/// Print the completions of this command line for a shell
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    shell: Shell,
}

/// Prints completions.
pub(super) fn completions(args: &Args) -> Result<Status, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "st2-tools", &mut script);
    write(&script)?;
    Ok(Status::SUCCESS)
}
