//! What is typed into a session.

use super::{
    entry::{End, Entry},
    failure::{Code, Failure},
    record::describe,
};
use crate::client::{ClientError, Session, WRITE_MAX};

/// Types bytes, as they are, in as many writes as it takes.
///
/// # Errors
/// `SESSION_NOT_HEALTHY` where it has ended, which says how; `SESSION_WRITE_FAILED` where not all was taken, which
/// says how much was.
pub async fn type_bytes(entry: &Entry, bytes: &[u8]) -> Result<(), Failure> {
    must_live(entry)?;
    let mut taken = 0;
    for piece in bytes.chunks(WRITE_MAX) {
        if let Err(error) = entry.session.write(piece).await {
            return Err(refused(&error, taken, bytes.len()));
        }
        taken += piece.len();
    }
    Ok(())
}

/// Presses Enter, in a write of its own.
///
/// # Errors
/// As [`type_bytes`].
pub async fn submit(entry: &Entry) -> Result<(), Failure> {
    act(entry, async |session| session.submit().await).await
}

/// Makes a call that types something, if the session lives.
///
/// # Errors
/// As [`type_bytes`].
pub async fn act<T>(
    entry: &Entry,
    call: impl AsyncFnOnce(&Session) -> Result<T, ClientError>,
) -> Result<T, Failure> {
    must_live(entry)?;
    call(&entry.session).await.map_err(|error| Failure::of(&error, Code::SessionWriteFailed))
}

/// Refuses input to what has ended.
///
/// # Errors
/// `SESSION_NOT_HEALTHY`, which says how it ended.
pub fn must_live(entry: &Entry) -> Result<(), Failure> {
    let why = match &entry.state().end {
        None => return Ok(()),
        Some(End::Closed(outcome)) => describe(outcome),
        Some(End::Lost(why)) => why.clone(),
    };
    let message = format!("session {} takes no input: {why}", entry.id());
    Err(Failure::lasting(Code::SessionNotHealthy, message))
}

fn refused(error: &ClientError, taken: usize, all: usize) -> Failure {
    let failure = Failure::of(error, Code::SessionWriteFailed);
    if taken == 0 {
        return failure;
    }
    Failure::recoverable(failure.code(), format!("{taken} of {all} bytes were taken: {error}"))
}
