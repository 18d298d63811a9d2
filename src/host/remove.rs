//! Removes a directory that a hostile tool filled: by descriptor, through no link, over no mount, in
//! bounded memory however deep it is.

use std::{
    ffi::{CStr, CString, OsStr},
    fs, io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
    time::{Duration, Instant},
};

use nix::{
    NixPath,
    dir::Dir,
    errno::Errno,
    fcntl::{OFlag, OpenHow, ResolveFlag, openat2},
    sys::stat::Mode,
    unistd::{UnlinkatFlags, unlinkat},
};

/// Removes the directory `name` of `parent` and all in it.
///
/// Nothing beneath may change meanwhile but by its own end. Directories that lack permissions get
/// them first. A directory within a directory is moved up before its parent goes: so depth costs
/// neither stack nor descriptors.
///
/// # Errors
/// `EXDEV` where something is mounted within, `ETIMEDOUT` when the time is over, `EBUSY` where a
/// whole pass removed nothing; else as the system call that failed. The rest stays.
pub fn tree(parent: BorrowedFd<'_>, name: &OsStr, at_most: Duration) -> io::Result<()> {
    // Empty, as most are: nothing to enter.
    if unlinkat(parent, name, UnlinkatFlags::RemoveDir).is_ok() {
        return Ok(());
    }
    let top = enter(parent, name)?;
    let mut removal = Removal { top: top.as_fd(), moved: 0, until: Instant::now() + at_most };
    while removal.pass()? > 0 {}
    unlinkat(parent, name, UnlinkatFlags::RemoveDir)?;
    Ok(())
}

struct Removal<'a> {
    top: BorrowedFd<'a>,
    moved: u64,
    until: Instant,
}

impl Removal<'_> {
    /// Goes once through the top directory; gives how many entries it met.
    fn pass(&mut self) -> io::Result<u64> {
        let (mut met, mut gone) = (0, 0);
        for name in entries(self.top)? {
            if Instant::now() > self.until {
                return Err(Errno::ETIMEDOUT.into());
            }
            met += 1;
            gone += u64::from(self.remove(&name?)?);
        }
        if met > 0 && gone == 0 { Err(Errno::EBUSY.into()) } else { Ok(met) }
    }

    /// Removes one entry of the top directory; a directory's own directories become entries of it.
    /// Gives whether anything changed.
    fn remove(&mut self, name: &CStr) -> io::Result<bool> {
        if unlink(self.top, name)? {
            return Ok(true);
        }
        let directory = enter(self.top, name)?;
        let mut changed = false;
        for name in entries(directory.as_fd())? {
            let name = name?;
            if !unlink(directory.as_fd(), &name)? {
                self.move_up(directory.as_fd(), &name)?;
            }
            changed = true;
        }
        match unlinkat(self.top, name, UnlinkatFlags::RemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(true),
            // A listing need not show what came or went while it was read: the next pass does.
            Err(Errno::ENOTEMPTY) => Ok(changed),
            Err(errno) => Err(errno.into()),
        }
    }

    fn move_up(&mut self, from: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        // To move a directory it must be writable itself: its `..` changes (rename(2)).
        drop(enter(from, name)?);
        loop {
            let free = CString::new(self.moved.to_string())?;
            self.moved += 1;
            match move_to_free(from, name, self.top, &free) {
                Err(Errno::EEXIST) => {}
                other => return Ok(other?),
            }
        }
    }
}

/// Moves what a directory has under one name to another name of another, `EEXIST` where that is taken. By the bare
/// system call: not every C library has a function for it.
fn move_to_free(
    from: BorrowedFd<'_>,
    name: &CStr,
    to: BorrowedFd<'_>,
    free: &CStr,
) -> nix::Result<()> {
    let (from, to, call) = (from.as_raw_fd(), to.as_raw_fd(), libc::SYS_renameat2);
    let (name, free, flags) = (name.as_ptr(), free.as_ptr(), libc::RENAME_NOREPLACE);
    // SAFETY: both names end with NUL and outlive the call; both descriptors are borrowed for it.
    Errno::result(unsafe { libc::syscall(call, from, name, to, free, flags) }).map(drop)
}

/// Unlinks what is not a directory; gives whether that is done. What is gone already counts.
fn unlink(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<bool> {
    match unlinkat(directory, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => Ok(true),
        Err(Errno::EISDIR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Opens a directory of a directory for all access, on the same mount and through no link.
fn enter<P: ?Sized + NixPath>(directory: BorrowedFd<'_>, name: &P) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let resolve = ResolveFlag::RESOLVE_BENEATH
        | ResolveFlag::RESOLVE_NO_SYMLINKS
        | ResolveFlag::RESOLVE_NO_XDEV;
    let found = openat2(directory, name, OpenHow::new().flags(flags).resolve(resolve))?;
    // fchmod(2) refuses O_PATH descriptors; the magic link leads to the very same directory.
    let itself = format!("/proc/self/fd/{}", found.as_raw_fd());
    fs::set_permissions(itself, fs::Permissions::from_mode(0o700))?;
    Ok(found)
}

/// The names in a directory, read bit by bit.
fn entries(directory: BorrowedFd<'_>) -> io::Result<impl Iterator<Item = io::Result<CString>>> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let listing = Dir::openat(directory, ".", flags, Mode::empty())?;
    Ok(listing.into_iter().filter_map(|entry| match entry {
        Ok(entry) => {
            let name = entry.file_name();
            (name != c"." && name != c"..").then(|| Ok(name.to_owned()))
        }
        Err(errno) => Some(Err(errno.into())),
    }))
}
