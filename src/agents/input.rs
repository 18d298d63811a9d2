//! What is typed into a session.

use super::{
    call::Call,
    entry::{End, Entry},
    failure::{Code, Failure},
    record::describe,
};
use crate::client::{ClientError, Session, WRITE_MAX};

/// Types into a session while nobody else does: what was asked for first is typed first, and each as a whole. The turn
/// is waited for before anything else.
///
/// # Errors
/// Those of `typing`; `SESSION_WRITE_FAILED` where nobody waits for it any more: what has begun is not dropped then.
pub async fn in_turn<T: Send + 'static>(
    entry: &Entry,
    call: &Call,
    typing: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    let cancelled = || Failure::recoverable(Code::SessionWriteFailed, "cancelled before typing");
    let turn = call.wait_long(entry.turn()).await.ok_or_else(cancelled)?;
    let typing = async move {
        let typed = typing.await;
        drop(turn);
        typed
    };
    call.see_through(Code::SessionWriteFailed, "typing", typing).await
}

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

/// Types bytes, and presses Enter after them.
///
/// # Errors
/// As [`type_bytes`].
pub async fn type_line(entry: &Entry, bytes: &[u8]) -> Result<(), Failure> {
    type_bytes(entry, bytes).await?;
    let typed = format!("{} bytes were taken, and Enter was not pressed", bytes.len());
    submit(entry).await.map_err(|failure| match bytes {
        [] => failure,
        _ => failure.after(typed),
    })
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
fn must_live(entry: &Entry) -> Result<(), Failure> {
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
    failure.after(format_args!("{taken} of {all} bytes were taken"))
}
