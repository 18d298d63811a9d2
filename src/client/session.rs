//! `org.st2.Tools.Session1`, as the bus shows it.

use std::collections::BTreeMap;

use serde_bytes::{ByteBuf, Bytes};
use zbus::{OwnedFd, Result, proxy};

use super::Dict;

/// `org.st2.Tools.Session1`, one object a session.
///
/// No call starts a broker: a session never outlives the one that opened it.
#[proxy(
    interface = "org.st2.Tools.Session1",
    default_service = "org.st2.Tools",
    assume_defaults = false
)]
pub trait Session {
    /// The screen as text.
    #[zbus(no_autostart)]
    fn screen(&self, options: &Dict) -> Result<Dict>;

    /// One end of a fresh socket pair that carries the terminal's bytes.
    #[zbus(no_autostart)]
    fn attach(&self, options: &Dict) -> Result<(OwnedFd, Dict)>;

    /// Output from an absolute offset on: the bytes, where they begin, where they end, and whether
    /// nothing will follow.
    #[zbus(no_autostart)]
    fn read(
        &self,
        cursor: u64,
        max_bytes: u32,
        options: &Dict,
    ) -> Result<(ByteBuf, u64, u64, bool)>;

    /// Input, at most 64 KiB; gives how many bytes were accepted since the session began.
    #[zbus(no_autostart)]
    fn write(&self, data: &Bytes, options: &Dict) -> Result<u64>;

    /// Presses keys by name, all or none.
    #[zbus(no_autostart)]
    fn send_keys(&self, keys: &[&str], options: &Dict) -> Result<()>;

    /// Pastes a text, at most 64 KiB.
    #[zbus(no_autostart)]
    fn paste(&self, text: &str, options: &Dict) -> Result<()>;

    /// Presses Enter, after everything written before.
    #[zbus(no_autostart)]
    fn submit(&self) -> Result<()>;

    /// A token with which another connection may observe or control the session.
    #[zbus(no_autostart)]
    fn share(&self, mode: &str) -> Result<String>;

    /// Sets the terminal's size, at once and whatever attached clients wish, until one of them wishes another or leaves;
    /// the wishes of this connection's own raw streams become this size.
    #[zbus(no_autostart)]
    fn resize(&self, columns: u16, rows: u16, options: &Dict) -> Result<()>;

    /// Sends a signal to the foreground process group.
    #[zbus(no_autostart)]
    fn signal(&self, name: &str) -> Result<()>;

    /// What Ctrl-C would do.
    #[zbus(no_autostart)]
    fn interrupt(&self) -> Result<()>;

    /// Ends the session gently; replies with the outcome.
    #[zbus(no_autostart)]
    fn close(&self, options: &Dict) -> Result<Dict>;

    /// Ends the session at once; replies with the outcome.
    #[zbus(no_autostart)]
    fn kill(&self) -> Result<Dict>;

    /// Waits for the end, at most so many milliseconds.
    #[zbus(no_autostart)]
    fn wait(&self, timeout_ms: u64) -> Result<(bool, Dict)>;

    /// Freezes the session.
    #[zbus(no_autostart)]
    fn pause(&self) -> Result<()>;

    /// Thaws the session.
    #[zbus(no_autostart)]
    fn resume(&self) -> Result<()>;

    /// Drops a closed session from the retained list.
    #[zbus(no_autostart)]
    fn forget(&self) -> Result<()>;

    /// The session ended, and its last byte can be read.
    #[zbus(signal)]
    fn closed(&self, outcome: Dict) -> Result<()>;

    /// Short and opaque.
    #[zbus(property(emits_changed_signal = "const"))]
    fn id(&self) -> Result<String>;

    /// The catalogue entry it is an instance of.
    #[zbus(property(emits_changed_signal = "const"))]
    fn tool(&self) -> Result<String>;

    /// Its argv.
    #[zbus(property(emits_changed_signal = "const"))]
    fn command(&self) -> Result<Vec<String>>;

    /// Canonical path of its workspace.
    #[zbus(property(emits_changed_signal = "const"))]
    fn workspace(&self) -> Result<String>;

    /// Canonical path of its first working directory.
    #[zbus(property(emits_changed_signal = "const"))]
    fn cwd(&self) -> Result<String>;

    /// Its scope.
    #[zbus(property(emits_changed_signal = "const"))]
    fn unit(&self) -> Result<String>;

    /// `pty` or `pipe`.
    #[zbus(property(emits_changed_signal = "const"))]
    fn io(&self) -> Result<String>;

    /// µs since the epoch.
    #[zbus(property(emits_changed_signal = "const"))]
    fn created_usec(&self) -> Result<u64>;

    /// Attribution.
    #[zbus(property(emits_changed_signal = "const"))]
    fn labels(&self) -> Result<BTreeMap<String, String>>;

    /// What the kernel accepted of its confinement.
    #[zbus(property(emits_changed_signal = "const"))]
    fn confinement(&self) -> Result<Dict>;

    /// `opening`, `running`, `closing` or `closed`.
    #[zbus(property)]
    fn phase(&self) -> Result<String>;

    /// `busy` or `idle`.
    #[zbus(property)]
    fn activity(&self) -> Result<String>;

    /// Unique name of the owner; empty for a token lease.
    #[zbus(property)]
    fn owner(&self) -> Result<String>;

    /// `present`, `grace`, `token` or `gone`.
    #[zbus(property)]
    fn owner_state(&self) -> Result<String>;

    /// When the grace ends, µs since the epoch; 0 where it has not begun.
    #[zbus(property)]
    fn grace_deadline_usec(&self) -> Result<u64>;

    /// Columns of the terminal.
    #[zbus(property)]
    fn columns(&self) -> Result<u16>;

    /// Rows of the terminal.
    #[zbus(property)]
    fn rows_count(&self) -> Result<u16>;

    /// The title that the tool has set.
    #[zbus(property)]
    fn title(&self) -> Result<String>;

    /// Whether it is frozen.
    #[zbus(property)]
    fn paused(&self) -> Result<bool>;

    /// Attached streams.
    #[zbus(property)]
    fn attached(&self) -> Result<u32>;

    /// Whether a direct holder reads its output.
    #[zbus(property)]
    fn direct(&self) -> Result<bool>;

    /// Offsets of the output at which direct holders read bytes that are not in it.
    #[zbus(property(emits_changed_signal = "false"))]
    fn unseen_at(&self) -> Result<Vec<u64>>;

    /// How it ended; empty before.
    #[zbus(property)]
    fn outcome(&self) -> Result<Dict>;

    /// Bytes of output so far.
    #[zbus(property(emits_changed_signal = "false"))]
    fn bytes_out(&self) -> Result<u64>;

    /// Bytes of input so far.
    #[zbus(property(emits_changed_signal = "false"))]
    fn bytes_in(&self) -> Result<u64>;

    /// Bytes of output that can no longer be read.
    #[zbus(property(emits_changed_signal = "false"))]
    fn bytes_dropped(&self) -> Result<u64>;

    /// Whether it is alive, has been quiet for 15 s and reads its terminal.
    #[zbus(property(emits_changed_signal = "false"))]
    fn waiting_for_input(&self) -> Result<bool>;

    /// When it last wrote, µs since the epoch.
    #[zbus(property(emits_changed_signal = "false"))]
    fn last_activity_usec(&self) -> Result<u64>;
}
