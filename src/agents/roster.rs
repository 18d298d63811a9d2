//! The sessions of this server, and no others: what another client has opened is not in it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    entry::Entry,
    failure::{Code, Failure},
};

/// The sessions of this server, by the broker's id.
#[derive(Debug)]
pub struct Roster {
    entries: Mutex<BTreeMap<String, Arc<Entry>>>,
    /// How many that have ended are kept.
    ended: usize,
}

impl Roster {
    /// An empty one.
    #[must_use]
    pub fn new(ended: usize) -> Self {
        Self { entries: Mutex::default(), ended }
    }

    /// Takes a session in, unless it is there already; gives the one that is there now. Those that ended first make
    /// room.
    pub fn add(&self, entry: Arc<Entry>) -> Arc<Entry> {
        let mut entries = self.lock();
        let id = entry.session.id().as_str().to_owned();
        let entry = entries.entry(id).or_insert(entry).clone();
        let mut ended: Vec<_> = entries
            .iter()
            .filter(|(_, entry)| entry.has_ended())
            .map(|(id, entry)| (entry.facts.created_usec, id.clone()))
            .collect();
        ended.sort();
        for (_, id) in ended.iter().rev().skip(self.ended) {
            entries.remove(id);
        }
        entry
    }

    /// The session that the broker calls so.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Arc<Entry>> {
        self.lock().get(id).cloned()
    }

    /// The session of this id.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND`: never opened here, or forgotten.
    pub fn find(&self, id: &str) -> Result<Arc<Entry>, Failure> {
        Entry::broker_id(id).and_then(|id| self.get(id)).ok_or_else(|| {
            Failure::lasting(Code::SessionNotFound, format!("this server has no session {id:?}"))
        })
    }

    /// All that have these labels, the newest first.
    #[must_use]
    pub fn labelled(&self, labels: &BTreeMap<String, String>) -> Vec<Arc<Entry>> {
        let mut all: Vec<_> =
            self.lock().values().filter(|entry| entry.is_labelled(labels)).cloned().collect();
        all.sort_by_key(|entry| std::cmp::Reverse(entry.facts.created_usec));
        all
    }

    /// Forgets a session.
    pub fn forget(&self, entry: &Entry) {
        self.lock().remove(entry.session.id().as_str());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
