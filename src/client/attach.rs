//! The options and the result of `Attach`.

use tokio::net::UnixStream;

use super::Dict;

/// What an attached stream may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Read and write.
    #[default]
    Control,
    /// Read only.
    Observe,
}

/// The options of one `Attach`, framing `raw`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttachOptions {
    /// What it may do.
    pub mode: Mode,
    /// Absolute offset of the first byte that is wanted; absent, the stream begins with the broker's baseline.
    pub cursor: Option<u64>,
}

/// An attached stream.
#[derive(Debug)]
pub struct Attached {
    /// The terminal's bytes, both ways; end of file is the end of the session or of the stream.
    pub stream: UnixStream,
    /// Absolute offset of the stream's first byte, where the stream begins with output and not with a
    /// painted screen; above the cursor asked for where bytes are gone.
    pub begin: Option<u64>,
}

impl AttachOptions {
    /// The options as the bus carries them.
    #[must_use]
    pub fn to_dict(&self) -> Dict {
        let mode = match self.mode {
            Mode::Control => "control",
            Mode::Observe => "observe",
        };
        Dict::new().with("framing", "raw").with("mode", mode).with_some("cursor", self.cursor)
    }
}
