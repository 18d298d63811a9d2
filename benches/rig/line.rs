//! The bytes of a terminal, as a client of whatever is in the middle gets and gives them: the controller end of a
//! pty, or a stream of the broker.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Instant,
};

use anyhow::{bail, ensure};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    unistd::{read, write},
};

/// How long a line may be silent while something is expected of it, milliseconds.
const PATIENCE_MS: u16 = 60_000;

/// What is read at once.
const BUFFER: usize = 64 << 10;

/// One end of a terminal's bytes, both ways.
#[derive(Debug)]
pub struct Line {
    end: OwnedFd,
    buffer: Vec<u8>,
}

/// A text that is waited for in what comes, in whatever pieces it does.
#[derive(Debug)]
struct Lookout<'a> {
    text: &'a [u8],
    /// The end of what came, as far as the text may have begun in it.
    before: Vec<u8>,
}

impl Line {
    /// Of a descriptor that is non-blocking.
    pub fn new(end: OwnedFd) -> Self {
        Self { end, buffer: vec![0; BUFFER] }
    }

    /// Sends all of it.
    ///
    /// # Errors
    /// As write(2).
    pub fn send(&self, mut bytes: &[u8]) -> anyhow::Result<()> {
        while !bytes.is_empty() {
            match write(&self.end, bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::EAGAIN) => {
                    wait(&mut [self.end.as_fd()], PollFlags::POLLOUT).map(drop)?
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Drops what has come; gives whether anything had.
    ///
    /// # Errors
    /// As read(2), or where the line has ended.
    pub fn drain(&mut self) -> anyhow::Result<bool> {
        let mut any = false;
        while self.read()?.is_some() {
            any = true;
        }
        Ok(any)
    }

    /// Drops what comes until the text has come.
    ///
    /// # Errors
    /// As [`expect_on_all`].
    pub fn expect(&mut self, text: &str) -> anyhow::Result<Instant> {
        expect_on_all(std::slice::from_mut(self), text)
    }

    /// Drops what comes until the other descriptor can be read.
    ///
    /// # Errors
    /// As read(2), or where the line has ended or is silent.
    pub fn drain_until(&mut self, other: BorrowedFd<'_>) -> anyhow::Result<Instant> {
        loop {
            let readable = wait(&mut [self.end.as_fd(), other], PollFlags::POLLIN)?;
            if readable[1] {
                return Ok(Instant::now());
            }
            self.drain()?;
        }
    }

    /// What has come, at most a buffer of it; `None` where nothing has.
    fn read(&mut self) -> anyhow::Result<Option<&[u8]>> {
        match read(&self.end, &mut self.buffer) {
            // A pty whose user end is closed says EIO.
            Ok(0) | Err(Errno::EIO) => bail!("a line ended"),
            Ok(count) => Ok(Some(&self.buffer[..count])),
            Err(Errno::EAGAIN) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Drops what comes on all of these lines, whoever is first, until the text has come on each; gives when it had.
///
/// # Errors
/// As read(2), or where a line has ended or all are silent.
pub fn expect_on_all(lines: &mut [Line], text: &str) -> anyhow::Result<Instant> {
    let mut lookouts: Vec<_> = lines.iter().map(|_| Some(Lookout::new(text))).collect();
    while lookouts.iter().any(Option::is_some) {
        let waiting: Vec<_> = (0..lines.len()).filter(|&i| lookouts[i].is_some()).collect();
        let mut ends: Vec<_> = waiting.iter().map(|&i| lines[i].end.as_fd()).collect();
        let readable = wait(&mut ends, PollFlags::POLLIN)?;
        for (&index, _) in waiting.iter().zip(readable).filter(|(_, readable)| *readable) {
            let came = lines[index].read()?;
            if let (Some(bytes), Some(lookout)) = (came, &mut lookouts[index])
                && lookout.sees(bytes)
            {
                lookouts[index] = None;
            }
        }
    }
    Ok(Instant::now())
}

/// Waits until one of them is ready; says which.
fn wait(ends: &mut [BorrowedFd<'_>], flags: PollFlags) -> anyhow::Result<Vec<bool>> {
    let mut set: Vec<_> = ends.iter().map(|end| PollFd::new(*end, flags)).collect();
    let ready = match poll(&mut set, PollTimeout::from(PATIENCE_MS)) {
        Err(Errno::EINTR) => 1,
        other => other?,
    };
    ensure!(ready > 0, "nothing came, or could be sent, for a minute");
    Ok(set.iter().map(|end| end.any().unwrap_or(false)).collect())
}

impl<'a> Lookout<'a> {
    fn new(text: &'a str) -> Self {
        Self { text: text.as_bytes(), before: Vec::new() }
    }

    /// Looks at what came next. Costs next to nothing where the first byte of the text is not in it, or the reader would
    /// be what is measured.
    fn sees(&mut self, bytes: &[u8]) -> bool {
        let first = self.text[0];
        if !self.before.contains(&first) && !bytes.contains(&first) {
            self.before.clear();
            return false;
        }
        self.before.extend_from_slice(bytes);
        let seen = self.before.windows(self.text.len()).any(|window| window == self.text);
        let overlap = self.before.len().min(self.text.len() - 1);
        self.before.drain(..self.before.len() - overlap);
        seen
    }
}
