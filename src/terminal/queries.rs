//! What a tool asks of terminals, answered by exactly one party: the client that is shown the question, or else the
//! broker, so that a tool started before its viewer does not wait in vain.
//!
//! A client that goes before it was shown a question leaves it to the others that are shown it, or to the broker. Of
//! several clients that control a session each is shown every question: which of them answer is theirs to agree on.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tracing::debug;

use super::{screen::Query, shared::Shared, subscription::Subscription};

/// How long a question waits for a client to come that answers it: a session is opened first and attached to then.
const PATIENCE: Duration = Duration::from_millis(50);

/// A question that the tool has asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    /// The byte of the output before which it ends: at once, or a few KiB later where more was drawn in one piece.
    pub(super) at: u64,
    pub(super) query: Query,
}

/// Questions kept at most: more than a tool can ask and not read within [`PATIENCE`].
const MAX: usize = 256;

/// Questions that nobody is there to answer.
#[derive(Debug, Default)]
pub(super) struct Unanswered(Mutex<Vec<Asked>>);

impl Unanswered {
    /// A client comes that is shown the output from this byte on, and answers what it finds there: that.
    pub(super) fn leave_to_client(&self, from: u64) -> Vec<Asked> {
        self.lock().extract_if(.., |asked| asked.at > from).collect()
    }

    fn push(&self, asked: Vec<Asked>) {
        let mut all = self.lock();
        let room = MAX.saturating_sub(all.len());
        all.extend(asked.into_iter().take(room));
    }

    fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Questions that are left to clients, for as long as these may not have been shown them.
#[derive(Debug, Default)]
pub(super) struct Left {
    waiting: Vec<Asked>,
    /// Up to here a client that is gone was shown the output, and answered.
    shown: u64,
}

impl Left {
    /// Takes the questions that one of these clients is to answer; gives the others.
    pub(super) fn leave(&mut self, asked: Vec<Asked>, clients: &[Subscription]) -> Vec<Asked> {
        let mut nobodys = Vec::new();
        for asked in asked {
            if asked.at <= self.shown {
                continue;
            }
            if !clients.iter().any(|client| client.answers(asked.at)) {
                nobodys.push(asked);
            } else if !is_shown(asked, clients) {
                self.keep(asked, clients);
            }
        }
        nobodys
    }

    /// Keeps a question that no client was shown, if there is room or what they were shown makes some.
    fn keep(&mut self, asked: Asked, clients: &[Subscription]) {
        if self.waiting.len() == MAX {
            self.waiting.retain(|asked| !is_shown(*asked, clients));
        }
        if self.waiting.len() < MAX {
            self.waiting.push(asked);
        }
    }

    /// Notes how far a client came that is gone.
    pub(super) fn note(&mut self, gone: &Subscription) {
        if gone.kind.answers {
            self.shown = self.shown.max(gone.cursor);
        }
    }

    /// Gives the questions that nobody was shown who is gone, and none of these clients will be.
    pub(super) fn orphans(&mut self, clients: &[Subscription]) -> Vec<Asked> {
        let waiting = std::mem::take(&mut self.waiting);
        let (left, orphans) = waiting
            .into_iter()
            .filter(|asked| asked.at > self.shown)
            .partition(|asked| clients.iter().any(|client| client.answers(asked.at)));
        self.waiting = left;
        orphans
    }
}

/// Whether a client that answers this was shown it already.
fn is_shown(asked: Asked, clients: &[Subscription]) -> bool {
    clients.iter().any(|client| client.answers(asked.at) && client.cursor >= asked.at)
}

/// Answers these questions in a while, unless a client comes that does.
pub(super) fn answer_later(shared: &Arc<Shared>, asked: Vec<Asked>) {
    if asked.is_empty() {
        return;
    }
    shared.unanswered.push(asked);
    let (later, gone) = (shared.clone(), shared.gone.clone());
    tokio::spawn(gone.run_until_cancelled_owned(async move {
        tokio::time::sleep(PATIENCE).await;
        for asked in later.unanswered.take() {
            if let Err(error) = later.input.push(&answer(asked.query)) {
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
    use crate::terminal::subscription::{Kind, SubscriptionId};

    fn asked(at: u64) -> Asked {
        Asked { at, query: Query::Status }
    }

    fn client(begin: u64, cursor: u64, answers: bool) -> Subscription {
        let kind = Kind { answers, sizes: false };
        let id = SubscriptionId::test(1);
        Subscription { id, begin, cursor, until: None, cut: Default::default(), kind, told: None }
    }

    #[test]
    fn a_client_answers_what_it_is_shown() {
        let unanswered = Unanswered::default();
        unanswered.push(vec![asked(3), asked(5), asked(9)]);
        assert_eq!(unanswered.leave_to_client(5), [asked(9)]);
        assert_eq!(unanswered.take(), [asked(3), asked(5)]);
        assert!(unanswered.take().is_empty());
        unanswered.push(vec![asked(1); 100_000]);
        assert_eq!(unanswered.take().len(), MAX);
    }

    #[test]
    fn what_a_client_leaves_behind_is_answered_unless_another_is_shown_it() {
        let mut left = Left::default();
        let mut clients = vec![client(0, 0, true), client(8, 8, true), client(0, 0, false)];
        assert_eq!(left.leave(vec![asked(5), asked(10), asked(15)], &clients[2..]).len(), 3);
        assert!(left.leave(vec![asked(5), asked(10), asked(15)], &clients).is_empty());
        clients[0].cursor = 4;
        left.note(&clients.remove(0));
        assert_eq!(left.orphans(&clients), [asked(5)], "the other began later");
        clients[0].cursor = 10;
        left.note(&clients.remove(0));
        assert_eq!(left.orphans(&clients), [asked(15)], "it was shown the one before");
        assert!(left.orphans(&clients).is_empty());
        assert!(left.leave(vec![asked(10)], &clients).is_empty(), "drawn after it was shown");
    }

    #[test]
    fn what_is_left_to_clients_is_bounded_and_what_they_were_shown_is_forgotten() {
        let mut left = Left::default();
        let mut clients = vec![client(0, 0, true)];
        for at in 1..100_000 {
            assert!(left.leave(vec![asked(at)], &clients).is_empty());
        }
        assert_eq!(left.waiting.len(), MAX);
        clients[0].cursor = 100_000;
        left.leave(vec![asked(100_000), asked(100_001)], &clients);
        assert_eq!(left.waiting, [asked(100_001)]);
    }

    #[test]
    fn answers_are_those_of_a_terminal() {
        assert_eq!(answer(Query::Cursor { row: 3, column: 40 }), b"\x1b[3;40R");
        assert_eq!(answer(Query::Attributes), b"\x1b[?62;22c");
        assert_eq!(answer(Query::SecondaryAttributes), b"\x1b[>1;10;0c");
    }
}
