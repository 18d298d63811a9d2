//! The six tools `coordinate_agents_session_*`.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::json;

use super::{
    arguments::{Close, Inspect, Open, Read, Status, WriteSession},
    call::Call,
    desk::{Desk, Found, Opening, labels_of, look_at, off_thread, real_directory},
    ending::{How, end_all},
    entry::Entry,
    failure::{Code, Failure},
    input, output,
    prompt::{Way, add_language, type_prompt},
    record::{about, only},
    server::Answer,
    text::Bounds,
};
use crate::client::OpenOptions;

/// Opens a session, or gives the one that is there.
pub async fn open(desk: &Arc<Desk>, arguments: Open, call: &Call) -> Answer {
    let root = real_directory(&arguments.root.0, "root", Code::SessionStartFailed).await?;
    let tool = arguments.agent.0.as_str();
    let mut options = options(desk, &root, &arguments);
    let passed = match arguments.language {
        Some(language) => Some(add_language(desk, tool, language, &mut options).await?),
        None => None,
    };
    let found = match &arguments.initial_prompt {
        Some(prompt) => open_prompted(desk, tool, options, &prompt.0, call).await?,
        None => desk.open(opening(tool, options), call).await?,
    };
    let mut answer = about(&found.entry).await;
    answer["reused"] = found.reused.into();
    answer["languagePassed"] = passed.into();
    Ok(answer)
}

fn options(desk: &Desk, root: &Path, arguments: &Open) -> OpenOptions {
    let labels =
        desk.labels(&[("task", arguments.task.as_ref()), ("subtask", arguments.subtask.as_ref())]);
    let io_fallback = arguments.io_fallback;
    OpenOptions { reuse: true, io_fallback, ..desk.options(root, labels) }
}

fn opening(tool: &str, options: OpenOptions) -> Opening {
    Opening { tool: tool.to_owned(), options, not_permitted: Code::InvalidAgentConfig }
}

/// Opens with a prompt, which only a new session is given; it is given also if nobody waits for that any more.
async fn open_prompted(
    desk: &Arc<Desk>,
    tool: &str,
    options: OpenOptions,
    prompt: &str,
    call: &Call,
) -> Result<Found, Failure> {
    let (way, prompt) = (Way::of(desk, tool).await?, prompt.to_owned());
    if way == Way::Argument {
        let options = OpenOptions { prompt: Some(prompt), ..options };
        return desk.open(opening(tool, options), call).await;
    }
    let (desk, opening) = (desk.clone(), opening(tool, options));
    let prompting = async move {
        let found = desk.open_now(opening).await?;
        if !found.reused {
            type_prompt(&found.entry, &prompt).await?;
        }
        Ok(found)
    };
    call.see_through(Code::SessionRuntimeError, "opening", prompting).await
}

/// How a session is.
pub async fn status(desk: &Desk, arguments: Status) -> Answer {
    let entry = find(desk, &arguments.session_id.0, &arguments.root.0).await?;
    Ok(about(&entry).await)
}

/// How a session is, and its last lines.
pub async fn inspect(desk: &Desk, arguments: Inspect) -> Answer {
    let entry = find(desk, &arguments.session_id.0, &arguments.root.0).await?;
    let mut answer = about(&entry).await;
    let bounds = bounds(arguments.max_lines.0, arguments.max_bytes.0);
    output::put_tail(&mut answer, entry.state().transcript.tail(bounds));
    Ok(answer)
}

/// Types into a session.
pub async fn write(desk: &Desk, arguments: WriteSession, call: &Call) -> Answer {
    let entry = desk.roster.find(&arguments.session_id.0)?;
    let WriteSession { root, input, submit, .. } = arguments;
    let typing = {
        let entry = entry.clone();
        async move {
            must_be_at(&entry, &root.0).await?;
            let (text, submits) = before_enter(&input.0, submit, entry.facts.pipes);
            match submits {
                true => input::type_line(&entry, text.as_bytes()).await?,
                false => input::type_bytes(&entry, text.as_bytes()).await?,
            }
            Ok((text.len(), submits))
        }
    };
    let (bytes, submitted) = input::in_turn(&entry, call, typing).await?;
    let mut answer = only(&entry);
    answer["bytes"] = bytes.into();
    answer["submitted"] = submitted.into();
    Ok(answer)
}

/// What is typed before Enter is pressed, and whether it is: not where the input ends in one. The line feed that a
/// terminal's input ends in stands for it: typed too, it would be a second one.
fn before_enter(input: &str, submit: bool, pipes: bool) -> (&str, bool) {
    match (submit, pipes) {
        (false, _) => (input, false),
        (true, true) => (input, !input.ends_with('\n')),
        (true, false) => {
            let text = input.strip_suffix('\n').unwrap_or(input);
            (text, !text.ends_with('\r'))
        }
    }
}

/// Output from a cursor on.
pub async fn read(desk: &Desk, arguments: Read) -> Answer {
    let entry = find(desk, &arguments.session_id.0, &arguments.root.0).await?;
    let mut state = entry.state();
    state.check("cursor", arguments.cursor)?;
    let bounds = bounds(arguments.max_lines.0, arguments.max_bytes.0);
    let piece = state.transcript.read(arguments.cursor, bounds);
    let mut answer = only(&entry);
    answer["ended"] = (state.end.is_some() && !piece.more).into();
    output::put(&mut answer, piece);
    Ok(answer)
}

/// Ends a session, or those of a task.
pub async fn close(desk: &Desk, arguments: Close, call: &Call) -> Answer {
    let how = match arguments.graceful {
        true => How::Gently(Duration::from_millis(arguments.timeout_ms.0)),
        false => How::AtOnce,
    };
    let labels =
        labels_of(&[("task", arguments.task.as_ref()), ("subtask", arguments.subtask.as_ref())]);
    let Some(id) = &arguments.session_id else {
        return close_task(desk, &arguments.root.0, &labels, how, call).await;
    };
    let entry = find(desk, &id.0, &arguments.root.0).await?;
    let mut answer = only(&entry);
    answer["session"] = end_all(vec![entry], how, call).await?.into_iter().next().into();
    Ok(answer)
}

async fn close_task(
    desk: &Desk,
    root: &str,
    labels: &std::collections::BTreeMap<String, String>,
    how: How,
    call: &Call,
) -> Answer {
    if labels.is_empty() {
        let message = "neither sessionId nor task nor subtask is given";
        return Err(Failure::lasting(Code::SessionNotFound, message));
    }
    let root = known_root(root).await?;
    let here = |entry: &Arc<Entry>| Path::new(&entry.facts.root) == root && !entry.has_ended();
    let entries: Vec<_> = desk.roster.labelled(labels).into_iter().filter(here).collect();
    let closed = entries.len();
    let sessions = end_all(entries, how, call).await?;
    Ok(json!({ "root": root, "closed": closed, "sessions": sessions }))
}

async fn find(desk: &Desk, id: &str, root: &str) -> Result<Arc<Entry>, Failure> {
    let entry = desk.roster.find(id)?;
    must_be_at(&entry, root).await?;
    Ok(entry)
}

async fn must_be_at(entry: &Entry, root: &str) -> Result<(), Failure> {
    let root = known_root(root).await?;
    if Path::new(&entry.facts.root) == root {
        return Ok(());
    }
    let message = format!("session {} is not at {}", entry.id(), root.display());
    Err(Failure::lasting(Code::SessionNotFound, message))
}

/// The root of a session that is there already: its directory may be gone by now.
async fn known_root(root: &str) -> Result<PathBuf, Failure> {
    let root = root.to_owned();
    let look = move || match Path::new(&root).symlink_metadata() {
        Ok(_) => look_at(&root, "root", Code::SessionNotFound),
        Err(_) => Ok(PathBuf::from(root)),
    };
    off_thread(Code::SessionNotFound, look).await
}

fn bounds(lines: u64, bytes: u64) -> Bounds {
    let size = |number| usize::try_from(number).unwrap_or(usize::MAX);
    Bounds { lines: size(lines), bytes: size(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_is_pressed_once() {
        for (input, pipes, expected) in [
            ("ls", false, ("ls", true)),
            ("ls\r", false, ("ls\r", false)),
            ("ls\n", false, ("ls", true)),
            ("ls\r\n", false, ("ls\r", false)),
            ("", false, ("", true)),
            ("\n", false, ("", true)),
            ("ls", true, ("ls", true)),
            ("ls\n", true, ("ls\n", false)),
            ("ls\r", true, ("ls\r", true)),
        ] {
            assert_eq!(before_enter(input, true, pipes), expected, "{input:?}");
            assert_eq!(before_enter(input, false, pipes), (input, false));
        }
    }
}
