//! Follows what a session writes: reads all of it as it comes, and turns it into text once.
//!
//! One reader and one text for each session, whatever clients read and when: a secret that a cut would split has been
//! redacted before anything is cut.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::time::{Instant, sleep};

use super::entry::{End, Entry};
use crate::client::{Chunk, ClientError, Outcome, READ_MAX, ReadOptions};

/// How long one read waits; then the next one does.
const WAIT: Duration = Duration::from_secs(60);

/// After so long without output, or at the latest after so long with it, whoever waits for output is woken: what is
/// written in one go is mostly one answer, and a line is seldom cut.
const QUIET: Duration = Duration::from_millis(30);
const AT_LATEST: Duration = Duration::from_millis(250);

/// Follows a session to its end, where the broker lets one read wait for `longest`.
pub async fn follow(entry: Arc<Entry>, longest: Duration) {
    let end = match read_all(&entry, longest).await {
        Ok(()) => outcome(&entry).await,
        Err(error) => End::Lost(error.to_string()),
    };
    entry.change(|state| {
        state.transcript.finish();
        state.end = Some(end);
    });
}

async fn read_all(entry: &Entry, longest: Duration) -> Result<(), ClientError> {
    let mut cursor = 0;
    // Since when there is output that nobody has been woken for.
    let mut unannounced = None;
    loop {
        let wait = if unannounced.is_some() { QUIET } else { WAIT };
        let options = ReadOptions { wait: Some(wait.min(longest)), ..ReadOptions::default() };
        let chunk = entry.session.read(cursor, READ_MAX, &options).await?;
        cursor = chunk.next;
        add(entry, &chunk);
        if chunk.eof {
            return Ok(());
        }
        if chunk.data.is_empty() && longest < QUIET {
            sleep(QUIET).await;
        }
        let since = *unannounced.get_or_insert_with(Instant::now);
        if chunk.data.is_empty() || since.elapsed() >= AT_LATEST {
            unannounced = None;
            entry.change(|_| ());
        }
    }
}

fn add(entry: &Entry, chunk: &Chunk) {
    let mut state = entry.state();
    state.transcript.feed(chunk.begin, &chunk.data);
    if !chunk.data.is_empty() {
        state.last_output = Some(SystemTime::now());
    }
}

/// The outcome comes right after the last byte.
async fn outcome(entry: &Entry) -> End {
    let outcome = entry.session.wait().await;
    match outcome.and_then(|outcome| Outcome::try_from(&outcome)) {
        Ok(outcome) => End::Closed(outcome),
        Err(error) => End::Lost(error.to_string()),
    }
}
