//! Paths inside the workspace that a profile keeps from being written.

use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use crate::launch::spec::Protected;

/// A path relative to the workspace; a slash at its end says that it is a directory.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ProtectedPath(Protected);

/// A path that cannot be protected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtectError {
    /// Not beneath the workspace by its names alone.
    #[error("path {0:?} is not relative to the workspace, of plain names without '.' and '..'")]
    NotPlain(String),
    /// A NUL byte.
    #[error("NUL byte in {0:?}")]
    Nul(String),
}

impl ProtectedPath {
    /// It, as the launcher gets it.
    #[must_use]
    pub fn protected(&self) -> &Protected {
        &self.0
    }
}

impl TryFrom<String> for ProtectedPath {
    type Error = ProtectError;

    fn try_from(written: String) -> Result<Self, ProtectError> {
        if written.contains('\0') {
            return Err(ProtectError::Nul(written));
        }
        let (names, directory) = match written.strip_suffix('/') {
            Some(names) => (names, true),
            None => (written.as_str(), false),
        };
        let path = Path::new(names);
        let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        // Components pass over empty names and dots.
        let normal = path.components().collect::<PathBuf>().as_os_str() == path.as_os_str();
        if names.is_empty() || !plain || !normal {
            return Err(ProtectError::NotPlain(written));
        }
        Ok(Self(Protected { beneath: None, path: path.to_owned(), directory }))
    }
}

/// What a profile protects that says nothing of it: what in a repository decides which programs git
/// runs.
#[must_use]
pub fn default_paths() -> Vec<ProtectedPath> {
    [(".git/hooks", true), (".git/config", false)]
        .map(|(path, directory)| {
            ProtectedPath(Protected { beneath: None, path: path.into(), directory })
        })
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(written: &str) -> Result<Protected, String> {
        let parsed = ProtectedPath::try_from(written.to_owned());
        parsed.map(|path| path.0).map_err(|error| error.to_string())
    }

    #[test]
    fn a_slash_at_the_end_makes_a_directory() {
        let hooks = Protected { beneath: None, path: ".git/hooks".into(), directory: true };
        let config = Protected { beneath: None, path: ".git/config".into(), directory: false };
        assert_eq!(parse(".git/hooks/"), Ok(hooks.clone()));
        assert_eq!(parse(".git/config"), Ok(config.clone()));
        let default: Vec<Protected> = default_paths().into_iter().map(|path| path.0).collect();
        assert_eq!(default, [hooks, config]);
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        for written in ["", "/", "//", "/etc", "..", "a/../b", "./a", "a//b", "a/.", "a//"] {
            let expected = format!(
                "path {written:?} is not relative to the workspace, of plain names without '.' and '..'"
            );
            assert_eq!(parse(written), Err(expected));
        }
        assert_eq!(parse("a\0b"), Err("NUL byte in \"a\\0b\"".to_owned()));
    }
}
