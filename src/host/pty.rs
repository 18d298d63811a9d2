//! A pseudo-terminal: opened, sized and asked; what flows through it is `terminal/`'s.
//!
//! The only file that names `portable-pty`, and nix's ioctls for what that crate does not offer.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    path::PathBuf,
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    pty::posix_openpt,
    sys::termios::{LocalFlags, SpecialCharacterIndices, tcgetattr},
    unistd::tcgetpgrp,
};
use portable_pty::{MasterPty, PtySize, native_pty_system};

use super::HostError;

/// ioctl_tty(2), as far as it is needed.
mod ioctl {
    nix::ioctl_read_bad!(get_window_size, libc::TIOCGWINSZ, libc::winsize);
    nix::ioctl_write_ptr_bad!(set_window_size, libc::TIOCSWINSZ, libc::winsize);
    nix::ioctl_read_bad!(get_number, libc::TIOCGPTN, libc::c_uint);
    nix::ioctl_write_int_bad!(open_user_end, libc::TIOCGPTPEER);
    nix::ioctl_write_int_bad!(send_signal, libc::TIOCSIG);
    nix::ioctl_write_ptr_bad!(set_packet_mode, libc::TIOCPKT, libc::c_int);
}

/// The size that the kernel knows, asked of either end.
///
/// # Errors
/// As ioctl_tty(2).
pub fn size(end: BorrowedFd<'_>) -> io::Result<Size> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ writes one winsize to where it is told (ioctl_tty(2)).
    unsafe { ioctl::get_window_size(end.as_raw_fd(), &raw mut size) }?;
    Ok(size.into())
}

/// Has reads of a controller end give the tool's bytes and nothing else, whoever set packet mode.
///
/// # Errors
/// As ioctl_tty(2).
pub fn leave_packet_mode(controller: BorrowedFd<'_>) -> io::Result<()> {
    let off: libc::c_int = 0;
    // SAFETY: TIOCPKT reads one int from where it is told (ioctl_tty(2)).
    unsafe { ioctl::set_packet_mode(controller.as_raw_fd(), &raw const off) }?;
    Ok(())
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Columns of characters.
    pub columns: u16,
    /// Rows of characters.
    pub rows: u16,
    /// Width of all of it in pixels; 0 where unknown.
    pub pixel_width: u16,
    /// Height of all of it in pixels; 0 where unknown.
    pub pixel_height: u16,
}

/// What the line discipline does with input at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modes {
    /// Lines are collected and can be edited (`ICANON`).
    pub canonical: bool,
    /// Input is shown (`ECHO`).
    pub echo: bool,
    /// Ctrl-C and its like are signals (`ISIG`).
    pub signals: bool,
    /// The character that ends the input at the beginning of a line (`VEOF`).
    pub end_of_file: u8,
}

/// Signals that a terminal sends to its foreground process group on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// SIGINT, as Ctrl-C.
    Interrupt,
    /// SIGQUIT, as Ctrl-\.
    Quit,
    /// SIGTSTP, as Ctrl-Z.
    Suspend,
}

/// A new pseudo-terminal, both ends close-on-exec.
#[derive(Debug)]
pub struct Pty {
    /// The broker's end.
    pub controller: Controller,
    /// The tool's end; to be closed here once the launcher has it, or the end of output is never seen.
    pub user: OwnedFd,
    /// The name of the user end, `/dev/pts/N`.
    pub name: PathBuf,
}

/// The broker's end of a pseudo-terminal. Closing it, and every copy of it, hangs the terminal up.
///
/// Non-blocking, and so is every copy: the flag belongs to what a copy shares (dup(2)).
#[derive(Debug)]
pub struct Controller(OwnedFd);

impl Size {
    /// The most columns or rows of a terminal; the least is 1.
    pub const MAX: u16 = 1000;

    /// A size in characters, its pixels unknown.
    #[must_use]
    pub fn new(columns: u16, rows: u16) -> Self {
        Self { columns, rows, pixel_width: 0, pixel_height: 0 }
    }
}

impl Pty {
    /// Opens a pseudo-terminal of this size.
    ///
    /// # Errors
    /// [`HostError::System`], with `ENOSPC` where no pty is free and `EMFILE` or `ENFILE` where
    /// descriptors ran out.
    pub fn open(size: Size) -> Result<Self, HostError> {
        let pair = native_pty_system()
            .openpty(size.into())
            .map_err(|text| HostError::system("open a pty", why_no_pty(&text)))?;
        Self::take(&*pair.master).map_err(|source| HostError::system("open a pty", source))
    }

    /// Copies the controller out of portable-pty, whose own handles close on return. The user end is
    /// opened anew by descriptor: never by a name, which means another pty in another mount namespace.
    fn take(opened: &(dyn MasterPty + Send)) -> io::Result<Self> {
        let fd = opened.as_raw_fd().ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: portable-pty holds the descriptor open for as long as `opened` is borrowed.
        let controller = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()?;
        let flags = OFlag::from_bits_retain(fcntl(&controller, FcntlArg::F_GETFL)?);
        fcntl(&controller, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        // SAFETY: TIOCGPTPEER takes flags by value and gives a new descriptor (ioctl_tty(2)).
        let user = unsafe { ioctl::open_user_end(controller.as_raw_fd(), flags.bits()) }?;
        // SAFETY: the kernel has just made this descriptor for us and nobody else knows it.
        let user = unsafe { OwnedFd::from_raw_fd(user) };
        let mut number = 0;
        // SAFETY: TIOCGPTN writes one unsigned int to where it is told (ioctl_tty(2)).
        unsafe { ioctl::get_number(controller.as_raw_fd(), &raw mut number) }?;
        let name = PathBuf::from(format!("/dev/pts/{number}"));
        Ok(Self { controller: Controller(controller), user, name })
    }
}

/// portable-pty gives its error as text only. What refused it refuses `posix_openpt` alike; where the
/// want has passed meanwhile, the text has to do.
fn why_no_pty(text: &dyn std::fmt::Display) -> io::Error {
    match posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC) {
        Err(errno) => errno.into(),
        Ok(_) => io::Error::other(text.to_string()),
    }
}

impl Controller {
    /// A copy for whoever reads and writes.
    ///
    /// # Errors
    /// Where descriptors ran out.
    pub fn try_clone(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }

    /// The size that the kernel knows.
    ///
    /// # Errors
    /// As ioctl_tty(2).
    pub fn size(&self) -> io::Result<Size> {
        size(self.as_fd())
    }

    /// Changes the size and lets the foreground group know by SIGWINCH. Gives whether there was
    /// anything to change: the same size sends no signal.
    ///
    /// # Errors
    /// As ioctl_tty(2).
    pub fn set_size(&self, size: Size) -> io::Result<bool> {
        set_size(self.0.as_fd(), size)
    }

    /// The foreground process group; `None` while nobody has taken the terminal, or when it is gone.
    ///
    /// # Errors
    /// As tcgetpgrp(3).
    pub fn foreground(&self) -> io::Result<Option<i32>> {
        foreground(self.as_fd())
    }

    /// Sends what a key would, to the foreground process group, whatever the terminal's modes are.
    /// The kernel finds the group and signals it in one step (`TIOCSIG`).
    ///
    /// # Errors
    /// As ioctl_tty(2).
    pub fn press(&self, key: Key) -> io::Result<()> {
        let signal = match key {
            Key::Interrupt => libc::SIGINT,
            Key::Quit => libc::SIGQUIT,
            Key::Suspend => libc::SIGTSTP,
        };
        // SAFETY: TIOCSIG takes a signal number by value and touches no memory of ours.
        unsafe { ioctl::send_signal(self.0.as_raw_fd(), signal) }?;
        Ok(())
    }

    /// What the line discipline does with input at the moment.
    ///
    /// # Errors
    /// As tcgetattr(3).
    pub fn modes(&self) -> io::Result<Modes> {
        let attributes = tcgetattr(&self.0)?;
        let is_set = |flag| attributes.local_flags.contains(flag);
        Ok(Modes {
            canonical: is_set(LocalFlags::ICANON),
            echo: is_set(LocalFlags::ECHO),
            signals: is_set(LocalFlags::ISIG),
            end_of_file: attributes.control_chars[SpecialCharacterIndices::VEOF as usize],
        })
    }
}

/// As [`Controller::foreground`], of any copy of a controller.
///
/// # Errors
/// As tcgetpgrp(3).
pub fn foreground(controller: BorrowedFd<'_>) -> io::Result<Option<i32>> {
    // Asked of the controller, Linux gives the group of the user end, and 0 for none.
    match tcgetpgrp(controller) {
        Ok(group) if group.as_raw() > 0 => Ok(Some(group.as_raw())),
        Ok(_) | Err(Errno::ENOTTY) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// As [`Controller::set_size`], of any copy of a controller.
///
/// # Errors
/// As ioctl_tty(2).
pub fn set_size(controller: BorrowedFd<'_>, wanted: Size) -> io::Result<bool> {
    if size(controller)? == wanted {
        return Ok(false);
    }
    let wanted = libc::winsize::from(wanted);
    // SAFETY: TIOCSWINSZ reads one winsize from where it is told (ioctl_tty(2)).
    unsafe { ioctl::set_window_size(controller.as_raw_fd(), &raw const wanted) }?;
    Ok(true)
}

impl AsFd for Controller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<Controller> for OwnedFd {
    fn from(controller: Controller) -> Self {
        controller.0
    }
}

impl From<Size> for PtySize {
    fn from(size: Size) -> Self {
        let Size { columns: cols, rows, pixel_width, pixel_height } = size;
        Self { rows, cols, pixel_width, pixel_height }
    }
}

impl From<Size> for libc::winsize {
    fn from(size: Size) -> Self {
        Self {
            ws_row: size.rows,
            ws_col: size.columns,
            ws_xpixel: size.pixel_width,
            ws_ypixel: size.pixel_height,
        }
    }
}

impl From<libc::winsize> for Size {
    fn from(size: libc::winsize) -> Self {
        Self {
            columns: size.ws_col,
            rows: size.ws_row,
            pixel_width: size.ws_xpixel,
            pixel_height: size.ws_ypixel,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        os::unix::process::CommandExt,
        process::{Command, Stdio},
    };

    use nix::{
        fcntl::FdFlag,
        poll::{PollFd, PollFlags, PollTimeout, poll},
        sys::termios::{SetArg, tcsetattr},
        unistd::setsid,
    };

    use super::*;

    const SIZE: Size = Size { columns: 97, rows: 31, pixel_width: 0, pixel_height: 0 };

    #[test]
    fn a_pty_has_the_asked_size_and_leaks_into_no_child() {
        let pty = Pty::open(SIZE).unwrap();
        assert_eq!(pty.controller.size().unwrap(), SIZE);
        assert_eq!(
            std::fs::read_link(format!("/proc/self/fd/{}", pty.user.as_raw_fd())).unwrap(),
            pty.name
        );
        for fd in [pty.controller.as_fd(), pty.user.as_fd()] {
            let flags = FdFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFD).unwrap());
            assert!(flags.contains(FdFlag::FD_CLOEXEC));
        }
        let mut nothing = [0];
        let error = std::fs::File::from(OwnedFd::from(pty.controller)).read(&mut nothing);
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn the_controller_hangs_up_when_its_last_copy_closes() {
        let pty = Pty::open(SIZE).unwrap();
        let copy = pty.controller.try_clone().unwrap();
        let mut set = [PollFd::new(pty.user.as_fd(), PollFlags::POLLIN)];
        drop(pty.controller);
        assert_eq!(poll(&mut set, PollTimeout::ZERO).unwrap(), 0);
        drop(copy);
        assert_eq!(poll(&mut set, PollTimeout::from(5_000_u16)).unwrap(), 1);
        assert!(set[0].revents().unwrap().contains(PollFlags::POLLHUP));
    }

    #[test]
    fn the_modes_are_those_of_the_user_end() {
        let pty = Pty::open(SIZE).unwrap();
        let cooked = Modes { canonical: true, echo: true, signals: true, end_of_file: 4 };
        assert_eq!(pty.controller.modes().unwrap(), cooked);
        let mut modes = tcgetattr(&pty.user).unwrap();
        modes.local_flags.remove(LocalFlags::ECHO);
        tcsetattr(&pty.user, SetArg::TCSANOW, &modes).unwrap();
        assert_eq!(pty.controller.modes().unwrap(), Modes { echo: false, ..cooked });
    }

    /// Reads from a non-blocking controller until the text has come.
    fn expect(controller: &mut std::fs::File, wanted: &str) {
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains(wanted) {
            let mut set = [PollFd::new(controller.as_fd(), PollFlags::POLLIN)];
            assert_eq!(poll(&mut set, PollTimeout::from(10_000_u16)).unwrap(), 1, "{seen:?}");
            let mut chunk = [0; 1024];
            let count = controller.read(&mut chunk).unwrap();
            seen.extend_from_slice(&chunk[..count]);
        }
    }

    #[test]
    fn a_size_change_and_a_key_reach_the_foreground_group() {
        let pty = Pty::open(SIZE).unwrap();
        assert_eq!(pty.controller.foreground().unwrap(), None);
        // Bash holds a trap back while it reads, but not while it waits.
        let script = "trap 'stty size' WINCH; trap 'echo interrupted' INT; echo up; \
                      read -r line; echo \"read $line\"; sleep 1000 & while true; do wait; done";
        let mut command = Command::new("bash");
        command.args(["-c", script]).stdin(Stdio::from(pty.user.try_clone().unwrap()));
        command.stdout(Stdio::from(pty.user.try_clone().unwrap())).stderr(Stdio::from(pty.user));
        // SAFETY: setsid(2) and ioctl(2) are async-signal-safe, and nothing is allocated.
        unsafe {
            command.pre_exec(|| {
                setsid()?;
                Errno::result(libc::ioctl(0, libc::TIOCSCTTY, 0))?;
                Ok(())
            });
        }
        let mut shell = command.spawn().unwrap();
        drop(command);
        let mut stream = std::fs::File::from(pty.controller.try_clone().unwrap());
        expect(&mut stream, "up");
        stream.write_all(b"line\n").unwrap();
        expect(&mut stream, "read line");
        assert_eq!(pty.controller.foreground().unwrap(), Some(shell.id().cast_signed()));
        assert!(!pty.controller.set_size(SIZE).unwrap());
        assert!(pty.controller.set_size(Size::new(100, 40)).unwrap());
        expect(&mut stream, "40 100");
        pty.controller.press(Key::Interrupt).unwrap();
        expect(&mut stream, "interrupted");
        shell.kill().unwrap();
        shell.wait().unwrap();
    }
}
