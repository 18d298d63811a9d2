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
    desk::{Desk, Found, Opening, labels_of, real_directory},
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
    let root = real_directory(&arguments.root.0, "root", Code::SessionStartFailed)?;
    let tool = arguments.agent.0.as_str();
    let mut options = options(desk, &root, &arguments);
    let passed = match arguments.language {
        Some(language) => Some(add_language(desk, tool, language, &mut options).await?),
        None => None,
    };
    let found = match &arguments.initial_prompt {
        Some(prompt) => open_prompted(desk, tool, options, &prompt.0, call).await?,
        None => open_plain(desk, tool, options, call).await?,
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

/// Opens, or takes what is there.
async fn open_plain(
    desk: &Arc<Desk>,
    tool: &str,
    options: OpenOptions,
    call: &Call,
) -> Result<Found, Failure> {
    let not_permitted = Code::InvalidAgentConfig;
    desk.open(Opening { tool: tool.to_owned(), options, not_permitted }, call).await
}

/// Opens with a prompt, which only a new session is given.
async fn open_prompted(
    desk: &Arc<Desk>,
    tool: &str,
    options: OpenOptions,
    prompt: &str,
    call: &Call,
) -> Result<Found, Failure> {
    let way = Way::of(desk, tool).await?;
    let argument = (way == Way::Argument).then(|| prompt.to_owned());
    let found = open_plain(desk, tool, OpenOptions { prompt: argument, ..options }, call).await?;
    if way == Way::Terminal && !found.reused {
        type_prompt(&found.entry, prompt, call).await?;
    }
    Ok(found)
}

/// How a session is.
pub async fn status(desk: &Desk, arguments: Status) -> Answer {
    let entry = find(desk, &arguments.session_id.0, &arguments.root.0)?;
    Ok(about(&entry).await)
}

/// How a session is, and its last lines.
pub async fn inspect(desk: &Desk, arguments: Inspect) -> Answer {
    let entry = find(desk, &arguments.session_id.0, &arguments.root.0)?;
    let mut answer = about(&entry).await;
    let bounds = bounds(arguments.max_lines.0, arguments.max_bytes.0);
    output::put(&mut answer, entry.state().transcript.tail(bounds));
    Ok(answer)
}

/// Types into a session.
pub async fn write(desk: &Desk, arguments: WriteSession, call: &Call) -> Answer {
    let entry = find(desk, &arguments.session_id.0, &arguments.root.0)?;
    let input = arguments.input.0;
    let enter = if entry.facts.pipes { '\n' } else { '\r' };
    let submits = arguments.submit && !input.ends_with(enter);
    let typing = async {
        if !input.is_empty() {
            input::type_bytes(&entry, input.as_bytes()).await?;
        }
        if submits {
            input::submit(&entry).await?;
        }
        input::must_live(&entry)
    };
    let cancelled = || Failure::recoverable(Code::SessionWriteFailed, "cancelled while writing");
    call.wait_long(typing).await.ok_or_else(cancelled)??;
    let mut answer = only(&entry);
    answer["bytes"] = input.len().into();
    answer["submitted"] = submits.into();
    Ok(answer)
}

/// Output from a cursor on.
pub fn read(desk: &Desk, arguments: &Read) -> Answer {
    let entry = find(desk, &arguments.session_id.0, &arguments.root.0)?;
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
    let entry = find(desk, &id.0, &arguments.root.0)?;
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
    let root = known_root(root)?;
    let here = |entry: &Arc<Entry>| Path::new(&entry.facts.root) == root && !entry.has_ended();
    let entries: Vec<_> = desk.roster.labelled(labels).into_iter().filter(here).collect();
    let closed = entries.len();
    let sessions = end_all(entries, how, call).await?;
    Ok(json!({ "root": root, "closed": closed, "sessions": sessions }))
}

fn find(desk: &Desk, id: &str, root: &str) -> Result<Arc<Entry>, Failure> {
    desk.roster.find_at(id, &known_root(root)?)
}

/// The root of a session that is there already: its directory may be gone by now.
fn known_root(root: &str) -> Result<PathBuf, Failure> {
    if Path::new(root).symlink_metadata().is_ok() {
        real_directory(root, "root", Code::SessionNotFound)
    } else {
        Ok(PathBuf::from(root))
    }
}

fn bounds(lines: u64, bytes: u64) -> Bounds {
    let size = |number| usize::try_from(number).unwrap_or(usize::MAX);
    Bounds { lines: size(lines), bytes: size(bytes) }
}
