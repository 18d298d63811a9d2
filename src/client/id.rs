//! The id of a session, as a person or a script types it.

use std::{fmt, str::FromStr};

use zbus::OwnedObjectPath;

use super::SESSION_PATH;

/// Longest id that is accepted.
const ID_MAX: usize = 64;

/// The id of a session: 1 to 64 of `a-z`, `0-9` and `_`; opaque.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(String);

/// A text that is no session id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("session id {0:?} is not 1 to {ID_MAX} of a-z, 0-9 and '_'")]
pub struct SessionIdError(String);

impl SessionId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The session's object.
    ///
    /// # Panics
    /// Never: every id makes a valid path.
    #[must_use]
    pub fn path(&self) -> OwnedObjectPath {
        OwnedObjectPath::try_from(format!("{SESSION_PATH}/{}", self.0))
            .expect("a-z, 0-9 and '_' are the characters of an object path")
    }
}

impl FromStr for SessionId {
    type Err = SessionIdError;

    /// Takes an id, or the path of a session's object.
    fn from_str(text: &str) -> Result<Self, SessionIdError> {
        let id =
            text.strip_prefix(SESSION_PATH).and_then(|rest| rest.strip_prefix('/')).unwrap_or(text);
        let allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_';
        if (1..=ID_MAX).contains(&id.len()) && id.bytes().all(allowed) {
            Ok(Self(id.to_owned()))
        } else {
            Err(SessionIdError(text.to_owned()))
        }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_and_its_path_are_the_same_session() {
        let id: SessionId = "a1_b".parse().unwrap();
        assert_eq!(id.path().as_str(), "/org/st2/Tools/session/a1_b");
        assert_eq!(id.path().as_str().parse(), Ok(id));
    }

    #[test]
    fn what_could_be_another_path_is_refused() {
        for text in
            ["", "..", "a/b", "A", "a-b", "/org/st2/Tools/session/", "/etc", &"a".repeat(65)]
        {
            assert!(text.parse::<SessionId>().is_err(), "{text:?}");
        }
    }
}
