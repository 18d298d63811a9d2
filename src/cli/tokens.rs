//! The tokens of sessions that this user opened with `open`: one file a session, for this user alone.

use std::{
    collections::BTreeSet,
    env,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::error::CliError;
use crate::client::{Dict, SessionId};

/// Longest token that is read back, bytes.
const TOKEN_MAX: u64 = 1024;

/// Keeps a session's token. There are never more than sessions: see [`forget_others`].
pub(super) fn keep(id: &SessionId, token: &str) -> Result<(), CliError> {
    let unset = || io::Error::other("XDG_RUNTIME_DIR is not an absolute path");
    let directory = directory().ok_or_else(|| CliError::Token {
        path: PathBuf::from("$XDG_RUNTIME_DIR/st2-tools/tokens"),
        source: unset(),
    })?;
    write(&directory, id, token).map_err(|source| CliError::Token { path: directory, source })
}

/// The kept token of a session.
pub(super) fn find(id: &SessionId) -> Option<String> {
    read(&directory()?, id)
}

/// Drops the token of a session that is over, or that another claimed.
pub(super) fn forget(id: &SessionId) {
    if let Some(directory) = directory() {
        // One that is not there is as good as removed.
        let _ = fs::remove_file(directory.join(id.as_str()));
    }
}

/// Drops the tokens of all sessions but the live ones among these rows of `ListSessions`.
pub(super) fn forget_others(rows: &[Dict]) {
    let live = rows
        .iter()
        .filter(|row| row.text("Phase") != Some("closed"))
        .filter_map(|row| row.text("Id").map(str::to_owned));
    if let Some(directory) = directory() {
        retain(&directory, &live.collect());
    }
}

fn directory() -> Option<PathBuf> {
    let runtime = PathBuf::from(env::var_os("XDG_RUNTIME_DIR")?);
    runtime.is_absolute().then(|| runtime.join("st2-tools/tokens"))
}

/// Written beside its place and moved there: a reader sees a whole token or none.
fn write(directory: &Path, id: &SessionId, token: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    check_private(directory)?;
    let new = directory.join(format!(".{id}.{}", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)
        .and_then(|mut file| writeln!(file, "{token}"))
        .and_then(|()| fs::rename(&new, directory.join(id.as_str())));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

/// Refuses a directory that somebody else could read or change.
fn check_private(directory: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(directory)?;
    let ours = found.uid() == nix::unistd::geteuid().as_raw();
    if found.is_dir() && ours && found.mode() & 0o077 == 0 {
        Ok(())
    } else {
        Err(io::Error::other("it is not a directory of this user alone (mode 0700)"))
    }
}

fn read(directory: &Path, id: &SessionId) -> Option<String> {
    check_private(directory).ok()?;
    let file = fs::File::open(directory.join(id.as_str())).ok()?;
    let mut text = String::new();
    file.take(TOKEN_MAX).read_to_string(&mut text).ok()?;
    let token = text.trim_end();
    (!token.is_empty()).then(|| token.to_owned())
}

/// Files that a crash left half written have names that no session has: they go as well.
fn retain(directory: &Path, live: &BTreeSet<String>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let kept = entry.file_name().to_str().is_some_and(|name| live.contains(name));
        if !kept {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf, SessionId) {
        let runtime = tempfile::tempdir().unwrap();
        let directory = runtime.path().join("st2-tools/tokens");
        (runtime, directory, "a1".parse().unwrap())
    }

    #[test]
    fn a_token_is_kept_for_its_user_alone() {
        let (_runtime, directory, id) = place();
        write(&directory, &id, "old").unwrap();
        write(&directory, &id, "id-secret").unwrap();
        assert_eq!(read(&directory, &id).as_deref(), Some("id-secret"));
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&directory), mode(&directory.join("a1"))), (0o700, 0o600));
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "nothing half written is left");
    }

    #[test]
    fn a_directory_that_others_can_enter_is_not_used() {
        let (_runtime, directory, id) = place();
        write(&directory, &id, "id-secret").unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(read(&directory, &id), None);
        assert!(write(&directory, &id, "id-secret").is_err());
    }

    #[test]
    fn only_live_sessions_keep_theirs() {
        let (_runtime, directory, id) = place();
        let over: SessionId = "b2".parse().unwrap();
        write(&directory, &id, "one").unwrap();
        write(&directory, &over, "two").unwrap();
        retain(&directory, &BTreeSet::from(["a1".to_owned()]));
        assert_eq!(read(&directory, &id).as_deref(), Some("one"));
        assert_eq!(read(&directory, &over), None);
    }
}
