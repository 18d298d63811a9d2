//! The command.

use std::process::ExitCode;

use st2_tools::{cli, daemon};

fn main() -> ExitCode {
    cli::main(Some(|stream, ready| {
        Box::pin(async move { Ok(daemon::serve_peer(stream, ready).await?) })
    }))
}
