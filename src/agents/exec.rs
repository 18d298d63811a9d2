//! The tool `exec`.

use std::{ffi::OsString, sync::Arc, time::Duration};

use serde_json::Value;

use super::{
    arguments::{Command, Exec},
    call::Call,
    desk::{Desk, Opening, labels_of},
    ending::{How, end_all},
    entry::Entry,
    failure::{Code, Failure},
    output,
    record::about,
    server::Answer,
    settings::Defaults,
};
use crate::client::{Io, OpenOptions, Stdin};

/// Runs a command; waits for its end for a while.
pub async fn exec(desk: &Arc<Desk>, arguments: Exec, call: &Call) -> Answer {
    let mut options = options(desk, &arguments).await?;
    let patience = patience(desk, &arguments)?;
    if arguments.replace_existing {
        replace(desk, &arguments, call).await?;
    }
    add_default_watchdogs(desk, &mut options).await;
    let opening = Opening {
        tool: desk.settings.exec.clone(),
        options,
        not_permitted: Code::SessionStartFailed,
    };
    let entry = desk.open(opening, call).await?.entry;
    call.wait(patience, entry.ended()).await;
    Ok(answer(desk, &entry, call).await)
}

async fn answer(desk: &Desk, entry: &Entry, call: &Call) -> Value {
    let mut answer = about(entry).await;
    let mut state = entry.state();
    // What is given of an unfinished line is settled: a poll goes on after it.
    state.transcript.settle();
    let tail = state.transcript.tail(desk.answer_bounds());
    // What nobody gets to see is not delivered: the first poll gives it.
    if !call.is_cancelled() {
        (state.polled, state.skipped) = (tail.next, tail.begin);
    }
    answer["status"] = match answer["session"]["state"].as_str() {
        Some(ended @ ("exited" | "failed")) => ended.into(),
        _ => "running".into(),
    };
    output::put_tail(&mut answer, tail);
    answer
}

async fn options(desk: &Desk, arguments: &Exec) -> Result<OpenOptions, Failure> {
    let root = desk.workdir(arguments.workdir.as_ref().map(|workdir| workdir.0.as_str())).await?;
    let labels = desk.labels(&[
        ("name", arguments.name.as_ref()),
        ("task", arguments.task.as_ref()),
        ("subtask", arguments.subtask.as_ref()),
    ]);
    let silence = arguments.silence_timeout_sec.map(|seconds| Duration::from_secs(seconds.0));
    Ok(OpenOptions {
        argv: argv(arguments)?,
        env: arguments.env.clone(),
        timeout: timeout(desk, arguments)?,
        silence_timeout: silence,
        io: Some(if arguments.pty { Io::Pty } else { Io::Pipe }),
        stdin: (!arguments.pty && arguments.stdin).then_some(Stdin::Open),
        io_fallback: arguments.pty && arguments.io_fallback,
        ..desk.options(&root, labels)
    })
}

/// The command as execve(2) has it: no shell reads it unless one is asked for.
fn argv(arguments: &Exec) -> Result<Vec<OsString>, Failure> {
    let wrong = |message: &str| Err(Failure::lasting(Code::SessionStartFailed, message));
    match (&arguments.command, arguments.shell) {
        (Command::Script(script), true) => {
            Ok(vec!["/bin/sh".into(), "-c".into(), script.0.clone().into()])
        }
        (Command::Argv(argv), false) if argv.0.is_empty() => wrong("command is empty"),
        (Command::Argv(argv), false) => {
            Ok(argv.0.iter().map(|argument| argument.0.clone().into()).collect())
        }
        (Command::Script(_), false) => {
            wrong("command is one string: give a list, or shell: true for `/bin/sh -c`")
        }
        (Command::Argv(_), true) => wrong("shell: true needs command to be one string"),
    }
}

/// The overall watchdog, where the call names one.
fn timeout(desk: &Desk, arguments: &Exec) -> Result<Option<Duration>, Failure> {
    let Some(asked) = arguments.timeout_sec.map(|seconds| seconds.0) else { return Ok(None) };
    let most = desk.settings.limits.timeout_max_sec;
    if most > 0 && !(1..=most).contains(&asked) {
        let message =
            format!("timeoutSec {asked} is outside 1..={most}, limits.timeout_max_sec of mcp.toml");
        return Err(Failure::lasting(Code::SessionStartFailed, message));
    }
    Ok(Some(Duration::from_secs(asked)))
}

/// Adds the watchdogs that the call does not name. The broker refuses one that is wider than the catalogue entry's own: so a
/// default is left out where the entry, by itself, ends a session as soon.
async fn add_default_watchdogs(desk: &Desk, options: &mut OpenOptions) {
    let Defaults { timeout_sec, silence_timeout_sec, .. } = desk.settings.defaults;
    let wanted = |asked: Option<Duration>, default: u64| asked.is_none() && default > 0;
    if !wanted(options.timeout, timeout_sec)
        && !wanted(options.silence_timeout, silence_timeout_sec)
    {
        return;
    }
    let plain = OpenOptions { timeout: None, silence_timeout: None, ..options.clone() };
    let explained = desk.client.explain(&desk.settings.exec, &plain).await.unwrap_or_default();
    if explained.text("refusal").is_some() {
        // It will not be opened, and that says why.
        return;
    }
    let sooner = |name: &str, default: u64| {
        let own = explained.number(name).filter(|own| *own > 0).map(Duration::from_millis);
        let default = (default > 0).then(|| Duration::from_secs(default));
        default.filter(|default| own.is_none_or(|own| *default < own))
    };
    options.timeout = options.timeout.or(sooner("timeout_ms", timeout_sec));
    options.silence_timeout =
        options.silence_timeout.or(sooner("silence_timeout_ms", silence_timeout_sec));
}

/// How long the answer may take.
fn patience(desk: &Desk, arguments: &Exec) -> Result<Duration, Failure> {
    if arguments.background {
        return Ok(Duration::ZERO);
    }
    let asked = arguments.yield_ms.map_or(desk.settings.defaults.yield_ms, |asked| asked.0);
    within_wait_max(desk, "yieldMs", asked)
}

/// A wait that the settings allow.
///
/// # Errors
/// `SESSION_RUNTIME_ERROR`, naming the setting.
pub fn within_wait_max(desk: &Desk, what: &str, asked: u64) -> Result<Duration, Failure> {
    let asked = Duration::from_millis(asked);
    if asked <= desk.settings.wait_max() {
        return Ok(asked);
    }
    let most = desk.settings.limits.wait_max_ms;
    let message =
        format!("{what} {} is above {most}, limits.wait_max_ms of mcp.toml", asked.as_millis());
    Err(Failure::lasting(Code::SessionRuntimeError, message))
}

/// Ends those of this server that have the name.
async fn replace(desk: &Desk, arguments: &Exec, call: &Call) -> Result<(), Failure> {
    let labels = labels_of(&[("name", arguments.name.as_ref())]);
    if labels.is_empty() {
        let message = "replaceExisting needs a name";
        return Err(Failure::lasting(Code::SessionStartFailed, message));
    }
    let living = |entry: &Arc<Entry>| !entry.has_ended();
    let entries = desk.roster.labelled(&labels).into_iter().filter(living).collect();
    end_all(entries, How::AtOnce, call).await.map(drop)
}
