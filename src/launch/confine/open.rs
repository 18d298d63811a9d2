//! Opening what is granted: the very file that was judged, or none.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2},
    sys::stat::{SFlag, fstat},
};

use super::{ConfineError, Descriptors, TERMINAL};
use crate::launch::spec::{Grant, SocketGrant, Target};

/// Opens what a grant names; `None` where it is missing and need not be there.
///
/// # Errors
/// [`ConfineError`]: it cannot be opened, a symlink has come in the way, or it is a socket.
pub(super) fn open(
    grant: &Grant,
    descriptors: &Descriptors<'_>,
) -> Result<Option<OwnedFd>, ConfineError> {
    match &grant.target {
        Target::Path(path) => match open_path(path) {
            Err(Errno::ENOENT | Errno::ENOTDIR) if grant.optional => Ok(None),
            Err(errno) => Err(failed(path, errno.into())),
            Ok(file) if is_socket(file.as_fd())? => Err(ConfineError::IsASocket(path.clone())),
            Ok(file) => Ok(Some(file)),
        },
        Target::Descriptor(slot, path) => {
            let directory = descriptors.received.get(*slot as usize);
            let directory = directory.ok_or(ConfineError::NoDescriptor(*slot))?;
            directory.try_clone().map(Some).map_err(|source| failed(path, source))
        }
        Target::OwnTerminal => {
            let terminal = descriptors.terminal.ok_or(ConfineError::NoTerminal)?;
            let terminal = terminal.try_clone_to_owned();
            terminal.map(Some).map_err(|source| failed(Path::new(TERMINAL), source))
        }
    }
}

/// Opens a granted socket.
///
/// # Errors
/// [`ConfineError`]: it cannot be opened, or is no socket.
pub(super) fn open_socket(grant: &SocketGrant) -> Result<OwnedFd, ConfineError> {
    let socket = open_path(&grant.path).map_err(|errno| failed(&grant.path, errno.into()))?;
    if is_socket(socket.as_fd())? {
        Ok(socket)
    } else {
        Err(ConfineError::NotASocket(grant.path.clone()))
    }
}

/// Opens a path whose symlinks were followed when it was judged: there are none on it, or it is not
/// what was judged (`ELOOP`).
pub(super) fn open_path(path: &Path) -> nix::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(AT_FDCWD, path, how)
}

fn is_socket(file: BorrowedFd<'_>) -> Result<bool, ConfineError> {
    let stat = fstat(file).map_err(|errno| ConfineError::Stat { source: errno.into() })?;
    Ok(SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFSOCK)
}

fn failed(path: &Path, source: io::Error) -> ConfineError {
    ConfineError::Open { path: path.to_owned(), source }
}
