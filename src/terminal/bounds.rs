//! What one session's terminal may take, and what may be done with it.

/// The bounds of one terminal; the defaults are those of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Output that is retained, brought into `Terminal::MIN_RING..=Terminal::MAX_RING`. Of pipes, half of it each, and as
    /// much as the smallest ring at least.
    pub ring_bytes: usize,
    /// Input that may wait for the tool.
    pub input_queue_bytes: usize,
    /// What one write may hold.
    pub write_bytes: usize,
    /// Streams that may be attached at a time.
    pub streams: u32,
    /// Whether the controller end may be lent to a holder.
    pub direct: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            ring_bytes: 256 << 10,
            input_queue_bytes: 1 << 20,
            write_bytes: 64 << 10,
            streams: 4,
            direct: false,
        }
    }
}
