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
/// What an answer delivers is acknowledged by the next poll. A poll that was cancelled delivers nothing. The first one tells how
/// much of the output `exec` did not show.
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
    let mut piece = state.transcript.read(from, desk.answer_bounds());
    piece.lost += arguments.ack.map_or(state.skipped, |_| 0);
    if waited != Waited::Cancelled && !call.is_cancelled() {
        (state.polled, state.skipped) = (piece.next, 0);
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

/// Output by line, no more than one answer may have.
pub fn log(desk: &Desk, arguments: &Log) -> Answer {
    let entry = desk.roster.find(&arguments.session_id.0)?;
    let limit = arguments.limit.map_or(desk.settings.defaults.log_lines, |limit| limit.0);
    let state = entry.state();
    let lines = usize::try_from(limit).unwrap_or(usize::MAX);
    let bounds = Bounds { lines, ..desk.answer_bounds() };
    let lines = state.transcript.lines(arguments.offset, bounds);
    let mut answer = only(&entry);
    answer["offset"] = lines.first.into();
    answer["nextOffset"] = lines.next.into();
    answer["totalLines"] = lines.total.into();
    answer["truncated"] = lines.truncated.into();
    answer["cut"] = lines.cut.into();
    answer["ended"] = state.end.is_some().into();
    answer["output"] = lines.text.into();
    output::mark(&mut answer);
    Ok(answer)
}
