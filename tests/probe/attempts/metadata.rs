//! What can be done to a file without opening it.

use std::{
    ffi::{CString, c_char},
    fs::{self, File, Permissions},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{OpenOptionsExt, PermissionsExt},
    },
};

use nix::{
    fcntl::AT_FDCWD,
    sys::{
        stat::{UtimensatFlags, utimensat},
        time::TimeSpec,
    },
    unistd::{chown, getegid},
};

use super::{check, descriptor, nix};

/// The attribute that attempts set, read and remove.
const ATTRIBUTE: *const c_char = c"user.mark".as_ptr();

/// `fchmodat2(2)`, which libc does not name on every architecture; the same number on each.
const SYS_FCHMODAT2: libc::c_long = 452;

pub fn run(name: &str, arguments: &[&str]) -> Option<io::Result<()>> {
    let [path] = arguments else { return None };
    let file = CString::new(*path).expect("a path");
    let flags = UtimensatFlags::FollowSymlink;
    let past = TimeSpec::new(1_000_000_000, 0);
    Some(match name {
        "change-mode" => fs::set_permissions(path, Permissions::from_mode(0o4777)),
        "change-group" => nix(chown(*path, None, Some(getegid()))),
        "change-times" => nix(utimensat(AT_FDCWD, *path, &past, &past, flags)),
        "set-attribute" => set_attribute(&file),
        "remove-attribute" => remove_attribute(&file),
        "get-attribute" => get_attribute(&file),
        "change-mode-by-descriptor" => change_mode_by_descriptor(path),
        "see" => fs::symlink_metadata(path).map(drop),
        "watch" => watch(&file),
        "watch-all" => watch_all(&file),
        _ => return None,
    })
}

fn set_attribute(file: &CString) -> io::Result<()> {
    let value = c"x".as_ptr().cast();
    // SAFETY: names end with NUL; one byte is read.
    check(unsafe { libc::setxattr(file.as_ptr(), ATTRIBUTE, value, 1, 0) })
}

fn remove_attribute(file: &CString) -> io::Result<()> {
    // SAFETY: names end with NUL.
    check(unsafe { libc::removexattr(file.as_ptr(), ATTRIBUTE) })
}

fn get_attribute(file: &CString) -> io::Result<()> {
    let mut value = [0_u8; 16];
    // SAFETY: names end with NUL; at most 16 bytes are written.
    let length = unsafe { libc::getxattr(file.as_ptr(), ATTRIBUTE, value.as_mut_ptr().cast(), 16) };
    check(length.try_into().unwrap_or(-1))
}

/// A descriptor that only names the file is enough.
fn change_mode_by_descriptor(path: &str) -> io::Result<()> {
    let file = File::options().read(true).custom_flags(libc::O_PATH).open(path)?;
    let (file, empty) = (file.as_raw_fd(), c"".as_ptr());
    // SAFETY: the empty name ends with NUL.
    let changed = unsafe { libc::syscall(SYS_FCHMODAT2, file, empty, 0o4777, libc::AT_EMPTY_PATH) };
    check(changed.try_into().unwrap_or(-1))
}

/// Likewise, by fanotify(7), which needs no privilege where it tells of files by number.
fn watch_all(path: &CString) -> io::Result<()> {
    let flags = libc::FAN_CLASS_NOTIF | libc::FAN_REPORT_FID;
    // SAFETY: flags only.
    let queue = descriptor(unsafe { libc::fanotify_init(flags, 0) }.into())?;
    let (queue, events) = (queue.as_raw_fd(), libc::FAN_OPEN | libc::FAN_CLOSE);
    // SAFETY: the path ends with NUL.
    check(unsafe {
        libc::fanotify_mark(queue, libc::FAN_MARK_ADD, events, libc::AT_FDCWD, path.as_ptr())
    })
}

/// Asks to be told of what happens to a file (inotify(7)).
fn watch(path: &CString) -> io::Result<()> {
    // SAFETY: flags only.
    let queue = descriptor(unsafe { libc::inotify_init1(libc::IN_CLOEXEC) }.into())?;
    // SAFETY: the path ends with NUL.
    check(unsafe { libc::inotify_add_watch(queue.as_raw_fd(), path.as_ptr(), libc::IN_ALL_EVENTS) })
}
