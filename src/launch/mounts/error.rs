//! Why there is no mount namespace for a tool.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Why a root of the tool's own cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The namespaces were refused: a sysctl, a limit, a security module, a change of root.
    #[error("cannot make a {what} namespace: {source}")]
    Namespace {
        /// Which: their kinds.
        what: &'static str,
        /// What unshare(2) gave.
        source: io::Error,
    },
    /// The identity of the user could not be kept in the new namespace.
    #[error("cannot write {file}: {source}")]
    Identity {
        /// The file of user_namespaces(7).
        file: &'static str,
        /// The call's error.
        source: io::Error,
    },
    /// The loopback interface of the new network namespace.
    #[error("cannot bring up the loopback interface: {source}")]
    Loopback {
        /// The call's error.
        source: io::Error,
    },
    /// A call about one path failed.
    #[error("cannot {what} {}: {source}", path.display())]
    Path {
        /// What was tried, as a verb and more.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// The call's error.
        source: io::Error,
    },
    /// A name leads elsewhere than when it was judged.
    #[error("{} is not any more what was granted", .0.display())]
    Changed(PathBuf),
    /// The working directory is not in the workspace.
    #[error("the working directory {} is not in the workspace {}", cwd.display(), workspace.display())]
    Astray {
        /// The one.
        cwd: PathBuf,
        /// The other.
        workspace: PathBuf,
    },
}

/// For `map_err`: what was tried, and where.
pub(super) fn at<E: Into<io::Error>>(
    what: &'static str,
    path: &Path,
) -> impl FnOnce(E) -> MountError {
    move |source| MountError::Path { what, path: path.to_owned(), source: source.into() }
}
