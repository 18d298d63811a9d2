//! `st2-tools attach`.

use std::io::{self, IsTerminal, Write};

use super::{
    bridge::{Bridge, BridgeEnd},
    connect::Reach,
    control::Target,
    detach::{DETACH_KEYS, DetachKeys},
    error::{CliError, say},
    input::Input,
    output::Output,
    run,
    status::Status,
};
use crate::client::{AttachOptions, Mode};

/// Put a running session on this terminal; Ctrl-] d leaves it running
///
/// Ctrl-] twice sends one Ctrl-] to the tool. Whoever only observes types nothing, and leaves with
/// Ctrl-C as well. When the session ends meanwhile, its status is ours.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,

    /// Look only: what is typed and the size of this terminal do not reach the session
    #[arg(long)]
    observe: bool,
}

/// Attaches to a session.
pub(super) async fn attach(args: Args, reach: &Reach, output: Output) -> Result<Status, CliError> {
    let observe = args.observe;
    let reached = args.target.reach(reach).await?;
    // Asked before the terminal is taken, so that a refusal is told with the unit.
    reached.told(reached.session.properties().await).await?;
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        say(&format!("attached to {}; {DETACH_KEYS} leaves it", reached.session.id()));
    }
    let mode = if observe { Mode::Observe } else { Mode::Control };
    let keys = if observe { DetachKeys::of_observer() } else { DetachKeys::default() };
    let options = AttachOptions { mode, ..AttachOptions::default() };
    let input = || Input::begin(Some(keys), false, !observe);
    let bridge = Bridge::begin(&reached.session, options, input)?;
    let end = match bridge.run().await {
        Err(CliError::Session { source, .. }) => reached.told(Err(source)).await?,
        end => end?,
    };
    match end {
        BridgeEnd::Ended(outcome) => {
            reached.over();
            run::tell(&outcome, output)
        }
        BridgeEnd::Detached => {
            // The tool left the cursor anywhere.
            let _ = writeln!(io::stderr());
            say(&format!("left {}; it goes on", reached.session.id()));
            Ok(Status::SUCCESS)
        }
        BridgeEnd::Signaled(signal) => Ok(Status::signaled(signal)),
    }
}
