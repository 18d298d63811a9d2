//! `st2-tools keys`.

use serde_json::json;

use super::{
    connect::Reach,
    control::{Target, patiently},
    error::CliError,
    output::Output,
    status::Status,
};

/// Press keys in a session, by name; all of them, or none where one is unknown
///
/// A name in any case (enter, tab, escape, space, backspace, delete, insert, up, down, left, right, home, end,
/// pageup, pagedown, btab, f1 to f12, kp0 to kp9, kpenter), one character, or ^X; before it each of C-, M- and S-
/// (Ctrl, Alt, Shift) at most once.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,

    /// Keys, such as: C-c  M-x  S-Tab  F5  q
    #[arg(value_name = "KEY", required = true, allow_hyphen_values = true)]
    keys: Vec<String>,
}

/// Presses keys.
pub(super) async fn keys(args: Args, reach: &Reach, output: Output) -> Result<Status, CliError> {
    let reached = args.target.reach(reach).await?;
    let pressed = patiently(async || reached.session.send_keys(&args.keys).await).await;
    reached.told(pressed).await?;
    output.print(|| json!({ "keys": args.keys.len() }), String::new)?;
    Ok(Status::SUCCESS)
}
