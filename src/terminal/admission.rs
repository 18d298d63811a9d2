//! Whom a stream or a hold is for, listed before anybody asks whether it may be given.
//!
//! Whoever is listed is among those that the session is taken from by [`Terminal::fence`]. So a claim that comes after
//! the question takes back what is given for its answer, and one that comes before it is what the answer is about:
//! between the two there is no moment in which a former owner could slip in.

use std::sync::Arc;

use super::{
    Attached, Held, Terminal, direct,
    fence::Pass,
    framing::Wish,
    shared::Shared,
    stream,
    stream::{AttachError, Framing, Mode},
};
use crate::host::pty::Size;

/// A client that may be given a stream or a hold. To drop it is to give nothing, and leaves nothing.
#[derive(Debug)]
pub struct Admission {
    shared: Arc<Shared>,
    who: String,
    mode: Mode,
    wish: Option<Wish>,
    pass: Pass,
}

/// What a stream is made with.
pub(super) struct Admitted {
    pub(super) who: String,
    pub(super) mode: Mode,
    pub(super) wish: Option<Wish>,
    pub(super) pass: Pass,
}

impl Terminal {
    /// Lists a client, as [`Self::fence`] knows it, that is to be given a stream or a hold once it is known that it may
    /// have one.
    #[must_use]
    pub fn admit(&self, who: &str, mode: Mode) -> Admission {
        let shared = self.shared.clone();
        let pass = shared.fence.admit(who, mode, &shared.gone);
        Admission { shared, who: who.to_owned(), mode, wish: None, pass }
    }
}

impl Admission {
    /// The size of the client's terminal. While its stream is attached and controls, the size in force is the least of
    /// each axis that such clients wish; [`Terminal::resize_by`] changes what a raw stream wishes. Of a framed one it is
    /// what ATTACH tells, and this where that tells none.
    #[must_use]
    pub fn with_size(self, size: Option<Size>) -> Self {
        Self { wish: size.map(Wish::from), ..self }
    }

    /// As [`Terminal::attach`].
    ///
    /// # Errors
    /// [`AttachError`]; nothing is left of the stream then.
    pub fn attach(self, framing: Framing) -> Result<Attached, AttachError> {
        let Self { shared, who, mode, wish, pass } = self;
        if pass.is_cancelled() {
            return Err(AttachError::Fenced);
        }
        let wish = wish.filter(|_| mode == Mode::Control);
        stream::attach(&shared, Admitted { who, mode, wish, pass }, framing)
    }

    /// As [`Terminal::hold`].
    ///
    /// # Errors
    /// [`AttachError`]; nothing has changed then.
    pub fn hold(self) -> Result<Held, AttachError> {
        direct::hold(&self.shared, self.pass)
    }
}
