//! The broker: owns `org.st2.Tools` on the user bus until it is told to stop.

use std::process::ExitCode;

use clap::Parser;
use st2_tools::daemon;

/// The session broker of st2-tools: owns org.st2.Tools on the user bus.
///
/// Started by the user's service manager or by the bus; by hand only for a try. Logs to the journal, or to standard
/// error. SIGTERM ends every session, then the broker.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Environment: ST2_TOOLS_POLICY_PATH (policy directories), ST2_TOOLS_LOG (log filter)"
)]
struct Arguments {}

fn main() -> ExitCode {
    let Arguments {} = Arguments::parse();
    daemon::log();
    // One thread for all that does not block: a second one only wakes for what the first is doing already.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(daemon::run()).map_err(|error| error.to_string()),
        Err(error) => Err(format!("cannot start the runtime: {error}")),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}
