//! Mounts that are attached nowhere yet, and the new root that they are attached to.

use std::{
    ffi::{CStr, CString, OsStr},
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Component, Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{OFlag, openat},
    sys::stat::{Mode, SFlag, fstat, mkdirat},
    unistd::symlinkat,
};

use super::calls;

/// Which file something is, on any mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: libc::dev_t,
    inode: libc::ino_t,
}

impl Identity {
    pub(super) fn of(file: impl AsFd) -> io::Result<Self> {
        let stat = fstat(file)?;
        Ok(Self { device: stat.st_dev, inode: stat.st_ino })
    }
}

/// A mount, with its whole tree.
#[derive(Debug)]
pub(super) struct Tree(OwnedFd);

impl Tree {
    /// An empty file system in memory: its options, its attributes.
    pub(super) fn tmpfs(options: &[(&CStr, &CStr)], attributes: u64) -> io::Result<Self> {
        calls::new_mount(c"tmpfs", options, attributes).map(Self)
    }

    /// Terminals of its own.
    pub(super) fn devpts() -> io::Result<Self> {
        let options = [(c"mode", c"0620"), (c"ptmxmode", c"0666")];
        calls::new_mount(c"devpts", &options, calls::NOSUID | calls::NOEXEC).map(Self)
    }

    /// What is at a path now; the last name is not followed.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        calls::copy_mount(libc::AT_FDCWD, &c_string(path.as_os_str())?).map(Self)
    }

    /// The working directory, which comes along into a new namespace.
    pub(super) fn of_cwd() -> io::Result<Self> {
        calls::copy_mount(libc::AT_FDCWD, c"").map(Self)
    }

    /// What a descriptor names that was opened in this namespace.
    pub(super) fn of(file: BorrowedFd<'_>) -> io::Result<Self> {
        calls::copy_mount(file.as_raw_fd(), c"").map(Self)
    }

    /// Another descriptor of the same mount.
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Adds attributes to all of it.
    pub(super) fn restrict(&self, attributes: u64) -> io::Result<()> {
        calls::set(self.as_fd(), attributes)
    }

    /// Puts it on top of what a descriptor names.
    pub(super) fn attach(&self, target: impl AsFd) -> io::Result<()> {
        calls::attach(self.as_fd(), target.as_fd())
    }
}

impl AsFd for Tree {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Opens one name in a directory, and never what a symlink names.
pub(super) fn open(directory: impl AsFd, name: &OsStr) -> nix::Result<OwnedFd> {
    open_as(directory, name, OFlag::empty())
}

fn open_as(directory: impl AsFd, name: &OsStr, kind: OFlag) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(directory, name, flags | kind, Mode::empty())
}

/// The kind of file: the format bits of its mode.
pub(super) fn kind(file: impl AsFd) -> nix::Result<SFlag> {
    fstat(file).map(|stat| SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT)
}

/// Makes an empty directory or file that was not there.
pub(super) fn make(directory: impl AsFd, name: &OsStr, is_directory: bool) -> nix::Result<()> {
    if is_directory {
        return mkdirat(directory, name, Mode::from_bits_truncate(0o755));
    }
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    openat(directory, name, flags, Mode::from_bits_truncate(0o644)).map(drop)
}

/// Makes a name in a file system of ours. A directory is the tool's alone, as some that lead to sockets
/// have to be: gpg(1) wants the runtime directory so.
fn make_way(directory: impl AsFd, name: &OsStr, is_directory: bool) -> nix::Result<()> {
    if is_directory {
        return mkdirat(directory, name, Mode::S_IRWXU);
    }
    make(directory, name, false)
}

/// The root to be, and which of its file systems are ours to make names in.
#[derive(Debug)]
pub(super) struct NewRoot {
    top: Tree,
    ours: Vec<libc::dev_t>,
    /// The directory that was looked into last: what is mounted next lies beside or beneath it.
    here: (PathBuf, OwnedFd),
}

impl NewRoot {
    /// `empty` says whether the top is a file system of ours.
    pub(super) fn new(top: Tree, empty: bool) -> io::Result<Self> {
        let ours = if empty { vec![Identity::of(&top)?.device] } else { Vec::new() };
        let here = (PathBuf::from("/"), top.as_fd().try_clone_to_owned()?);
        Ok(Self { top, ours, here })
    }

    pub(super) fn top(&self) -> &Tree {
        &self.top
    }

    /// Counts a file system as ours.
    pub(super) fn own(&mut self, file: impl AsFd) -> io::Result<()> {
        self.ours.push(Identity::of(file)?.device);
        Ok(())
    }

    /// Opens an absolute path in the new root, making what of it is missing where that is ours.
    ///
    /// Nothing may be mounted later on a directory that a place was opened in.
    ///
    /// # Errors
    /// `ENOENT` where a name is missing in a place that is not ours, `ENOTDIR` for a symlink or
    /// another file on the way, `EINVAL` for a path that is not absolute and plain.
    pub(super) fn place(&mut self, path: &Path, is_directory: bool) -> io::Result<OwnedFd> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::EINVAL.into());
        };
        self.look_into(parent)?;
        self.step(name, is_directory)
    }

    /// Goes to a directory, from where we are or from the top.
    fn look_into(&mut self, path: &Path) -> io::Result<()> {
        if !path.starts_with(&self.here.0) {
            self.here = (PathBuf::from("/"), self.top.as_fd().try_clone_to_owned()?);
        }
        let rest = path.strip_prefix(&self.here.0).map_err(|_| Errno::EINVAL)?;
        for part in rest.components() {
            let Component::Normal(name) = part else { return Err(Errno::EINVAL.into()) };
            let next = self.step(name, true)?;
            self.here = (self.here.0.join(name), next);
        }
        Ok(())
    }

    /// Opens one name where we are, making it where that is ours.
    fn step(&self, name: &OsStr, is_directory: bool) -> io::Result<OwnedFd> {
        let here = &self.here.1;
        let kind = if is_directory { OFlag::O_DIRECTORY } else { OFlag::empty() };
        match open_as(here, name, kind) {
            Err(Errno::ENOENT) if self.is_ours(here)? => {
                make_way(here, name, is_directory)?;
                Ok(open_as(here, name, kind)?)
            }
            other => Ok(other?),
        }
    }

    fn is_ours(&self, directory: impl AsFd) -> io::Result<bool> {
        Ok(self.ours.contains(&Identity::of(directory)?.device))
    }

    /// Makes a symlink, unless there is something at its path, or the path leads out of what is ours.
    pub(super) fn link(&mut self, path: &Path, target: &Path) -> io::Result<()> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        match self.look_into(parent) {
            Err(error) if is_elsewhere(&error) => return Ok(()),
            other => other?,
        }
        let here = &self.here.1;
        if !self.is_ours(here)? {
            return Ok(());
        }
        match symlinkat(target, here, name) {
            Err(Errno::EEXIST) => Ok(()),
            other => other.map_err(io::Error::from),
        }
    }
}

fn is_elsewhere(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| Errno::EINVAL.into())
}
