//! Ways to files: by other names, by links, by descriptors, by what the kernel writes.

use std::{
    ffi::CString,
    fs::{self, File},
    io::{self, Error, ErrorKind, IoSliceMut, Write},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::{
            fs::{OpenOptionsExt, symlink},
            net::UnixStream,
        },
    },
    path::Path,
};

use nix::{
    cmsg_space,
    sys::{
        resource::{Resource, getrlimit, setrlimit},
        socket::{ControlMessageOwned, MsgFlags, recvmsg},
        stat::Mode,
        wait::{WaitStatus, waitpid},
    },
    unistd::{ForkResult, fork, mkfifo},
};

use super::{check, descriptor, nix, number, put};

pub fn run(name: &str, arguments: &[&str]) -> Option<io::Result<()>> {
    Some(match (name, arguments) {
        ("read-has", [path, text]) => read_has(path, text),
        ("put", [path, text]) => put(path, text),
        ("make-directory", [path]) => fs::create_dir(path),
        ("remove-directory", [path]) => fs::remove_dir(path),
        ("make-symlink", [path]) => symlink("anywhere", path),
        ("make-fifo", [path]) => nix(mkfifo(*path, Mode::S_IRWXU)),
        ("through-symlink", [link, target]) => symlink(target, link).and_then(|()| put(link, "x")),
        ("exchange", [from, to]) => exchange(from, to),
        ("unnamed", [directory, name]) => link_unnamed(directory, name),
        ("reopen", [path]) => reopen(path),
        ("receive-descriptor", [socket]) => receive(socket),
        ("take-descriptor", [pid, descriptor]) => take(number(pid), number(descriptor)),
        ("inherited-descriptor", [path]) => inherited(path),
        ("dump-core", [directory]) => dump_core(directory),
        ("fill", [path]) => fill(path),
        ("plant-repository", [workspace]) => plant_repository(Path::new(workspace)),
        ("replace-repository", [workspace]) => replace_repository(Path::new(workspace)),
        _ => return None,
    })
}

/// Reads a file that holds a text: an empty one proves nothing.
fn read_has(path: &str, text: &str) -> io::Result<()> {
    let found = fs::read(path)?.windows(text.len()).any(|window| window == text.as_bytes());
    if found { Ok(()) } else { Err(Error::from_raw_os_error(libc::ENODATA)) }
}

fn path(path: &str) -> CString {
    CString::new(path).expect("a path")
}

fn exchange(from: &str, to: &str) -> io::Result<()> {
    let (from, to) = (path(from), path(to));
    // SAFETY: both paths end with NUL.
    check(unsafe {
        let (from, to) = (from.as_ptr(), to.as_ptr());
        libc::renameat2(libc::AT_FDCWD, from, libc::AT_FDCWD, to, libc::RENAME_EXCHANGE)
    })
}

/// Gives a name to a file that was made without one (open(2), `O_TMPFILE`).
fn link_unnamed(directory: &str, name: &str) -> io::Result<()> {
    let file = File::options().write(true).custom_flags(libc::O_TMPFILE).open(directory)?;
    let (file, name) = (path(&format!("/proc/self/fd/{}", file.as_raw_fd())), path(name));
    // SAFETY: both paths end with NUL.
    check(unsafe {
        let (file, name) = (file.as_ptr(), name.as_ptr());
        libc::linkat(libc::AT_FDCWD, file, libc::AT_FDCWD, name, libc::AT_SYMLINK_FOLLOW)
    })
}

/// Opens a file for its name only, which is always possible, then anew by that descriptor.
fn reopen(path: &str) -> io::Result<()> {
    let file = File::options().read(true).custom_flags(libc::O_PATH).open(path)?;
    put(&format!("/proc/self/fd/{}", file.as_raw_fd()), "x")
}

/// Writes to the file whose descriptor a peer passes to whoever connects.
fn receive(socket: &str) -> io::Result<()> {
    let peer = UnixStream::connect(socket)?;
    let (mut byte, mut space) = ([0; 1], cmsg_space!(RawFd));
    let mut pieces = [IoSliceMut::new(&mut byte)];
    let flags = MsgFlags::empty();
    let message = recvmsg::<()>(peer.as_raw_fd(), &mut pieces, Some(&mut space), flags)?;
    let passed = message.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmRights(descriptors) => descriptors.first().copied(),
        _ => None,
    });
    let passed = passed.ok_or(ErrorKind::UnexpectedEof)?;
    // SAFETY: recvmsg(2) has just made it.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(passed) });
    file.write_all(b"x")
}

/// Duplicates a descriptor of another process (pidfd_getfd(2)), and writes to its file.
fn take(pid: i64, number: i64) -> io::Result<()> {
    // SAFETY: numbers only.
    let process = descriptor(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: numbers only.
    let taken = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) };
    File::from(descriptor(taken)?).write_all(b"x")
}

/// Writes to a file by a descriptor that was open when this program started.
fn inherited(path: &str) -> io::Result<()> {
    for number in 3..64 {
        if fs::read_link(format!("/proc/self/fd/{number}")).is_ok_and(|to| to == Path::new(path)) {
            // SAFETY: it is open, and nothing else of this program has it.
            return File::from(unsafe { OwnedFd::from_raw_fd(number) }).write_all(b"x");
        }
    }
    Err(Error::from_raw_os_error(libc::EBADF))
}

/// Dies in a directory, for the kernel to write a file there (core(5)).
fn dump_core(directory: &str) -> io::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_CORE)?;
    setrlimit(Resource::RLIMIT_CORE, hard, hard)?;
    // SAFETY: the probe has one thread.
    match unsafe { fork() }? {
        ForkResult::Child => {
            let _ = std::env::set_current_dir(directory);
            std::process::abort()
        }
        ForkResult::Parent { child } => match waitpid(child, None)? {
            WaitStatus::Signaled(_, _, true) => Ok(()),
            _ => Err(Error::from_raw_os_error(libc::EACCES)),
        },
    }
}

/// Writes 64 MiB, and removes them.
fn fill(path: &str) -> io::Result<()> {
    let mut file = File::create(path)?;
    let block = vec![1; 1 << 20];
    let written = (0..64).try_for_each(|_| file.write_all(&block));
    fs::remove_file(path)?;
    written
}

/// Makes a repository in which git runs a program of the tool's choice.
fn plant_repository(workspace: &Path) -> io::Result<()> {
    let git = workspace.join(".git");
    for directory in ["objects", "refs", "hooks"] {
        fs::create_dir_all(git.join(directory))?;
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n")?;
    fs::write(git.join("config"), "[core]\n\tfsmonitor = \"touch planted\"\n")
}

/// Puts a repository of the tool's own in the place of the one that is there.
fn replace_repository(workspace: &Path) -> io::Result<()> {
    fs::rename(workspace.join(".git"), workspace.join(".git-of-before"))?;
    plant_repository(workspace)
}
