//! What was typed into a terminal and is not read yet.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

use nix::{
    libc,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};

mod ioctl {
    use nix::libc;

    nix::ioctl_read_bad!(count_unread, libc::FIONREAD, libc::c_int);
}

/// How many bytes a read of the user end of a pty would find; of a line that is not finished, none.
///
/// # Errors
/// As poll(2) and ioctl_tty(2).
pub fn unread(user: BorrowedFd<'_>) -> io::Result<usize> {
    // What the controller wrote is brought to the line discipline by the kernel's own worker, and counted from then
    // on only. To poll the user end, where it finds nothing there, waits for that worker (n_tty_poll()).
    poll(&mut [PollFd::new(user, PollFlags::POLLIN)], PollTimeout::ZERO)?;
    let mut count: libc::c_int = 0;
    // SAFETY: FIONREAD writes one int to where it is told (ioctl_tty(2)).
    unsafe { ioctl::count_unread(user.as_raw_fd(), &raw mut count) }?;
    Ok(usize::try_from(count).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use nix::{
        sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr},
        unistd::{read, write},
    };

    use super::*;
    use crate::host::pty::{Pty, Size};

    #[test]
    fn what_is_typed_is_counted_at_once_and_until_it_is_read() {
        let pty = Pty::open(Size::new(80, 24)).unwrap();
        let mut modes = tcgetattr(&pty.user).unwrap();
        cfmakeraw(&mut modes);
        tcsetattr(&pty.user, SetArg::TCSANOW, &modes).unwrap();
        for _ in 0..1000 {
            write(&pty.controller, b"abc").unwrap();
            assert_eq!(unread(pty.user.as_fd()).unwrap(), 3);
            read(&pty.user, &mut [0; 2]).unwrap();
            assert_eq!(unread(pty.user.as_fd()).unwrap(), 1);
            read(&pty.user, &mut [0; 2]).unwrap();
            assert_eq!(unread(pty.user.as_fd()).unwrap(), 0);
        }
    }

    #[test]
    fn of_lines_only_the_finished_are_counted() {
        let pty = Pty::open(Size::new(80, 24)).unwrap();
        write(&pty.controller, b"unfinished").unwrap();
        assert_eq!(unread(pty.user.as_fd()).unwrap(), 0);
        write(&pty.controller, b"\n").unwrap();
        assert_eq!(unread(pty.user.as_fd()).unwrap(), "unfinished\n".len());
    }
}
