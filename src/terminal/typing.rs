//! Input that is more than bytes: keys by name, pastes, the end of a line.

use super::{
    InputModes, PasteError, Terminal, WriteError,
    input::Piece,
    keys::{KeyError, Keys},
    paste::paste,
};

/// What a lone Escape sends, and what every sequence begins with.
const ESCAPE: u8 = 0x1b;

/// Input that was not accepted; none of it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// A key that cannot be sent.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A text that cannot be pasted.
    #[error(transparent)]
    Paste(#[from] PasteError),
    /// What a write of it may fail with.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Terminal {
    /// How keys and pastes reach the tool, with all that it had written when this was asked. Where nobody knows, as
    /// while the terminal is held or there is no memory for a screen, it is taken for a reset terminal.
    pub async fn input_modes(&self) -> InputModes {
        self.draw_all().await;
        let modes = self.shared.direct.unless_held(|| self.shared.output.borrow().input_modes());
        modes.flatten().unwrap_or_default()
    }

    /// Presses keys, all or none; gives as [`Self::write`]. Escape comes alone, and what follows once the tool has
    /// taken it or did not for 250 ms: in one read(2) the two would be another key.
    ///
    /// # Errors
    /// [`WriteError`]; nothing was queued then.
    pub async fn press(&self, keys: &Keys) -> Result<u64, WriteError> {
        let encoded = keys.encode(self.input_modes().await);
        let piece = |bytes| Piece { bytes, alone: bytes.last() == Some(&ESCAPE) };
        let pieces: Vec<_> = encoded.iter().map(|bytes| piece(bytes.as_slice())).collect();
        self.accept(&pieces)
    }

    /// Pastes a text, bracketed or not, or as the tool has asked for it; gives as [`Self::write`].
    ///
    /// # Errors
    /// [`TypeError`]; nothing was queued then.
    pub async fn paste(&self, text: &str, bracketed: Option<bool>) -> Result<u64, TypeError> {
        let bracketed = match bracketed {
            Some(bracketed) => bracketed,
            None => self.input_modes().await.bracketed_paste,
        };
        let bytes = paste(text, bracketed)?;
        Ok(self.accept(&[Piece { bytes: &bytes, alone: false }])?)
    }

    /// Presses Enter by itself: once the tool has taken what was written before or did not for 250 ms, in a write(2)
    /// of its own. A program that reads a paste and Enter in one piece takes both for the paste.
    ///
    /// # Errors
    /// [`WriteError`]; nothing was queued then.
    pub fn submit(&self) -> Result<u64, WriteError> {
        self.accept(&[Piece { bytes: b"\r", alone: true }])
    }

    fn accept(&self, pieces: &[Piece<'_>]) -> Result<u64, WriteError> {
        self.shared.input.push_all(pieces).inspect(|_| self.shared.touch())
    }
}
