//! Names that the broker gives and takes: each is a type, checked where it is made.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A name that does not follow its rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// A tool name outside `[a-z0-9][a-z0-9-]{0,31}`.
    #[error("tool name {0:?} is not 1 to 32 of a-z, 0-9 and '-', beginning with a letter or digit")]
    Tool(String),
    /// A session id outside `[a-z0-9]{1,32}`.
    #[error("session id {0:?} is not 1 to 32 of a-z and 0-9")]
    Session(String),
}

/// The name of a tool in the catalogue: `[a-z0-9][a-z0-9-]{0,31}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(String);

/// The id of a session: short, opaque, `[a-z0-9]{1,32}`, never given twice by one broker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(String);

/// The name of a systemd unit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitName(String);

impl ToolName {
    /// Checks and takes a tool name.
    ///
    /// # Errors
    /// [`NameError::Tool`] where the rule is broken.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        let allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
        if (1..=32).contains(&name.len()) && name.bytes().all(allowed) && !name.starts_with('-') {
            Ok(Self(name))
        } else {
            Err(NameError::Tool(name))
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SessionId {
    /// Checks and takes a session id.
    ///
    /// # Errors
    /// [`NameError::Session`] where the rule is broken.
    pub fn new(id: impl Into<String>) -> Result<Self, NameError> {
        let id = id.into();
        let allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
        if (1..=32).contains(&id.len()) && id.bytes().all(allowed) {
            Ok(Self(id))
        } else {
            Err(NameError::Session(id))
        }
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl UnitName {
    /// The scope of a session: `app-st2tools-TOOL-ID.scope`, the tool's name escaped as systemd does.
    ///
    /// Of a tool name's characters only `-` is special in a unit name, where it separates slices
    /// (systemd.unit(5), "String Escaping for Inclusion in Unit Names").
    #[must_use]
    pub fn scope(tool: &ToolName, id: &SessionId) -> Self {
        let tool = tool.as_str().replace('-', "\\x2d");
        Self(format!("app-st2tools-{tool}-{}.scope", id.as_str()))
    }

    /// Takes a unit name that somebody else chose; the manager judges it.
    #[must_use]
    pub fn foreign(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ToolName {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        Self::new(name)
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> Self {
        name.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_named_as_systemd_escapes_it() {
        let tool = ToolName::new("git-add").unwrap();
        let id = SessionId::new("a1b2").unwrap();
        assert_eq!(UnitName::scope(&tool, &id).as_str(), "app-st2tools-git\\x2dadd-a1b2.scope");
    }

    #[test]
    fn names_outside_their_rule_are_refused() {
        for name in ["", "-a", "A", "a_b", "a.b", "a/b", "ä", &"a".repeat(33)] {
            assert!(ToolName::new(name).is_err(), "{name:?}");
        }
        for id in ["", "a-b", "A", "../a", &"a".repeat(33)] {
            assert!(SessionId::new(id).is_err(), "{id:?}");
        }
    }
}
