//! Which sessions a call is about.

use super::{Error, options::Options};
use crate::engine::State;

/// What a session has to be.
#[derive(Debug, Default)]
pub struct Filter {
    /// The caller's own.
    pub own: bool,
    /// Of the lease with this token.
    pub token: Option<String>,
    phase: Option<String>,
    tool: Option<String>,
    labels: Vec<(String, String)>,
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// `InvalidArgs` for a known key with a wrong type or value.
    pub fn read(mut options: Options) -> Result<Self, Error> {
        let phases = ["opening", "running", "closing", "closed"].map(|phase| (phase, phase));
        let mut filter = Self {
            own: options.one_of("owner", &[("self", true)])?.unwrap_or(false),
            token: options.take("token")?,
            phase: options.one_of("phase", &phases)?.map(str::to_owned),
            tool: options.take("tool")?,
            labels: Vec::new(),
        };
        let labels: Vec<_> =
            options.rest().filter(|key| key.starts_with("label.")).map(str::to_owned).collect();
        for key in labels {
            if let Some(value) = options.take(&key)? {
                filter.labels.push((key["label.".len()..].to_owned(), value));
            }
        }
        Ok(filter)
    }

    /// Whether a session is one of them, as far as its state tells.
    #[must_use]
    pub fn admits(&self, state: &State) -> bool {
        let facts = &state.view.facts;
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        is(&self.phase, state.view.phase)
            && is(&self.tool, facts.tool.as_str())
            && self.labels.iter().all(|(name, value)| facts.labels.get(name) == Some(value))
    }
}
