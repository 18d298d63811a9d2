//! The launcher's end of the control socket.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd},
};

use nix::{
    fcntl::{FcntlArg, fcntl},
    sys::socket::{getsockopt, sockopt},
};
use serde::de::DeserializeOwned;

use super::{
    spec::{FromLauncher, LaunchSpec, ToLauncher},
    wire::{self, Decoder, WireError},
};

/// What the broker said that it may not say.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The socket, or what came over it.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// Another message than the one whose turn it is.
    #[error("expected {expected}, got another message")]
    Unexpected {
        /// The one whose turn it is.
        expected: &'static str,
    },
    /// A specification without its descriptors.
    #[error("{came} descriptors came with the specification instead of {expected}")]
    Descriptors {
        /// How many came.
        came: usize,
        /// As many as [`Io::descriptors`](super::spec::Io::descriptors) says.
        expected: usize,
    },
}

/// What is to be launched, and its descriptors in the order of [`Slot`](super::spec::Slot).
pub type Specification = (Box<LaunchSpec>, Vec<OwnedFd>);

/// A control socket, close-on-exec.
#[derive(Debug)]
pub struct Control {
    socket: OwnedFd,
    decoder: Decoder,
    descriptors: Vec<OwnedFd>,
}

impl Control {
    /// Takes a socket.
    #[must_use]
    pub fn new(socket: OwnedFd) -> Self {
        Self { socket, decoder: Decoder::default(), descriptors: Vec::new() }
    }

    /// Takes a copy of standard input, out of the way of the standard descriptors.
    ///
    /// # Errors
    /// What fcntl(2) gives; `ENOTSOCK` where standard input is no socket.
    pub fn from_stdin() -> io::Result<Self> {
        let stdin = io::stdin();
        getsockopt(&stdin, sockopt::SockType)?;
        let copy = fcntl(&stdin, FcntlArg::F_DUPFD_CLOEXEC(3))?;
        // SAFETY: fcntl has just made this descriptor for us; nobody else owns it.
        Ok(Self::new(unsafe { OwnedFd::from_raw_fd(copy) }))
    }

    /// Waits for the specification and its descriptors; `None` where the broker is gone.
    ///
    /// # Errors
    /// [`ControlError`] for anything else than a specification with as many descriptors as its
    /// [`Io`](super::spec::Io) has.
    pub fn specification(&mut self) -> Result<Option<Specification>, ControlError> {
        let spec = match self.receive()? {
            None => return Ok(None),
            Some(ToLauncher::Spec(spec)) => spec,
            Some(ToLauncher::Release) => {
                return Err(ControlError::Unexpected { expected: "a specification" });
            }
        };
        let (came, expected) = (self.descriptors.len(), spec.io.descriptors());
        if came != expected {
            return Err(ControlError::Descriptors { came, expected });
        }
        Ok(Some((spec, std::mem::take(&mut self.descriptors))))
    }

    /// Waits at the gate; `false` where the broker is gone.
    ///
    /// # Errors
    /// [`ControlError`] for anything else than the release.
    pub fn released(&mut self) -> Result<bool, ControlError> {
        match self.receive()? {
            None => Ok(false),
            Some(ToLauncher::Release) => Ok(true),
            Some(ToLauncher::Spec(_)) => Err(ControlError::Unexpected { expected: "the release" }),
        }
    }

    /// Waits for one message; `None` is end of file.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>, WireError> {
        wire::receive(self.socket.as_fd(), &mut self.decoder, &mut self.descriptors)
    }

    /// Sends one message.
    ///
    /// # Errors
    /// [`WireError`]; the broker may be gone.
    pub fn send(&self, message: &FromLauncher) -> Result<(), WireError> {
        wire::send(self.socket.as_fd(), message)
    }

    /// Sends the release, for a supervisor to the tool-to-be.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn release(&self) -> Result<(), WireError> {
        wire::send(self.socket.as_fd(), &ToLauncher::Release)
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
