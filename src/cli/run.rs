//! `st2-tools run`.

use std::time::Duration;

use super::{
    bridge::{Bridge, BridgeEnd},
    connect::{Reach, Reached},
    error::{CliError, say},
    input::Input,
    json,
    open_args::OpenArgs,
    output::Output,
    render,
    status::Status,
    streams, terminal,
};
use crate::client::{AttachOptions, Dict, Io, Outcome, Session, Start, Stdin};

/// How long the end of a session that we leave is waited for.
const END: Duration = Duration::from_secs(5);

/// Run a tool on this terminal; its end is ours
///
/// Without --tool: the tool `command` runs ARGV, and without ARGV the tool `shell` runs. Where no bus
/// leads to a broker, an embedded one is used.
///
/// The tool has a terminal of its own. What comes from a pipe is typed into it, and the pipe's end as
/// Ctrl-D. With --io=pipe it has pipes instead: its standard output and error are copied to ours, each
/// to its own, and our standard input, with its end, to its.
///
/// A signal to st2-tools ends the session. With --json, the outcome is printed on standard error at
/// the end.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The tool [default: `command` with ARGV, `shell` without]
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,

    /// Say on standard error which broker is used, and how the tool is confined
    #[arg(short, long, display_order = 901)]
    verbose: bool,

    #[command(flatten)]
    open: OpenArgs,
}

/// Opens a tool, carries it on this terminal, and gives its status.
pub(super) async fn run(args: Args, reach: &Reach, output: Output) -> Result<Status, CliError> {
    let tool = args.open.tool(args.tool.as_deref());
    let mut options = args.open.options()?;
    if options.io == Some(Io::Pipe) {
        options.stdin.get_or_insert(Stdin::Open);
    } else {
        options.size = terminal::size();
        options.term = std::env::var("TERM")
            .ok()
            .filter(|term| terminal::is_interactive() && !term.is_empty());
    }
    let Reached { opened, embedded } = reach.open(&tool, &options, args.verbose).await?;
    let session = &opened.session;
    let end = match opened.info.text("io") {
        Some(io) if io == Io::Pipe.as_str() => {
            let is_open = options.stdin != Some(Stdin::Closed);
            streams::carry(session, is_open.then(|| Input::begin(None, false, true))).await
        }
        _ => on_terminal(session).await,
    };
    let end = leave(session, end).await;
    if let Some(broker) = embedded
        && let Err(error) = broker.end().await
    {
        // How the tool ended is known, and worth more than this.
        say(&error.line());
    }
    match end? {
        Over::Ended(outcome) => tell(&outcome, output),
        Over::Signaled(status) => Ok(status),
    }
}

/// How it was over for us.
enum Over {
    Ended(Dict),
    Signaled(Status),
}

async fn on_terminal(session: &Session) -> Result<BridgeEnd, CliError> {
    let attach = AttachOptions { start: Start::Cursor(0), ..AttachOptions::default() };
    Bridge::begin(session, attach, || Input::begin(None, true, true))?.run().await
}

/// Ends a session that has not ended by itself.
async fn leave(session: &Session, end: Result<BridgeEnd, CliError>) -> Result<Over, CliError> {
    match end {
        Ok(BridgeEnd::Ended(outcome)) => Ok(Over::Ended(outcome)),
        Ok(BridgeEnd::Signaled(signal)) => {
            close(session).await;
            Ok(Over::Signaled(Status::signaled(signal)))
        }
        Ok(BridgeEnd::Detached) => {
            close(session).await;
            Ok(Over::Signaled(Status::OURS))
        }
        Err(error) => {
            close(session).await;
            Err(error)
        }
    }
}

/// Ends the session without waiting for its grace. Where that fails, the grace still ends it.
async fn close(session: &Session) {
    let _ = tokio::time::timeout(END, session.close(None)).await;
}

/// Says how it ended where that was not the tool's own doing, and gives the status.
pub(super) fn tell(dict: &Dict, output: Output) -> Result<Status, CliError> {
    let outcome = Outcome::try_from(dict)?;
    if output.json {
        eprint_json(dict);
    } else if outcome.reason != "exit" || outcome.survivors > 0 {
        say(&format!("the session ended: {}", render::outcome(dict)));
    }
    Ok(Status::of_outcome(&outcome))
}

/// Standard output is the tool's; a closed standard error is nobody's loss.
fn eprint_json(dict: &Dict) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{:#}", json::object(dict));
}
