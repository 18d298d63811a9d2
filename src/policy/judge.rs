//! The one place that judges requests: the catalogue as it is on disk now, and what it is judged with.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    catalogue::{Catalogue, ToolRow},
    explain::{self, Explanation},
    refusal::Refusal,
    request::Request,
    resolve,
    resolved::Resolved,
    surroundings::Surroundings,
};
use crate::{broker::name::SessionId, config::Settings};

/// Judges requests. Each call reads files, for about a millisecond at most on a local disk: it belongs on a thread
/// that may block.
#[derive(Debug)]
pub struct Judge {
    catalogue: Mutex<Catalogue>,
    surroundings: Surroundings,
    settings: Arc<Settings>,
    tmp_root: PathBuf,
}

impl Judge {
    /// Judges by a catalogue; sessions' `TMPDIR`s will be in `tmp_root`.
    #[must_use]
    pub fn new(
        catalogue: Catalogue,
        surroundings: Surroundings,
        settings: Arc<Settings>,
        tmp_root: PathBuf,
    ) -> Self {
        log_faults(&catalogue);
        Self { catalogue: Mutex::new(catalogue), surroundings, settings, tmp_root }
    }

    /// Judges a request for a session that is to be opened.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn resolve(
        &self,
        id: &SessionId,
        tool: &str,
        request: &Request,
    ) -> Result<Resolved, Refusal> {
        let tmpdir = self.tmp_root.join(id.as_str());
        let catalogue = self.catalogue();
        resolve::resolve(&catalogue, tool, request, &self.surroundings, &self.settings, &tmpdir)
    }

    /// Judges a request, and opens nothing.
    #[must_use]
    pub fn explain(&self, tool: &str, request: &Request) -> Explanation {
        let tmpdir = self.tmp_root.join("SESSION");
        let catalogue = self.catalogue();
        explain::explain(&catalogue, tool, request, &self.surroundings, &self.settings, &tmpdir)
    }

    /// Every declared tool, those that are disabled with their reason.
    #[must_use]
    pub fn tools(&self) -> Vec<ToolRow> {
        self.catalogue().rows()
    }

    /// Landlock's ABI in force, 0 where there is none.
    #[must_use]
    pub fn landlock_abi(&self) -> u32 {
        resolve::landlock_abi(&self.surroundings, &self.settings)
    }

    /// The best tier here; none where nothing can be confined.
    #[must_use]
    pub fn tier(&self) -> Option<crate::launch::report::Tier> {
        resolve::tier(&self.surroundings, &self.settings).ok()
    }

    /// Limits and caps.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The catalogue, read again where its files changed.
    fn catalogue(&self) -> MutexGuard<'_, Catalogue> {
        let mut catalogue = self.catalogue.lock().unwrap_or_else(PoisonError::into_inner);
        if catalogue.refresh() {
            log_faults(&catalogue);
        }
        catalogue
    }
}

fn log_faults(catalogue: &Catalogue) {
    for fault in catalogue.faults() {
        tracing::warn!("not in force: {fault}");
    }
}
