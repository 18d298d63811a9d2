//! Pipes in the place of a terminal: opened here; what flows through them is `terminal/`'s.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
};

use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    unistd::pipe2,
};

use super::HostError;

/// What a tool without a terminal reads and writes, every end close-on-exec.
#[derive(Debug)]
pub struct Pipes {
    /// The broker's ends.
    pub broker: BrokerEnds,
    /// The tool's ends; to be closed here once the launcher has them, or the end of output is never seen.
    pub tool: ToolEnds,
}

/// The broker's ends, non-blocking: the flag does not reach the tool's, which are open files of their own (pipe(7)).
#[derive(Debug)]
pub struct BrokerEnds {
    /// Where the tool's input is written; none where it has none.
    pub stdin: Option<OwnedFd>,
    /// Where its output is read.
    pub output: OwnedFd,
    /// Where what it writes on standard error is read.
    pub stderr: OwnedFd,
}

/// The tool's ends.
#[derive(Debug)]
pub struct ToolEnds {
    /// Standard input: a pipe, or `/dev/null`.
    pub stdin: OwnedFd,
    /// Standard output.
    pub output: OwnedFd,
    /// Standard error.
    pub stderr: OwnedFd,
}

impl Pipes {
    /// Opens them; standard input only where `with_input` says so.
    ///
    /// # Errors
    /// [`HostError::System`], with `EMFILE` or `ENFILE` where descriptors ran out.
    pub fn open(with_input: bool) -> Result<Self, HostError> {
        Self::make(with_input).map_err(|source| HostError::system("open the pipes", source))
    }

    fn make(with_input: bool) -> io::Result<Self> {
        let (stdin, from_broker) = if with_input {
            let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
            (read, Some(unblocking(write)?))
        } else {
            (File::open("/dev/null")?.into(), None)
        };
        let [(output, to_output), (stderr, to_stderr)] =
            [pipe2(OFlag::O_CLOEXEC)?, pipe2(OFlag::O_CLOEXEC)?];
        let broker = BrokerEnds {
            stdin: from_broker,
            output: unblocking(output)?,
            stderr: unblocking(stderr)?,
        };
        Ok(Self { broker, tool: ToolEnds { stdin, output: to_output, stderr: to_stderr } })
    }
}

fn unblocking(end: OwnedFd) -> io::Result<OwnedFd> {
    let flags = OFlag::from_bits_retain(fcntl(end.as_fd(), FcntlArg::F_GETFL)?);
    fcntl(end.as_fd(), FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(end)
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};

    use nix::fcntl::FdFlag;

    use super::*;

    fn flags(fd: &OwnedFd) -> (bool, bool) {
        let status = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL).unwrap());
        let descriptor = FdFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFD).unwrap());
        (status.contains(OFlag::O_NONBLOCK), descriptor.contains(FdFlag::FD_CLOEXEC))
    }

    #[test]
    fn only_the_brokers_ends_do_not_block_and_none_is_inherited() {
        let Pipes { broker, tool } = Pipes::open(true).unwrap();
        for end in [&broker.stdin.unwrap(), &broker.output, &broker.stderr] {
            assert_eq!(flags(end), (true, true));
        }
        for end in [&tool.stdin, &tool.output, &tool.stderr] {
            assert_eq!(flags(end), (false, true));
        }
    }

    #[test]
    fn each_end_leads_to_its_own() {
        let Pipes { broker, tool } = Pipes::open(true).unwrap();
        File::from(broker.stdin.unwrap()).write_all(b"in").unwrap();
        File::from(tool.output).write_all(b"out").unwrap();
        File::from(tool.stderr).write_all(b"err").unwrap();
        for (end, expected) in [(tool.stdin, "in"), (broker.output, "out"), (broker.stderr, "err")]
        {
            let mut text = String::new();
            File::from(end).read_to_string(&mut text).unwrap();
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn a_closed_input_ends_at_once() {
        let Pipes { broker, tool } = Pipes::open(false).unwrap();
        assert!(broker.stdin.is_none());
        assert_eq!(File::from(tool.stdin).read(&mut [0]).unwrap(), 0);
        let empty = File::from(broker.output).read(&mut [0]).unwrap_err();
        assert_eq!(empty.kind(), ErrorKind::WouldBlock, "the tool still has its end");
    }
}
