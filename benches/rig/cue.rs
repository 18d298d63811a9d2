//! Tools that are told to begin, and say that they are done, past their terminals: by FIFOs.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::OpenOptionsExt,
    },
    path::Path,
};

use anyhow::ensure;
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::stat::Mode,
    unistd::mkfifo,
};

/// Two FIFOs in the directory where the tools run.
#[derive(Debug)]
pub struct Cue {
    go: File,
    done: File,
    name: String,
}

impl Cue {
    /// Makes them; the name tells them from others there.
    ///
    /// # Errors
    /// As mkfifo(3).
    pub fn make(directory: &Path, name: &str) -> anyhow::Result<Self> {
        let open = |kind: &str| -> anyhow::Result<File> {
            let path = directory.join(format!("{}-{kind}", name.replace(' ', "-")));
            mkfifo(&path, Mode::from_bits_truncate(0o600))?;
            // Both ends: what is held open at the other end never blocks a tool, or ends.
            let mut options = OpenOptions::new();
            options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
            Ok(options.open(path)?)
        };
        Ok(Self { go: open("go")?, done: open("done")?, name: name.replace(' ', "-") })
    }

    /// A script that does this whenever it is told to, and says when it has. All who wait are told one by one, which
    /// is why each must take one byte only.
    pub fn script(&self, what: &str) -> String {
        let name = &self.name;
        format!("while read -r _ <{name}-go; do {what}; echo >{name}-done; done")
    }

    /// Tells so many to begin.
    ///
    /// # Errors
    /// As write(2).
    pub fn go(&mut self, count: usize) -> anyhow::Result<()> {
        Ok(self.go.write_all(&vec![b'\n'; count])?)
    }

    /// What can be read once one of them is done.
    pub fn done(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }

    /// Waits until so many are done.
    ///
    /// # Errors
    /// Where a minute passes without one.
    pub fn until_done(&mut self, count: usize) -> anyhow::Result<()> {
        let mut done = 0;
        while done < count {
            let mut set = [PollFd::new(self.done.as_fd(), PollFlags::POLLIN)];
            ensure!(poll(&mut set, PollTimeout::from(60_000_u16))? > 0, "tools do not end");
            let mut some = vec![0; count - done];
            done += self.done.read(&mut some)?;
        }
        Ok(())
    }
}
