//! Frames of the attach stream: `[type u8][length u32, big-endian][payload]`, the wire protocol of
//! `compoundingtech/pty`.
//!
//! A frame may declare 32 MiB, so none is ever collected: what is typed is given on as it arrives, and of
//! every other payload a few bytes are kept and the rest is passed over. A decoder holds
//! [`Decoder::KEPT`] bytes at most, whatever it is sent.

use crate::host::pty::Size;

/// The type of a frame.
mod kind {
    pub const DATA: u8 = 0;
    pub const ATTACH: u8 = 1;
    pub const DETACH: u8 = 2;
    pub const RESIZE: u8 = 3;
    pub const EXIT: u8 = 4;
    pub const SCREEN: u8 = 5;
    pub const PEEK: u8 = 6;
    pub const STATUS: u8 = 7;
    pub const GEOMETRY: u8 = 10;
    pub const RESET_INPUT_MODES: u8 = 11;
    pub const CONNECTION_ERROR: u8 = 12;
}

/// The longest payload that a frame may declare: 32 MiB.
pub const MAX_PAYLOAD: u32 = 32 << 20;

/// Bytes before the payload.
pub const HEADER: usize = 5;

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// Type this; no ATTACH need come before it, and after PEEK it means nothing. A frame's payload comes in as many
    /// pieces as it arrived in, none of them empty.
    Data(&'a [u8]),
    /// Attach with control, from a terminal of this size where it tells one.
    Attach(Option<Wish>),
    /// Leave, on purpose.
    Detach,
    /// The client's terminal has this size now; none where the frame is too short to tell.
    Resize(Option<Wish>),
    /// Attach without control.
    Peek(Peek),
    /// Tell about the session.
    Status,
    /// Turn off what makes a terminal send more than keys.
    ResetInputModes,
}

/// The terminal that a client shows a session on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// Columns, 1..=1000.
    pub columns: u16,
    /// Rows, 1..=1000.
    pub rows: u16,
    /// Width and height of a character in pixels; 0 where unknown.
    pub cell: (u16, u16),
}

/// How a client looks at a session that it does not control.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peek {
    /// Text without escape sequences.
    pub plain: bool,
    /// All of the retained output rather than the screen.
    pub retained: bool,
}

/// A frame that nobody may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {0} bytes is longer than {MAX_PAYLOAD}")]
pub struct TooLong(pub u32);

/// Reads the frames of one client, in any pieces.
#[derive(Debug, Default)]
pub struct Decoder {
    header: [u8; HEADER],
    /// How many bytes of the header have come.
    filled: usize,
    /// Bytes of the payload that are still to come, once the header is whole.
    left: u32,
    /// The beginning of a payload that is not to be typed.
    kept: Vec<u8>,
}

impl Decoder {
    /// Bytes kept of a payload that is not to be typed: those of ATTACH that have a meaning here.
    pub const KEPT: usize = 8;

    /// Takes the next request out of what has arrived; `None` where more must come first, with `arrived`
    /// used up then. Unknown types are passed over.
    ///
    /// # Errors
    /// [`TooLong`], and from then on: what follows such a header means nothing.
    pub fn next<'a>(&mut self, arrived: &mut &'a [u8]) -> Result<Option<Request<'a>>, TooLong> {
        while self.fill_header(arrived) {
            if self.left > MAX_PAYLOAD {
                return Err(TooLong(self.left));
            }
            let piece = self.take(arrived);
            let ends = self.left == 0;
            if ends {
                self.filled = 0;
            }
            if self.header[0] == kind::DATA {
                if !piece.is_empty() {
                    return Ok(Some(Request::Data(piece)));
                }
            } else {
                self.keep(piece);
            }
            if !ends {
                return Ok(None);
            }
            if let Some(request) = self.request() {
                return Ok(Some(request));
            }
        }
        Ok(None)
    }

    /// Whether the header is whole.
    fn fill_header(&mut self, arrived: &mut &[u8]) -> bool {
        if self.filled < HEADER {
            let (now, later) = arrived.split_at(arrived.len().min(HEADER - self.filled));
            self.header[self.filled..self.filled + now.len()].copy_from_slice(now);
            self.filled += now.len();
            *arrived = later;
            if self.filled < HEADER {
                return false;
            }
            let [_, length @ ..] = self.header;
            self.left = u32::from_be_bytes(length);
            self.kept.clear();
        }
        true
    }

    /// What has arrived of the payload.
    fn take<'a>(&mut self, arrived: &mut &'a [u8]) -> &'a [u8] {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let (now, later) = arrived.split_at(arrived.len().min(left));
        self.left -= u32::try_from(now.len()).unwrap_or(self.left);
        *arrived = later;
        now
    }

    fn keep(&mut self, piece: &[u8]) {
        let room = Self::KEPT - self.kept.len();
        self.kept.extend(&piece[..piece.len().min(room)]);
    }

    /// The request of a frame that is whole, if it is one.
    fn request(&self) -> Option<Request<'static>> {
        match self.header[0] {
            kind::ATTACH => Some(Request::Attach(Wish::read(&self.kept))),
            kind::DETACH => Some(Request::Detach),
            kind::RESIZE => Some(Request::Resize(Wish::read(&self.kept))),
            kind::PEEK => {
                let flags = self.kept.first().copied().unwrap_or_default();
                Some(Request::Peek(Peek { plain: flags & 1 != 0, retained: flags & 2 != 0 }))
            }
            kind::STATUS => Some(Request::Status),
            kind::RESET_INPUT_MODES => Some(Request::ResetInputModes),
            _ => None,
        }
    }
}

impl Wish {
    /// Reads a size as ATTACH and RESIZE carry it: rows, columns, and optionally the cell's width and height,
    /// each a big-endian u16. What is out of bounds is brought inside.
    fn read(payload: &[u8]) -> Option<Self> {
        let mut numbers =
            payload.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
        let (rows, columns) = (numbers.next()?, numbers.next()?);
        let cell = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        let within = |count: u16| count.clamp(1, Size::MAX);
        Some(Self { columns: within(columns), rows: within(rows), cell })
    }
}

/// The header of a frame.
fn header(kind: u8, length: usize) -> [u8; HEADER] {
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    [kind, length[0], length[1], length[2], length[3]]
}

/// The header of a DATA frame.
#[must_use]
pub fn data_header(length: usize) -> [u8; HEADER] {
    header(kind::DATA, length)
}

/// A SCREEN frame.
#[must_use]
pub fn screen(baseline: &[u8]) -> Vec<u8> {
    [&header(kind::SCREEN, baseline.len()), baseline].concat()
}

/// A STATUS frame, its text JSON.
#[must_use]
pub fn status(text: &str) -> Vec<u8> {
    [&header(kind::STATUS, text.len()), text.as_bytes()].concat()
}

/// A GEOMETRY frame.
#[must_use]
pub fn geometry(size: Size) -> Vec<u8> {
    [&header(kind::GEOMETRY, 4)[..], &size.rows.to_be_bytes(), &size.columns.to_be_bytes()].concat()
}

/// An EXIT frame: the exit code, or 128 and the number of the signal.
#[must_use]
pub fn exit(code: i32) -> Vec<u8> {
    [&header(kind::EXIT, 4)[..], &code.to_be_bytes()].concat()
}

/// A CONNECTION_ERROR frame for a client that was too slow.
#[must_use]
pub fn too_slow() -> Vec<u8> {
    [&header(kind::CONNECTION_ERROR, 1)[..], &[0]].concat()
}

#[cfg(test)]
mod tests;
