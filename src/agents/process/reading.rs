//! `poll` and `log`.

use crate::agents::{
    arguments::{Log, Poll},
    call::{Call, Waited},
    desk::Desk,
    entry::State,
    exec::within_wait_max,
    failure::Failure,
    output,
    record::{about, only},
    server::Answer,
    text::Bounds,
};

/// What is new, once something is or the time is over.
///
/// What an answer delivers is acknowledged by the next poll. A poll that was cancelled delivers nothing.
pub async fn poll(desk: &Desk, arguments: &Poll, call: &Call) -> Answer {
    let patience = within_wait_max(desk, "timeout", arguments.timeout.0)?;
    let entry = desk.roster.find(&arguments.session_id.0)?;
    let from = begin(&entry.state(), arguments.ack)?;
    let news = entry.until(|state| {
        state.end.is_some() || !state.transcript.read(from, ONE_LINE).text.is_empty()
    });
    let waited = call.wait(patience, news).await;
    let mut answer = about(&entry).await;
    let mut state = entry.state();
    let piece = state.transcript.read(from, desk.answer_bounds());
    if waited != Waited::Cancelled && !call.is_cancelled() {
        state.polled = piece.next;
    }
    answer["ended"] = (state.end.is_some() && !piece.more).into();
    output::put(&mut answer, piece);
    Ok(answer)
}

/// Whether there is anything.
const ONE_LINE: Bounds = Bounds { lines: 1, bytes: 1 };

fn begin(state: &State, ack: Option<u64>) -> Result<u64, Failure> {
    match ack {
        None => Ok(state.polled),
        Some(ack) => state.check("ack", ack).map(|()| ack),
    }
}

/// Output by line.
pub fn log(desk: &Desk, arguments: &Log) -> Answer {
    let entry = desk.roster.find(&arguments.session_id.0)?;
    let limit = arguments.limit.map_or(desk.settings.defaults.log_lines, |limit| limit.0);
    let state = entry.state();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let lines = state.transcript.lines(arguments.offset, limit);
    let mut answer = only(&entry);
    answer["offset"] = lines.first.into();
    answer["totalLines"] = lines.total.into();
    answer["truncated"] = lines.truncated.into();
    answer["ended"] = state.end.is_some().into();
    answer["output"] = lines.text.into();
    output::mark(&mut answer);
    Ok(answer)
}
