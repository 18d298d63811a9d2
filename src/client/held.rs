//! The controller end of a session's terminal, held by this program.

use std::os::{fd::OwnedFd, unix::net};

use tokio::{io::AsyncReadExt, net::UnixStream};

use super::{ClientError, Dict, attach::size};

/// The controller end of a terminal. Nobody else sees what the tool writes, for as long as this lives; to
/// drop it gives the terminal back to the broker, and ends nothing.
///
/// What the terminal shows already is not repeated: [`Session::read`] has what the broker retained of it, up
/// to [`Self::begin`], and what an earlier holder read is known to that one alone. A full-screen tool draws
/// anew when it is told that its size changed, or gets SIGWINCH
/// ([`SessionProxy::signal`](super::session::SessionProxy::signal)).
///
/// [`Session::read`]: super::Session::read
#[derive(Debug)]
pub struct Held {
    /// Reads give what the tool writes, writes are typed, and `TIOCSWINSZ` sets its size. Non-blocking, and
    /// to be left so: the broker has a copy, which shares the flag.
    pub controller: OwnedFd,
    begin: u64,
    size: (u16, u16),
    stream: UnixStream,
}

impl Held {
    pub(super) fn new(stream: net::UnixStream, info: &Dict) -> Result<Self, ClientError> {
        let failed = |source| ClientError::Stream { source };
        let missing = |key| ClientError::Missing { call: "Attach", key };
        stream.set_nonblocking(true).map_err(failed)?;
        let controller = info.descriptor("controller").map_err(failed)?;
        Ok(Self {
            controller: controller.ok_or(missing("controller"))?,
            begin: info.number("begin").ok_or(missing("begin"))?,
            size: size(info).ok_or(missing("columns"))?,
            stream: UnixStream::from_std(stream).map_err(failed)?,
        })
    }

    /// Absolute offset of the first byte that is this holder's to read.
    #[must_use]
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// Columns and rows when the hold began.
    #[must_use]
    pub fn size(&self) -> (u16, u16) {
        self.size
    }

    /// Waits until this holds no longer: the session ended, or it was claimed by another.
    pub async fn over(&mut self) {
        // Nothing is ever sent; whatever comes instead is the end.
        let mut nothing = [0];
        let _ = self.stream.read(&mut nothing).await;
    }
}
