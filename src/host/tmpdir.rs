//! Private `TMPDIR`s: one directory per broker, locked for as long as it lives, and in it one per session.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use nix::{
    dir::Dir,
    errno::Errno,
    fcntl::{AtFlags, OFlag, openat},
    sys::stat::{FileStat, Mode, fstat, fstatat, mkdirat},
    unistd::{UnlinkatFlags, geteuid, unlinkat},
};

use super::{HostError, remove};
use crate::broker::name::SessionId;

/// How long one removal may take before it gives up and leaves the rest to a later sweep.
const REMOVAL: Duration = Duration::from_secs(30);

/// How to open a directory that is nobody's symbolic link.
const DIRECTORY: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// A broker's directory of private directories. One that nobody locks was left by a broker that died.
#[derive(Debug, Clone)]
pub struct TmpRoot(Arc<Root>);

#[derive(Debug)]
struct Root {
    parent: OwnedFd,
    name: String,
    path: PathBuf,
    /// The lock lives as long as the descriptor.
    directory: File,
}

/// The private directory of one session: named for the tool, held by descriptor here.
#[derive(Debug)]
pub struct TmpDir {
    root: TmpRoot,
    name: String,
    directory: OwnedFd,
}

impl TmpRoot {
    /// Makes and locks `st2-tools-UID-RANDOM` in an existing directory, which others may write
    /// (`/tmp`).
    ///
    /// # Errors
    /// [`HostError::System`].
    pub fn create(parent: &Path) -> Result<Self, HostError> {
        let failed =
            |source| HostError::system("make the directory of private directories", source);
        let parent = parent.canonicalize().map_err(failed)?;
        loop {
            // A sweep may take the new directory for a stale one until it is locked: then once more.
            if let Some(root) = Root::create(&parent).map_err(failed)? {
                return Ok(Self(Arc::new(root)));
            }
        }
    }

    /// Removes what brokers of this user left that are gone; gives how many.
    ///
    /// # Errors
    /// [`HostError::System`] where `parent` cannot be read. What cannot be removed is logged and left.
    pub fn sweep(parent: &Path) -> Result<usize, HostError> {
        let failed = |source| HostError::system("look for left private directories", source);
        let parent = File::open(parent).map_err(failed)?;
        let mut swept = 0;
        for name in names(&parent).map_err(failed)? {
            match sweep_one(parent.as_fd(), &name) {
                Ok(was_stale) => swept += usize::from(was_stale),
                Err(error) => tracing::warn!(name, %error, "cannot sweep a private directory"),
            }
        }
        Ok(swept)
    }

    /// Makes the private directory of a session, mode 0700.
    ///
    /// # Errors
    /// [`HostError::System`]: `EEXIST` where the session has one, `ENOSPC`, `EDQUOT`.
    pub fn make(&self, id: &SessionId) -> Result<TmpDir, HostError> {
        let failed = |errno: Errno| HostError::system("make the private directory", errno);
        let name = id.as_str().to_owned();
        mkdirat(&self.0.directory, name.as_str(), Mode::S_IRWXU).map_err(failed)?;
        let flags = OFlag::O_PATH | DIRECTORY;
        match openat(&self.0.directory, name.as_str(), flags, Mode::empty()) {
            Ok(directory) => Ok(TmpDir { root: self.clone(), name, directory }),
            Err(errno) => {
                let _ = unlinkat(&self.0.directory, name.as_str(), UnlinkatFlags::RemoveDir);
                Err(failed(errno))
            }
        }
    }

    /// Removes it and all in it now, not with the last clone: for a program that ends before every clone is dropped.
    /// Blocks. What cannot be removed is logged and left to a later sweep.
    pub fn remove(&self) {
        self.0.remove();
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }
}

impl Root {
    /// `None` where a sweep was faster than the lock.
    fn create(parent: &Path) -> io::Result<Option<Self>> {
        let name = format!("{}{:016x}", prefix(), getrandom::u64().map_err(io::Error::other)?);
        let path = parent.join(&name);
        let parent = OwnedFd::from(File::open(parent)?);
        mkdirat(&parent, name.as_str(), Mode::S_IRWXU)?;
        let directory = match openat(&parent, name.as_str(), DIRECTORY, Mode::empty()) {
            Ok(directory) => File::from(directory),
            Err(Errno::ENOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let locked = directory.try_lock().is_ok();
        let root = Self { parent, name, path, directory };
        Ok((locked && root.is_in_place()).then_some(root))
    }

    fn is_in_place(&self) -> bool {
        is_same(self.parent.as_fd(), &self.name, self.directory.as_fd())
    }

    fn remove(&self) {
        if !self.is_in_place() {
            return;
        }
        let removed = remove::tree(self.parent.as_fd(), OsStr::new(&self.name), REMOVAL);
        if let Err(error) = removed {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove private directories");
        }
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        self.remove();
    }
}

impl TmpDir {
    /// Where it is, for `TMPDIR`. The tool can put nothing else there, but no use is made of it here.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.root.0.path.join(&self.name)
    }

    /// Removes it and all in it, as the descriptor knows it. Blocks: a tool may have left much.
    ///
    /// # Errors
    /// [`HostError::System`] where something is left, such as a mount; it goes with the root or a later
    /// sweep. `ETIMEDOUT` after half a minute.
    pub fn remove(self) -> Result<(), HostError> {
        let failed = |source: io::Error| HostError::system("remove the private directory", source);
        let root = &self.root.0.directory;
        if !is_same(root.as_fd(), &self.name, self.directory.as_fd()) {
            return Err(failed(Errno::ESTALE.into()));
        }
        remove::tree(root.as_fd(), OsStr::new(&self.name), REMOVAL).map_err(failed)
    }
}

impl AsFd for TmpDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// What every root of this user begins with.
fn prefix() -> String {
    format!("st2-tools-{}-", geteuid())
}

/// Names in a directory that could be roots of this user.
fn names(parent: &File) -> io::Result<Vec<String>> {
    let prefix = prefix();
    let mut names = Vec::new();
    let mut entries = Dir::openat(parent, ".", DIRECTORY, Mode::empty())?;
    for entry in entries.iter() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        names.extend(name.to_str().filter(|name| name.starts_with(&prefix)).map(str::to_owned));
    }
    Ok(names)
}

/// Removes one root if it is this user's and nobody locks it. What is another's is not even opened.
fn sweep_one(parent: BorrowedFd<'_>, name: &str) -> io::Result<bool> {
    let found = fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    if found.st_uid != geteuid().as_raw() || found.st_mode & libc::S_IFMT != libc::S_IFDIR {
        return Ok(false);
    }
    let directory = File::from(openat(parent, name, DIRECTORY, Mode::empty())?);
    if directory.try_lock().is_err() || !is_same(parent, name, directory.as_fd()) {
        return Ok(false);
    }
    remove::tree(parent, OsStr::new(name), REMOVAL)?;
    Ok(true)
}

/// Whether a name in a directory still means what the descriptor holds.
fn is_same(parent: BorrowedFd<'_>, name: &str, held: BorrowedFd<'_>) -> bool {
    let identity = |stat: FileStat| (stat.st_dev, stat.st_ino);
    let named = fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW).map(identity);
    named.is_ok() && named == fstat(held).map(identity)
}

#[cfg(test)]
mod tests;
