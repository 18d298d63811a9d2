//! Ends sessions, and sees to it that they have ended.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use tokio::time::timeout;

use super::{
    call::Call,
    entry::Entry,
    failure::{Code, Failure},
    record::record,
};
use serde_json::Value;

/// How sessions are to be ended.
#[derive(Debug, Clone, Copy)]
pub enum How {
    /// Asked to end, and killed after so long.
    Gently(Duration),
    /// Killed.
    AtOnce,
}

/// Beyond its time to end gently: until its processes are gone, and its last output is read.
const CONFIRMED: Duration = Duration::from_secs(10);

/// Ends sessions, all at the same time; gives the record of each. They end also if nobody waits any more.
///
/// # Errors
/// `SESSION_CLOSE_FAILED` where the end of one is not confirmed in time.
pub async fn end_all(
    entries: Vec<Arc<Entry>>,
    how: How,
    call: &Call,
) -> Result<Vec<Value>, Failure> {
    let ending = async move {
        let ended = join_all(entries.iter().map(|entry| end(entry, how))).await;
        ended.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok(join_all(entries.iter().map(|entry| record(entry))).await)
    };
    call.see_through(Code::SessionCloseFailed, "ending", ending).await
}

/// Ends one; no error where it has ended.
///
/// # Errors
/// `SESSION_CLOSE_FAILED` where the end is not confirmed in time.
pub async fn end(entry: &Entry, how: How) -> Result<(), Failure> {
    let patience = match how {
        How::Gently(patience) => patience,
        How::AtOnce => Duration::ZERO,
    };
    let ending = async {
        if !entry.has_ended() {
            let asked = match how {
                How::Gently(patience) => entry.session.close(Some(patience)).await,
                How::AtOnce => entry.session.kill().await,
            };
            // Where the broker is gone or has forgotten it, whoever follows it says so.
            if let Err(error) = asked
                && error.refusal().is_some()
                && !entry.has_ended()
            {
                return Err(Failure::of(&error, Code::SessionCloseFailed));
            }
        }
        entry.ended().await;
        Ok(())
    };
    let late = || {
        let message = format!("the end of session {} is not confirmed yet", entry.id());
        Failure::recoverable(Code::SessionCloseFailed, message)
    };
    timeout(patience + CONFIRMED, ending).await.unwrap_or_else(|_| Err(late()))
}
