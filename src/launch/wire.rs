//! Frames on the control socket, for both ends: the launcher reads and writes them synchronously,
//! the broker as its runtime pleases.
//!
//! [`encode`] and [`Decoder`] know bytes only; [`send_with_descriptors`] and
//! [`receive_with_descriptors`] do one system call each and suit blocking and non-blocking sockets
//! alike.

use std::{
    io::{self, IoSlice, IoSliceMut},
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
};

use nix::{
    cmsg_space,
    errno::Errno,
    sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg},
};
use serde::{Serialize, de::DeserializeOwned};

use super::spec::FRAME_MAX;

/// The most descriptors that ride with a specification: one per [`Slot`](super::spec::Slot).
pub const DESCRIPTORS: usize = 4;

/// Bytes of the length before each frame.
const HEADER: usize = size_of::<u32>();

/// The most descriptors that the kernel sends at once (unix(7), `SCM_MAX_FD`): with room for all of
/// them none is lost unseen.
const SCM_MAX_FD: usize = 253;

/// Bytes asked of one `recvmsg(2)`.
const CHUNK: usize = 16 * 1024;

/// What the other end of the control socket did wrong, or what failed on the way.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// A frame longer than [`FRAME_MAX`], sent or announced.
    #[error("frame of {0} bytes is longer than {FRAME_MAX}")]
    TooLong(usize),
    /// A value that has no wire form: a path that is not UTF-8.
    #[error("cannot encode a message: {source}")]
    Encode {
        /// What postcard says.
        source: postcard::Error,
    },
    /// A frame that is not the message that was expected.
    #[error("cannot decode a frame: {source}")]
    Decode {
        /// What postcard says.
        source: postcard::Error,
    },
    /// A frame longer than the message in it.
    #[error("{0} bytes follow the message in a frame")]
    Trailing(usize),
    /// More descriptors than [`DESCRIPTORS`]; those that came are closed.
    #[error("more than {DESCRIPTORS} descriptors came with one message")]
    TooManyDescriptors,
    /// The socket's own error.
    #[error("cannot use the control socket: {source}")]
    Socket {
        /// The call's error.
        source: io::Error,
    },
}

/// Gives a message as one frame: a little-endian `u32` length and that many bytes of postcard.
///
/// # Errors
/// [`WireError::TooLong`] above [`FRAME_MAX`], [`WireError::Encode`] for a path that is not UTF-8.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, WireError> {
    let encode = |source| WireError::Encode { source };
    let mut frame = postcard::to_extend(message, vec![0; HEADER]).map_err(encode)?;
    let length = frame.len() - HEADER;
    let header = u32::try_from(length).ok().filter(|_| length <= FRAME_MAX);
    let header = header.ok_or(WireError::TooLong(length))?;
    frame[..HEADER].copy_from_slice(&header.to_le_bytes());
    Ok(frame)
}

/// Turns bytes as they arrive into messages.
///
/// Holds at most one frame and what arrived after it. After an error the stream has lost its
/// frames: drop it.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
}

impl Decoder {
    /// Takes bytes that arrived.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Gives the next message, or `None` while its frame is not complete.
    ///
    /// # Errors
    /// [`WireError::TooLong`] as soon as the length is read, [`WireError::Decode`] or
    /// [`WireError::Trailing`] for a frame that is not exactly one `T`.
    pub fn message<T: DeserializeOwned>(&mut self) -> Result<Option<T>, WireError> {
        let Some(header) = self.buffer.first_chunk::<HEADER>() else { return Ok(None) };
        let length = usize::try_from(u32::from_le_bytes(*header)).unwrap_or(usize::MAX);
        if length > FRAME_MAX {
            return Err(WireError::TooLong(length));
        }
        let Some(frame) = self.buffer.get(HEADER..HEADER + length) else { return Ok(None) };
        let (message, rest) =
            postcard::take_from_bytes(frame).map_err(|source| WireError::Decode { source })?;
        if !rest.is_empty() {
            return Err(WireError::Trailing(rest.len()));
        }
        self.buffer.drain(..HEADER + length);
        Ok(Some(message))
    }

    /// Whether no byte waits: end of file here is between frames.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
}

/// Sends the first bytes of a frame together with descriptors, and gives how many bytes went.
///
/// The descriptors ride with the first byte; where fewer than all bytes went, send the rest without
/// them. Never raises SIGPIPE.
///
/// # Errors
/// What `sendmsg(2)` gives; `WouldBlock` on a non-blocking socket means that nothing went.
pub fn send_with_descriptors(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let raw: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let control = if raw.is_empty() { &rights[..0] } else { &rights[..] };
    let slices = [IoSlice::new(bytes)];
    loop {
        match sendmsg::<()>(socket.as_raw_fd(), &slices, control, MsgFlags::MSG_NOSIGNAL, None) {
            Err(Errno::EINTR) => {}
            other => return other.map_err(io::Error::from),
        }
    }
}

/// Sends one message on a blocking socket, whole.
///
/// # Errors
/// As [`encode`], and [`WireError::Socket`].
pub fn send<T: Serialize>(socket: BorrowedFd<'_>, message: &T) -> Result<(), WireError> {
    let frame = encode(message)?;
    let mut rest = &frame[..];
    while !rest.is_empty() {
        let sent = send_with_descriptors(socket, rest, &[])
            .map_err(|source| WireError::Socket { source })?;
        rest = &rest[sent..];
    }
    Ok(())
}

/// Receives what has arrived (at most 16 KiB) into `decoder` and `descriptors`, all close-on-exec;
/// 0 is end of file.
///
/// # Errors
/// [`WireError::TooManyDescriptors`] where `descriptors` would hold more than [`DESCRIPTORS`],
/// [`WireError::Socket`] otherwise; `WouldBlock` on a non-blocking socket means that nothing is
/// there.
pub fn receive_with_descriptors(
    socket: BorrowedFd<'_>,
    decoder: &mut Decoder,
    descriptors: &mut Vec<OwnedFd>,
) -> Result<usize, WireError> {
    let failed = |errno: Errno| WireError::Socket { source: errno.into() };
    let mut chunk = [0; CHUNK];
    let mut space = cmsg_space!([RawFd; SCM_MAX_FD]);
    let count = loop {
        let mut slices = [IoSliceMut::new(&mut chunk)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let message = match recvmsg::<()>(socket.as_raw_fd(), &mut slices, Some(&mut space), flags)
        {
            Err(Errno::EINTR) => continue,
            other => other.map_err(failed)?,
        };
        for control in message.cmsgs().map_err(failed)? {
            if let ControlMessageOwned::ScmRights(raw) = control {
                // SAFETY: the kernel has just installed these descriptors for us; nobody else owns
                // them.
                descriptors.extend(raw.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
            }
        }
        break message.bytes;
    };
    if descriptors.len() > DESCRIPTORS {
        descriptors.clear();
        return Err(WireError::TooManyDescriptors);
    }
    decoder.extend(&chunk[..count]);
    Ok(count)
}

/// Receives one message on a blocking socket; `None` is end of file between frames.
///
/// # Errors
/// As [`receive_with_descriptors`] and [`Decoder::message`]; end of file within a frame is
/// [`WireError::Socket`].
pub fn receive<T: DeserializeOwned>(
    socket: BorrowedFd<'_>,
    decoder: &mut Decoder,
    descriptors: &mut Vec<OwnedFd>,
) -> Result<Option<T>, WireError> {
    loop {
        if let Some(message) = decoder.message()? {
            return Ok(Some(message));
        }
        if receive_with_descriptors(socket, decoder, descriptors)? == 0 {
            let source = io::Error::from(io::ErrorKind::UnexpectedEof);
            return if decoder.is_empty() { Ok(None) } else { Err(WireError::Socket { source }) };
        }
    }
}

#[cfg(test)]
mod tests;
