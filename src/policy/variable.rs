//! The name of an environment variable in a declaration.

use serde::Deserialize;

use crate::launch::environment;

/// The name of a variable that a declaration sets or lets pass.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct VariableName(String);

/// A variable that no declaration may set or let pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VariableError {
    /// Not a name.
    #[error("{0:?} is not the name of an environment variable")]
    NotAName(String),
    /// The broker sets it itself.
    #[error("{name} cannot be declared: {rule}")]
    Fixed {
        /// The name.
        name: String,
        /// When the broker sets it.
        rule: &'static str,
    },
    /// Never allowed.
    #[error("{name} never reaches a tool: {rule}")]
    Forbidden {
        /// The name.
        name: String,
        /// The rule.
        rule: &'static str,
    },
}

impl VariableName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for VariableName {
    type Error = VariableError;

    fn try_from(name: String) -> Result<Self, VariableError> {
        if !is_name(&name) {
            return Err(VariableError::NotAName(name));
        }
        if let Some(rule) = environment::forbidden(&name) {
            return Err(VariableError::Forbidden { name, rule });
        }
        if let Some(rule) = environment::fixed(&name) {
            return Err(VariableError::Fixed { name, rule });
        }
        Ok(Self(name))
    }
}

/// Letters, digits and `_`, not beginning with a digit, at most 128 (POSIX.1-2017, 8.1, but lower
/// case too).
fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.as_bytes()[0].is_ascii_digit()
}
