//! A directory of a repository, opened once: everything in it is reached by its descriptor, and no
//! symlink is followed.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
};

use nix::{
    fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat2},
    sys::stat::{FileStat, SFlag, fstat, fstatat},
    unistd::Uid,
};

use super::RepositoryError;
use crate::policy::{
    beneath,
    workspace::{Opened, path_of},
};

/// Longest file that names a directory, bytes: a path, and a word before it.
pub const LINK_MAX: u64 = 4096;

pub(super) struct Directory {
    fd: OwnedFd,
    path: PathBuf,
    stat: FileStat,
}

impl Directory {
    /// One that is open already.
    pub(super) fn opened(opened: &Opened) -> Result<Self, RepositoryError> {
        let fd = opened.fd.try_clone().map_err(|error| unread(&opened.path, &error))?;
        Self::of(fd, &opened.path)
    }

    fn of(fd: OwnedFd, named: &Path) -> Result<Self, RepositoryError> {
        let path = path_of(&fd).map_err(|error| unread(named, &error))?;
        let stat = fstat(&fd).map_err(|errno| unread(named, &errno.into()))?;
        Ok(Self { fd, path, stat })
    }

    /// Its canonical path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.stat.st_dev, self.stat.st_ino) == (other.stat.st_dev, other.stat.st_ino)
    }

    pub(super) fn check_owner(&self, user: Uid) -> Result<(), RepositoryError> {
        let own = self.stat.st_uid == user.as_raw();
        if own { Ok(()) } else { Err(RepositoryError::Owner(self.path.clone())) }
    }

    /// The kind of an entry, if there is one.
    pub(super) fn kind(&self, name: &str) -> Option<SFlag> {
        let stat = fstatat(&self.fd, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
        Some(SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT)
    }

    /// Whether a symlink leads to a directory in this one.
    pub(super) fn leads_inside(&self, name: &str) -> bool {
        beneath::open(&self.fd, Path::new(name), directory()).is_ok()
    }

    /// Opens the directory that its file `link` names, absolute or relative to this one.
    pub(super) fn named(&self, link: &str, path: &Path) -> Result<Self, RepositoryError> {
        let opened = openat2(&self.fd, path, directory().resolve(no_symlinks()));
        let fd = opened.map_err(|errno| RepositoryError::Unreachable {
            link: self.path.join(link),
            path: path.to_owned(),
            cause: errno.into(),
        })?;
        Self::of(fd, path)
    }

    /// The only line of a file in it.
    pub(super) fn line(&self, name: &str, user: Uid) -> Result<OsString, RepositoryError> {
        let path = self.path.join(name);
        let bytes = self.read(name, LINK_MAX).map_err(|error| unread(&path, &error))?;
        let Some((bytes, owner)) = bytes else { return Err(RepositoryError::NotAFile(path)) };
        if owner != user.as_raw() {
            return Err(RepositoryError::Owner(path));
        }
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let whole = bytes.len() as u64 <= LINK_MAX && !line.is_empty();
        if whole && !line.iter().any(u8::is_ascii_control) {
            Ok(OsStr::from_bytes(line).to_owned())
        } else {
            Err(RepositoryError::NotALine(path))
        }
    }

    /// The content of a regular file in it and the file's owner; of a longer one, one byte more than
    /// `most`. None where it is no regular file.
    pub(super) fn read(&self, name: &str, most: u64) -> io::Result<Option<(Vec<u8>, u32)>> {
        // Without waiting: a pipe would hold the broker until somebody writes.
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let resolve = no_symlinks() | ResolveFlag::RESOLVE_BENEATH;
        let file =
            File::from(openat2(&self.fd, name, OpenHow::new().flags(flags).resolve(resolve))?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes)?;
        Ok(Some((bytes, metadata.uid())))
    }
}

fn directory() -> OpenHow {
    OpenHow::new().flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
}

fn no_symlinks() -> ResolveFlag {
    ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS
}

fn unread(path: &Path, error: &io::Error) -> RepositoryError {
    RepositoryError::Read { path: path.to_owned(), cause: error.into() }
}
