//! What the engine tells of its own accord: in order, and never more than one notice of each kind for a session,
//! however much happens before it is heard.
//!
//! The engine waits for nobody. A session more that could be told of comes by an `Open`, and the answer to that waits
//! for the reader of the notices: so that a bus that nobody reads costs a bounded amount, too.

use std::{
    collections::{HashSet, VecDeque},
    fmt,
    sync::Arc,
};

use tokio::sync::watch;

use crate::broker::name::SessionId;

/// One thing that the engine tells.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Notice {
    /// A session opened.
    Opened(SessionId),
    /// Something that can be seen of it changed: what it is now is in its state.
    Changed(SessionId),
    /// It ended.
    Closed(SessionId),
    /// It is forgotten.
    Retired(SessionId),
}

impl Notice {
    /// The session that it is about.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        match self {
            Self::Opened(id) | Self::Changed(id) | Self::Closed(id) | Self::Retired(id) => id,
        }
    }
}

/// What was told and not heard yet.
#[derive(Default)]
struct Board {
    waiting: VecDeque<Notice>,
    present: HashSet<Notice>,
    /// Nothing will be told any more.
    is_over: bool,
}

/// Where the notices are heard.
#[derive(Debug)]
pub struct Notices(Arc<watch::Sender<Board>>);

/// Where they are told; the end of this is theirs.
#[derive(Debug)]
pub(super) struct Teller(Arc<watch::Sender<Board>>);

/// Both ends, with nothing told.
pub(super) fn board() -> (Teller, Notices) {
    let board = Arc::new(watch::Sender::default());
    (Teller(board.clone()), Notices(board))
}

impl Teller {
    /// Tells, unless the same waits to be heard.
    pub fn tell(&self, notice: Notice) {
        self.0.send_if_modified(|board| {
            let is_new = board.present.insert(notice.clone());
            if is_new {
                board.waiting.push_back(notice);
            }
            is_new
        });
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.0.send_modify(|board| board.is_over = true);
    }
}

impl Notices {
    /// Waits for the oldest that was not heard yet; `None` where nothing will be told any more. What was waited for in
    /// vain is not lost.
    pub async fn next(&mut self) -> Option<Notice> {
        let mut changes = self.0.subscribe();
        let told = changes.wait_for(|board| !board.waiting.is_empty() || board.is_over).await;
        told.map(drop).expect("the sender is borrowed from self, hence alive");
        let mut next = None;
        self.0.send_if_modified(|board| {
            next = board.waiting.pop_front().and_then(|notice| board.present.take(&notice));
            false
        });
        next
    }
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.waiting).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SessionId {
        SessionId::new(text).unwrap()
    }

    #[tokio::test]
    async fn what_waits_to_be_heard_is_told_once_and_all_in_order() {
        let (teller, mut notices) = board();
        let [one, two] = ["aaaaaaaaaaaa", "bbbbbbbbbbbb"].map(id);
        teller.tell(Notice::Opened(one.clone()));
        for _ in 0..100_000 {
            teller.tell(Notice::Changed(one.clone()));
            teller.tell(Notice::Changed(two.clone()));
        }
        teller.tell(Notice::Closed(one.clone()));
        assert_eq!(notices.0.borrow().waiting.len(), 4);
        let mut told = Vec::new();
        for _ in 0..2 {
            told.extend(notices.next().await);
        }
        teller.tell(Notice::Changed(one.clone()));
        teller.tell(Notice::Changed(two.clone()));
        drop(teller);
        while let Some(notice) = notices.next().await {
            told.push(notice);
        }
        let wanted = [
            Notice::Opened(one.clone()),
            Notice::Changed(one.clone()),
            Notice::Changed(two),
            Notice::Closed(one.clone()),
            Notice::Changed(one),
        ];
        assert_eq!(told, wanted);
        assert!(notices.0.borrow().present.is_empty());
    }

    #[tokio::test]
    async fn who_listens_first_hears_what_is_told_later() {
        let (teller, mut notices) = board();
        let hearing = tokio::spawn(async move { (notices.next().await, notices.next().await) });
        tokio::task::yield_now().await;
        teller.tell(Notice::Retired(id("aaaaaaaaaaaa")));
        tokio::task::yield_now().await;
        drop(teller);
        let heard = hearing.await.unwrap();
        assert_eq!(heard, (Some(Notice::Retired(id("aaaaaaaaaaaa"))), None));
    }
}
