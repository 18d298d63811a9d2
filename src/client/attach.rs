//! The options and the result of `Attach`.

use std::{
    io::{self, IoSlice},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net,
    },
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use super::{ClientError, Dict, Token};

/// What an attached stream may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Read and write.
    #[default]
    Control,
    /// Read only.
    Observe,
}

impl Mode {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Observe => "observe",
        }
    }
}

/// What the bytes of a stream are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Framing {
    /// The terminal's bytes, both ways, after what [`Start`] says; the end of the session is end of file.
    #[default]
    Raw,
    /// Frames of the wire protocol of `compoundingtech/pty`, both ways: sizes and the exit code travel
    /// with the bytes. Who controls and who only looks is said by a frame, ATTACH or PEEK, and then the stream begins
    /// with GEOMETRY and SCREEN, whatever the [`Start`]. DATA is typed without it too, with [`Mode::Control`].
    Pty,
}

/// Where a stream of terminal bytes begins, framing [`Framing::Raw`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Start {
    /// With the bytes that paint the screen and set its modes on a reset terminal. What they paint is not at an offset
    /// of the output: such a stream has no [`Attached::begin`].
    #[default]
    Screen,
    /// With the byte of this absolute offset, or the oldest retained where that is later. What the tool asked of terminals
    /// there is answered already, unless nobody was attached and the session not 50 ms old: a client that shows such a
    /// stream on a terminal drops the answers to what lies before its attaching, or begins with [`Self::Screen`], as
    /// after a claim.
    Cursor(u64),
    /// With what the tool writes next.
    Now,
}

/// The options of one `Attach`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttachOptions {
    /// What it may do.
    pub mode: Mode,
    /// What its bytes are.
    pub framing: Framing,
    /// Where it begins.
    pub start: Start,
    /// Columns and rows of the client's terminal, each 1..=1000; with [`Mode::Control`] only. While the stream is attached
    /// they count among those whose least of each axis is the size of the session; [`Session::resize`] changes them.
    /// With [`Framing::Pty`] they hold where ATTACH tells no size.
    ///
    /// [`Session::resize`]: super::Session::resize
    pub size: Option<(u16, u16)>,
    /// What entitles this one call, where the connection does not.
    pub token: Option<Token>,
}

impl AttachOptions {
    /// The options as the bus carries them.
    #[must_use]
    pub fn to_dict(&self) -> Dict {
        let mode = self.mode.as_str();
        let framing = match self.framing {
            Framing::Raw => "raw",
            Framing::Pty => "pty",
        };
        let (replay, cursor) = match self.start {
            Start::Screen => (None, None),
            Start::Cursor(cursor) => (None, Some(cursor)),
            Start::Now => (Some("none"), None),
        };
        let (columns, rows) = self.size.unzip();
        Dict::new()
            .with("framing", framing)
            .with("mode", mode)
            .with_some("replay", replay)
            .with_some("cursor", cursor)
            .with_some("columns", columns)
            .with_some("rows", rows)
            .with_some("token", self.token.as_ref().map(|token| token.reveal().to_owned()))
    }
}

/// An attached stream: what the session's terminal shows is read from it, and what is written to it is
/// typed there, in the [`Framing`] that was asked for.
///
/// End of file is the end of the session or of the stream alone: [`Session::ended`] tells which. To drop
/// it detaches, and never ends the session.
///
/// [`Session::ended`]: super::Session::ended
#[derive(Debug)]
pub struct Attached {
    stream: UnixStream,
    begin: Option<u64>,
    size: Option<(u16, u16)>,
}

impl Attached {
    /// A stream as `Attach` gave it.
    ///
    /// # Errors
    /// [`ClientError::Stream`] where its descriptor cannot be watched.
    pub(super) fn new(stream: net::UnixStream, info: &Dict) -> Result<Self, ClientError> {
        let failed = |source| ClientError::Stream { source };
        stream.set_nonblocking(true).map_err(failed)?;
        let stream = UnixStream::from_std(stream).map_err(failed)?;
        Ok(Self { stream, begin: info.number("begin"), size: size(info) })
    }

    /// Absolute offset of the stream's first byte, where the stream begins with output and not with a
    /// painted screen; above the cursor asked for where bytes are gone.
    #[must_use]
    pub fn begin(&self) -> Option<u64> {
        self.begin
    }

    /// Columns and rows of the terminal when the stream began.
    #[must_use]
    pub fn size(&self) -> Option<(u16, u16)> {
        self.size
    }

    /// The socket itself.
    #[must_use]
    pub fn into_inner(self) -> UnixStream {
        self.stream
    }

    /// Both directions, for two tasks.
    #[must_use]
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        self.stream.into_split()
    }
}

impl AsFd for Attached {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl AsyncRead for Attached {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Attached {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Columns and rows, where the answer has both.
pub(super) fn size(info: &Dict) -> Option<(u16, u16)> {
    let count = |key| info.number(key).and_then(|count| u16::try_from(count).ok());
    count("columns").zip(count("rows"))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn each_option_has_its_type_of_the_contract() {
        let options = AttachOptions {
            mode: Mode::Observe,
            framing: Framing::Pty,
            start: Start::Cursor(7),
            size: Some((132, 50)),
            token: Some(Token::from("secret".to_owned())),
        };
        let dict = options.to_dict();
        let shown: Vec<_> =
            dict.iter().map(|(key, value)| format!("{key} {}", value.value_signature())).collect();
        let wanted = ["columns q", "cursor t", "framing s", "mode s", "rows q", "token s"]
            .map(str::to_owned);
        assert_eq!(shown, wanted);
        let now = AttachOptions { start: Start::Now, ..AttachOptions::default() }.to_dict();
        assert_eq!((now.text("replay"), now.text("framing")), (Some("none"), Some("raw")));
        assert!(!format!("{options:?}").contains("secret"));
    }

    #[tokio::test]
    async fn it_carries_bytes_both_ways_and_shows_the_end() {
        let (broker, ours) = net::UnixStream::pair().unwrap();
        let info = Dict::new().with("begin", 3_u64).with("columns", 80_u16).with("rows", 24_u16);
        let mut attached = Attached::new(ours, &info).unwrap();
        assert_eq!((attached.begin(), attached.size()), (Some(3), Some((80, 24))));
        broker.set_nonblocking(true).unwrap();
        let mut broker = UnixStream::from_std(broker).unwrap();
        broker.write_all(b"shown").await.unwrap();
        attached.write_all(b"typed").await.unwrap();
        let mut five = [0; 5];
        attached.read_exact(&mut five).await.unwrap();
        assert_eq!(&five, b"shown");
        broker.read_exact(&mut five).await.unwrap();
        assert_eq!(&five, b"typed");
        drop(broker);
        assert_eq!(attached.read(&mut five).await.unwrap(), 0);
    }
}
