//! A session as an agent is told of it. Never its environment, and nothing that looks like a secret.

use std::{
    iter,
    time::{SystemTime, UNIX_EPOCH},
};

use chrono::{DateTime, SecondsFormat};
use serde_json::{Value, json};

use super::{
    entry::{End, Entry},
    text,
};
use crate::client::{Dict, Ending, Outcome};

/// Most bytes of arguments in a record.
const ARGS_MAX: usize = 4 << 10;

/// The record of a session. One whose broker is gone is a fact, too.
pub async fn record(entry: &Entry) -> Value {
    let alive = if entry.has_ended() { None } else { entry.session.properties().await.ok() };
    of(entry, alive.as_ref())
}

/// The fields of an answer that is about one session.
pub async fn about(entry: &Entry) -> Value {
    let mut answer = only(entry);
    answer["session"] = record(entry).await;
    answer
}

/// The fields of an answer that only says which session it was.
#[must_use]
pub fn only(entry: &Entry) -> Value {
    json!({ "sessionId": entry.id(), "root": entry.facts.root })
}

fn of(entry: &Entry, alive: Option<&Dict>) -> Value {
    let (facts, state) = (&entry.facts, entry.state());
    let mut argv = redacted(&facts.argv);
    let command = argv.next().unwrap_or_default();
    let (arguments, cut) = bounded(argv, ARGS_MAX);
    let end = state.end.as_ref();
    let label = |name: &str| facts.labels.get(name);
    let mut record = json!({
        "sessionId": entry.id(),
        "agent": facts.agent,
        "command": command,
        "resolvedCommand": facts.program,
        "args": arguments,
        "argsTruncated": cut,
        "root": facts.root,
        "cwd": facts.cwd,
        "pid": facts.pid,
        "state": state_of(alive, end),
        "createdAt": moment(facts.created_usec),
        "lastActivityAt": moment(state.last_output.map_or(facts.created_usec, microseconds)),
        "exitCode": null,
        "signal": null,
        "reason": null,
        "error": error(end),
        "backend": backend(facts.pipes, facts.fallback),
        "name": label("name"),
        "task": label("task"),
        "subtask": label("subtask"),
        "outputEnd": state.transcript.position(),
    });
    if let Some(End::Closed(outcome)) = end {
        add_outcome(&mut record, outcome);
    }
    if let Some(waiting) = alive.and_then(|alive| alive.flag("WaitingForInput")) {
        record["waitingForInput"] = waiting.into();
    }
    record
}

fn add_outcome(record: &mut Value, outcome: &Outcome) {
    match &outcome.ending {
        Ending::Exited(code) => record["exitCode"] = (*code).into(),
        Ending::Signaled { signal, .. } => record["signal"] = signal.as_str().into(),
        Ending::Failed { .. } => {}
    }
    record["reason"] = outcome.reason.as_str().into();
    record["survivors"] = outcome.survivors.into();
}

/// One of the documented states. What was killed is never told as having exited.
fn state_of(alive: Option<&Dict>, end: Option<&End>) -> &'static str {
    match end {
        Some(End::Closed(outcome)) if ended_itself(outcome) => "exited",
        Some(_) => "failed",
        None => match alive.map(|alive| (alive.text("Phase"), alive.text("Activity"))) {
            Some((Some("opening"), _)) => "starting",
            Some((Some("running"), Some("busy"))) => "busy",
            Some((Some("running"), Some("idle"))) => "idle",
            _ => "running",
        },
    }
}

/// Whether it exited by itself, or when it was asked to.
fn ended_itself(outcome: &Outcome) -> bool {
    let killed = |signal: &str| signal == "SIGKILL";
    match (&outcome.ending, outcome.reason.as_str()) {
        (Ending::Exited(_), "exit" | "closed-by-owner") => true,
        (Ending::Signaled { signal, .. }, "closed-by-owner") => !killed(signal),
        _ => false,
    }
}

/// In a line what is wrong, where something is.
fn error(end: Option<&End>) -> Option<String> {
    match end? {
        End::Lost(why) => Some(why.clone()),
        End::Closed(outcome) if ended_itself(outcome) => None,
        End::Closed(outcome) => Some(describe(outcome)),
    }
}

/// In a line how a session ended.
#[must_use]
pub fn describe(outcome: &Outcome) -> String {
    let reason = &outcome.reason;
    match &outcome.ending {
        Ending::Exited(code) => format!("it exited with code {code} ({reason})"),
        Ending::Signaled { signal, .. } => format!("it was ended by {signal} ({reason})"),
        Ending::Failed { message, .. } => format!("it never started: {message}"),
    }
}

fn backend(pipes: bool, fallback: bool) -> &'static str {
    match (pipes, fallback) {
        (true, true) => "stdio-fallback",
        (true, false) => "pipe",
        (false, _) => "pty",
    }
}

/// Arguments without secrets: each by itself, and the value that follows an option that names one.
fn redacted(argv: &[String]) -> impl Iterator<Item = String> {
    let before = iter::once("").chain(argv.iter().map(String::as_str));
    before.zip(argv).map(|(before, argument)| redacted_after(before, argument))
}

/// The first arguments, of at most so many bytes in all, the last of them cut on a character; whether there are others, or more
/// of it.
fn bounded(argv: impl Iterator<Item = String>, most: usize) -> (Vec<String>, bool) {
    let (mut kept, mut left) = (Vec::new(), most);
    for mut argument in argv {
        if argument.len() > left {
            argument.truncate(text::begin_within(&argument, left));
            kept.push(argument);
            return (kept, true);
        }
        left -= argument.len();
        kept.push(argument);
    }
    (kept, false)
}

fn redacted_after(before: &str, argument: &str) -> String {
    let alone = text::redact(argument);
    let option = before.starts_with("--").then(|| format!("{before} {argument}"));
    match option {
        Some(both) if !text::redact(&both).ends_with(&alone) => text::REDACTED.to_owned(),
        _ => alone,
    }
}

fn microseconds(moment: SystemTime) -> u64 {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// RFC 3339, to the millisecond.
fn moment(usec: u64) -> Option<String> {
    let moment = DateTime::from_timestamp_micros(i64::try_from(usec).ok()?)?;
    Some(moment.to_rfc3339_opts(SecondsFormat::Millis, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(ending: Ending, reason: &str) -> Outcome {
        Outcome {
            ending,
            reason: reason.into(),
            requester: String::new(),
            bytes_out: 0,
            bytes_dropped: 0,
            unseen: false,
            survivors: 0,
        }
    }

    #[test]
    fn a_forced_end_is_never_told_as_an_exit() {
        let killed = || Ending::Signaled { signal: "SIGKILL".into(), core_dumped: false };
        let hung_up = || Ending::Signaled { signal: "SIGHUP".into(), core_dumped: false };
        let state = |ending, reason| state_of(None, Some(&End::Closed(outcome(ending, reason))));
        assert_eq!(state(Ending::Exited(3), "exit"), "exited");
        assert_eq!(state(hung_up(), "closed-by-owner"), "exited");
        assert_eq!(state(killed(), "closed-by-owner"), "failed");
        assert_eq!(state(killed(), "killed-by-owner"), "failed");
        assert_eq!(state(Ending::Exited(0), "timeout"), "failed");
        assert_eq!(state(hung_up(), "exit"), "failed");
        assert_eq!(state_of(None, Some(&End::Lost("the broker is gone".into()))), "failed");
    }

    #[test]
    fn a_living_session_is_as_its_properties_say() {
        let state = |phase: &str, activity: Option<&str>| {
            let dict = Dict::new().with("Phase", phase.to_owned());
            let dict = dict.with_some("Activity", activity.map(str::to_owned));
            state_of(Some(&dict), None)
        };
        assert_eq!(state("opening", None), "starting");
        assert_eq!(state("running", None), "running");
        assert_eq!(state("running", Some("busy")), "busy");
        assert_eq!(state("running", Some("idle")), "idle");
        assert_eq!(state("closing", Some("idle")), "running");
    }

    #[test]
    fn arguments_that_look_like_secrets_are_not_told() {
        let argv = ["curl", "--token", "abcdef", "--password=abc", "-v", "--", "plain"];
        let argv = argv.map(str::to_owned);
        assert_eq!(
            redacted(&argv).collect::<Vec<_>>(),
            ["curl", "--token", "[redacted]", "--password=[redacted]", "-v", "--", "plain"]
        );
    }

    #[test]
    fn arguments_are_told_up_to_a_bound() {
        let told = |argv: &[&str], most| {
            let argv: Vec<_> = argv.iter().map(|&argument| argument.to_owned()).collect();
            bounded(redacted(&argv), most)
        };
        let vec = |argv: &[&str]| argv.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
        assert_eq!(told(&["-c", "true"], 6), (vec(&["-c", "true"]), false));
        assert_eq!(told(&["-c", "true"], 5), (vec(&["-c", "tru"]), true));
        assert_eq!(told(&["-c", "é", "x"], 3), (vec(&["-c", ""]), true));
        assert_eq!(told(&["a", "b", ""], 2), (vec(&["a", "b", ""]), false));
        // Neither a secret nor what stands for it is cut in two.
        let (args, cut) = told(&["--password=sesame-and-more", "x"], 16);
        assert_eq!((args, cut), (vec(&["--password="]), true));
    }

    #[test]
    fn moments_are_rfc_3339() {
        assert_eq!(moment(1_700_000_000_123_456).as_deref(), Some("2023-11-14T22:13:20.123Z"));
        assert_eq!(moment(u64::MAX), None);
    }
}
