//! What claims a lease.

use std::fmt;

use super::{ClientError, sendable};

/// The token of a lease: whoever shows it may have the lease's sessions. It dies with a claim, which gives
/// another. Its `Debug` does not show it, so that no log does.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The token's text, to be kept where only its user can read it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The text, where it can be sent.
    pub(super) fn sendable(&self) -> Result<&str, ClientError> {
        sendable::text("token", &self.0)
    }
}

impl From<String> for Token {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Token {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}
