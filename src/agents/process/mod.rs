//! The tool `process`: what is running, its output, its input, its end.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::join_all;
use rmcp::model::CallToolResult;
use serde_json::json;

use super::{
    arguments::{Kill, List, Process, Remove},
    call::Call,
    desk::{Desk, labels_of},
    ending::{How, end_all},
    entry::Entry,
    failure::{Code, Failure},
    record::{only, record},
    server::{Answer, finish},
};
use crate::client::Filter;

mod reading;
mod typing;

/// Does one action.
pub async fn process(desk: &Desk, action: Process, call: &Call) -> CallToolResult {
    let command = format!("process.{}", action.name());
    let answer = match action {
        Process::List(arguments) => list(desk, &arguments).await,
        Process::Poll(arguments) => reading::poll(desk, &arguments, call).await,
        Process::Log(arguments) => reading::log(desk, &arguments),
        Process::Write(arguments) => typing::write(desk, arguments, call).await,
        Process::SendKeys(arguments) => typing::send_keys(desk, arguments, call).await,
        Process::Paste(arguments) => typing::paste(desk, arguments, call).await,
        Process::Submit(arguments) => typing::submit(desk, &arguments, call).await,
        Process::Kill(arguments) => kill(desk, &arguments, call).await,
        Process::Clear(_) => Ok(clear(desk)),
        Process::Remove(arguments) => remove(desk, &arguments, call).await,
    };
    finish(&command, answer)
}

async fn list(desk: &Desk, arguments: &List) -> Answer {
    let labels = task(arguments.task.as_ref(), arguments.subtask.as_ref());
    let entries = desk.roster.labelled(&labels);
    let sessions = join_all(entries.iter().map(|entry| record(entry))).await;
    Ok(json!({ "sessions": sessions }))
}

async fn kill(desk: &Desk, arguments: &Kill, call: &Call) -> Answer {
    let labels = task(arguments.task.as_ref(), arguments.subtask.as_ref());
    let entries = match &arguments.session_id {
        Some(id) => vec![desk.roster.find(&id.0)?],
        None if labels.is_empty() => {
            let message = "neither sessionId nor task nor subtask is given";
            return Err(Failure::lasting(Code::SessionNotFound, message));
        }
        None => {
            desk.roster.labelled(&labels).into_iter().filter(|entry| !entry.has_ended()).collect()
        }
    };
    let killed = entries.iter().filter(|entry| !entry.has_ended()).count();
    let sessions = end_all(entries, How::AtOnce, call).await?;
    if arguments.session_id.is_none() {
        close_opening(desk, labels).await?;
    }
    let confirmed = sessions.iter().all(|session| session["survivors"].as_u64() == Some(0));
    Ok(json!({ "killed": killed, "confirmed": confirmed, "sessions": sessions }))
}

/// What is of the task and was being opened while the others ended.
async fn close_opening(desk: &Desk, labels: BTreeMap<String, String>) -> Result<(), Failure> {
    let filter = Filter { labels, ..Filter::default() }.to_dict();
    let closed = desk.client.manager().close_sessions(&filter).await;
    closed.map(drop).map_err(|error| Failure::of(&error.into(), Code::SessionCloseFailed))
}

fn clear(desk: &Desk) -> serde_json::Value {
    let all = desk.roster.labelled(&BTreeMap::new());
    let ended: Vec<_> = all.into_iter().filter(|entry| entry.has_ended()).collect();
    for entry in &ended {
        forget(desk, entry);
    }
    json!({ "cleared": ended.len() })
}

async fn remove(desk: &Desk, arguments: &Remove, call: &Call) -> Answer {
    let entry = desk.roster.find(&arguments.session_id.0)?;
    let mut answer = only(&entry);
    answer["session"] = end_all(vec![entry.clone()], How::AtOnce, call).await?.pop().into();
    forget(desk, &entry);
    answer["removed"] = true.into();
    Ok(answer)
}

/// Here, and in the broker, which would keep it for a while.
fn forget(desk: &Desk, entry: &Arc<Entry>) {
    desk.roster.forget(entry);
    let entry = entry.clone();
    // Whether the broker has forgotten it before is no concern of anybody.
    tokio::spawn(async move { entry.session.proxy().forget().await });
}

fn task(
    task: Option<&super::arguments::Label>,
    subtask: Option<&super::arguments::Label>,
) -> BTreeMap<String, String> {
    labels_of(&[("task", task), ("subtask", subtask)])
}
