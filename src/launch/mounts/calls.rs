//! The mount system calls that libc has no functions for, one function each: fsopen(2), fsconfig(2),
//! fsmount(2), open_tree(2), move_mount(2), mount_setattr(2).
//!
//! All of them came with Linux 5.12 or before; Landlock came with 5.13.

use std::{
    ffi::CStr,
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
};

use libc::{c_int, c_long, c_uint};

/// `MOUNT_ATTR_*` of linux/mount.h.
pub(super) const RDONLY: u64 = 0x1;
pub(super) const NOSUID: u64 = 0x2;
pub(super) const NODEV: u64 = 0x4;
pub(super) const NOEXEC: u64 = 0x8;

/// `OPEN_TREE_CLONE`.
const CLONE: c_uint = 1;

/// `FSCONFIG_SET_STRING` and `FSCONFIG_CMD_CREATE`.
const SET_STRING: c_uint = 1;
const CREATE: c_uint = 6;

/// `FSOPEN_CLOEXEC` and `FSMOUNT_CLOEXEC`.
const FS_CLOEXEC: c_uint = 1;

/// `MOVE_MOUNT_F_EMPTY_PATH` and `MOVE_MOUNT_T_EMPTY_PATH`.
const BY_DESCRIPTORS: c_uint = 0x4 | 0x40;

/// `struct mount_attr`.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Makes a file system of its own kind, with options, as a mount that is attached nowhere.
pub(super) fn new_mount(
    kind: &CStr,
    options: &[(&CStr, &CStr)],
    attributes: u64,
) -> io::Result<OwnedFd> {
    // SAFETY: the name ends with NUL; the call reads nothing else.
    let context =
        descriptor(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), FS_CLOEXEC) })?;
    for (key, value) in options {
        configure(&context, SET_STRING, key.as_ptr(), value.as_ptr())?;
    }
    configure(&context, CREATE, ptr::null(), ptr::null())?;
    let context = context.as_raw_fd();
    // SAFETY: the call takes numbers only; `context` was open above and nobody closed it.
    descriptor(unsafe { libc::syscall(libc::SYS_fsmount, context, FS_CLOEXEC, attributes) })
}

fn configure(
    context: &OwnedFd,
    command: c_uint,
    key: *const libc::c_char,
    value: *const libc::c_char,
) -> io::Result<()> {
    let context = context.as_raw_fd();
    // SAFETY: key and value are null, or end with NUL and outlive the call.
    done(unsafe { libc::syscall(libc::SYS_fsconfig, context, command, key, value, 0) })
}

/// Copies the mount at a path (the directory itself where that is empty) with all beneath it.
pub(super) fn copy_mount(directory: c_int, path: &CStr) -> io::Result<OwnedFd> {
    let flags = CLONE
        | libc::O_CLOEXEC.cast_unsigned()
        | (libc::AT_EMPTY_PATH | libc::AT_RECURSIVE | libc::AT_SYMLINK_NOFOLLOW).cast_unsigned();
    // SAFETY: the path ends with NUL; the call reads nothing else.
    descriptor(unsafe { libc::syscall(libc::SYS_open_tree, directory, path.as_ptr(), flags) })
}

/// Attaches a mount to what a descriptor names.
pub(super) fn attach(mount: BorrowedFd<'_>, target: BorrowedFd<'_>) -> io::Result<()> {
    let (mount, target, empty) = (mount.as_raw_fd(), target.as_raw_fd(), c"".as_ptr());
    // SAFETY: both paths are the empty string; both descriptors are borrowed for the call.
    done(unsafe {
        libc::syscall(libc::SYS_move_mount, mount, empty, target, empty, BY_DESCRIPTORS)
    })
}

/// Sets attributes of a mount and of every one beneath it.
pub(super) fn set(mount: BorrowedFd<'_>, attributes: u64) -> io::Result<()> {
    let attributes = Attributes { set: attributes, ..Attributes::default() };
    change(mount.as_raw_fd(), c"", &attributes)
}

/// Lets no mount of this namespace receive or send mounts of others any more.
pub(super) fn make_all_private() -> io::Result<()> {
    let attributes = Attributes { propagation: libc::MS_PRIVATE, ..Attributes::default() };
    change(libc::AT_FDCWD, c"/", &attributes)
}

fn change(at: c_int, path: &CStr, attributes: &Attributes) -> io::Result<()> {
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    let (attributes, size) = (ptr::from_ref(attributes), size_of::<Attributes>());
    let path = path.as_ptr();
    // SAFETY: the structure outlives the call and is as long as the size says; the path ends with
    // NUL.
    done(unsafe { libc::syscall(libc::SYS_mount_setattr, at, path, flags, attributes, size) })
}

fn done(result: c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn descriptor(result: c_long) -> io::Result<OwnedFd> {
    done(result)?;
    let raw = c_int::try_from(result).map_err(io::Error::other)?;
    // SAFETY: the call that gave it has just made it for us; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}
