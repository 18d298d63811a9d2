//! What a tool asks of terminals, answered by exactly one party: the client that is shown the question, or else the
//! broker, so that a tool started before its viewer does not wait in vain.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tracing::debug;

use super::{screen::Query, shared::Shared};

/// How long a question waits for a client to come that answers it: a session is opened first and attached to then.
const PATIENCE: Duration = Duration::from_millis(50);

/// Questions that nobody has answered, each with the byte of the output after which it was asked.
#[derive(Debug, Default)]
pub(super) struct Unanswered(Mutex<Vec<(u64, Vec<u8>)>>);

impl Unanswered {
    /// Answers kept at most: more than a tool can ask and not read within [`PATIENCE`].
    const MAX: usize = 256;

    /// A client comes that is shown the output from this byte on, and answers what it finds there.
    pub(super) fn leave_to_client(&self, from: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(at, _)| *at < from);
    }

    fn push(&self, at: u64, answers: impl Iterator<Item = Vec<u8>>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = Self::MAX.saturating_sub(all.len());
        all.extend(answers.take(room).map(|answer| (at, answer)));
    }

    fn take(&self) -> Vec<(u64, Vec<u8>)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Answers these questions in a while, unless a client comes that does.
pub(super) fn answer_later(shared: &Arc<Shared>, at: u64, queries: &[Query]) {
    shared.unanswered.push(at, queries.iter().map(|query| answer(*query)));
    let (later, gone) = (shared.clone(), shared.gone.clone());
    tokio::spawn(gone.run_until_cancelled_owned(async move {
        tokio::time::sleep(PATIENCE).await;
        for (_, answer) in later.unanswered.take() {
            if let Err(error) = later.input.push(&answer) {
                debug!(%error, "a tool's question about its terminal stays unanswered");
            }
        }
    }));
}

/// What xterm would say: a VT220 with colours (DA1), without a patch level of its own (DA2).
fn answer(query: Query) -> Vec<u8> {
    match query {
        Query::Attributes => b"\x1b[?62;22c".to_vec(),
        Query::SecondaryAttributes => b"\x1b[>1;10;0c".to_vec(),
        Query::Status => b"\x1b[0n".to_vec(),
        Query::Cursor { row, column } => format!("\x1b[{row};{column}R").into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_answers_what_it_is_shown() {
        let unanswered = Unanswered::default();
        for at in [3, 5, 9] {
            unanswered.push(at, std::iter::once(answer(Query::Status)));
        }
        unanswered.leave_to_client(5);
        assert_eq!(unanswered.take(), [(3, b"\x1b[0n".to_vec())]);
        assert!(unanswered.take().is_empty());
        unanswered.push(0, std::iter::repeat_n(Vec::new(), 100_000));
        assert_eq!(unanswered.take().len(), Unanswered::MAX);
    }

    #[test]
    fn answers_are_those_of_a_terminal() {
        assert_eq!(answer(Query::Cursor { row: 3, column: 40 }), b"\x1b[3;40R");
        assert_eq!(answer(Query::Attributes), b"\x1b[?62;22c");
        assert_eq!(answer(Query::SecondaryAttributes), b"\x1b[>1;10;0c");
    }
}
