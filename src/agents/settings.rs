//! What the MCP server may be told: `mcp.toml` of the policy's search path.
//!
//! It narrows: which tools an agent host is shown, and how long, how much and how many. What a session may touch is the
//! catalogue's word alone.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The settings file of a policy directory.
pub const FILE_NAME: &str = "mcp.toml";

/// The settings of one server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The tools that a host is shown, by name.
    pub tools: Vec<ToolName>,
    /// The catalogue entry that `exec` opens.
    pub exec: String,
    /// How long sessions outlive this server, milliseconds; the catalogue's where absent.
    pub grace_ms: Option<u64>,
    /// What holds where a call says nothing.
    pub defaults: Defaults,
    /// What no call gets past.
    pub limits: Limits,
}

/// A tool of this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolName {
    /// Opens a session of an agent, or gives the one that is there.
    CoordinateAgentsSessionOpen,
    /// How a session is.
    CoordinateAgentsSessionStatus,
    /// The end of its output.
    CoordinateAgentsSessionInspect,
    /// Types into it.
    CoordinateAgentsSessionWrite,
    /// Reads its output.
    CoordinateAgentsSessionRead,
    /// Ends it.
    CoordinateAgentsSessionClose,
    /// Runs a command.
    Exec,
    /// What is running, its output, its input, its end.
    Process,
    /// A terminal as a person sees it.
    Screen,
}

/// What holds where a call says nothing. A watchdog of the catalogue entry that ends a session sooner goes before a default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Defaults {
    /// How long `exec` waits, milliseconds.
    pub yield_ms: u64,
    /// Overall watchdog of `exec`, seconds; 0 is none.
    pub timeout_sec: u64,
    /// Watchdog of `exec` for silence, seconds; 0 is none.
    pub silence_timeout_sec: u64,
    /// Lines of `process log`.
    pub log_lines: u64,
}

/// What no call gets past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Longest wait of one call, milliseconds, at most 120 000.
    pub wait_max_ms: u64,
    /// Longest overall watchdog of `exec`, seconds; where it is not 0, none cannot be asked for.
    pub timeout_max_sec: u64,
    /// Most bytes of output in one answer, 1 KiB..=64 KiB.
    pub answer_bytes: u64,
    /// Text that is kept of each session, 16 KiB..=4 MiB.
    pub text_bytes: u64,
    /// Sessions that have ended and are still known, 1..=256.
    pub ended: u64,
    /// Calls that are answered at once, 1..=256.
    pub calls: u64,
    /// Longest message of the protocol, 64 KiB..=16 MiB.
    pub message_bytes: u64,
}

/// A setting outside its bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} {value} is outside {least}..={most}")]
pub struct SettingsError {
    name: &'static str,
    value: u64,
    least: u64,
    most: u64,
}

impl ToolName {
    /// All of them, as a host is shown them.
    pub const ALL: [Self; 9] = [
        Self::CoordinateAgentsSessionOpen,
        Self::CoordinateAgentsSessionStatus,
        Self::CoordinateAgentsSessionInspect,
        Self::CoordinateAgentsSessionWrite,
        Self::CoordinateAgentsSessionRead,
        Self::CoordinateAgentsSessionClose,
        Self::Exec,
        Self::Process,
        Self::Screen,
    ];

    /// Its name in the protocol.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CoordinateAgentsSessionOpen => "coordinate_agents_session_open",
            Self::CoordinateAgentsSessionStatus => "coordinate_agents_session_status",
            Self::CoordinateAgentsSessionInspect => "coordinate_agents_session_inspect",
            Self::CoordinateAgentsSessionWrite => "coordinate_agents_session_write",
            Self::CoordinateAgentsSessionRead => "coordinate_agents_session_read",
            Self::CoordinateAgentsSessionClose => "coordinate_agents_session_close",
            Self::Exec => "exec",
            Self::Process => "process",
            Self::Screen => "screen",
        }
    }

    /// The `command` of its answers; that of `process` is followed by the action.
    #[must_use]
    pub fn command(self) -> &'static str {
        match self {
            Self::CoordinateAgentsSessionOpen => "session.open",
            Self::CoordinateAgentsSessionStatus => "session.status",
            Self::CoordinateAgentsSessionInspect => "session.inspect",
            Self::CoordinateAgentsSessionWrite => "session.write",
            Self::CoordinateAgentsSessionRead => "session.read",
            Self::CoordinateAgentsSessionClose => "session.close",
            Self::Exec => "exec",
            Self::Process => "process",
            Self::Screen => "screen",
        }
    }
}

impl Settings {
    /// Checks every number.
    ///
    /// # Errors
    /// [`SettingsError`], the first that is outside its bounds.
    pub fn check(&self) -> Result<(), SettingsError> {
        let Limits { wait_max_ms, timeout_max_sec, answer_bytes, text_bytes, .. } = self.limits;
        let bounds = [
            ("defaults.yield_ms", self.defaults.yield_ms, 10, wait_max_ms),
            timeout_sec(self.defaults.timeout_sec, timeout_max_sec),
            ("defaults.silence_timeout_sec", self.defaults.silence_timeout_sec, 0, DAYS_30),
            ("defaults.log_lines", self.defaults.log_lines, 1, 2000),
            ("limits.wait_max_ms", wait_max_ms, 10, 120_000),
            ("limits.timeout_max_sec", timeout_max_sec, 0, DAYS_30),
            ("limits.answer_bytes", answer_bytes, 1 << 10, 64 << 10),
            ("limits.text_bytes", text_bytes, 16 << 10, 4 << 20),
            ("limits.ended", self.limits.ended, 1, 256),
            ("limits.calls", self.limits.calls, 1, 256),
            ("limits.message_bytes", self.limits.message_bytes, 64 << 10, 16 << 20),
        ];
        let wrong =
            bounds.into_iter().find(|(_, value, least, most)| !(least..=most).contains(&value));
        match wrong {
            Some((name, value, least, most)) => Err(SettingsError { name, value, least, most }),
            None => Ok(()),
        }
    }

    /// The longest wait that a call may ask for.
    #[must_use]
    pub fn wait_max(&self) -> Duration {
        Duration::from_millis(self.limits.wait_max_ms)
    }
}

/// The longest watchdog of a catalogue entry, seconds.
const DAYS_30: u64 = 2_592_000;

/// The bounds of the default watchdog: where none cannot be asked for, none is no default either.
fn timeout_sec(value: u64, most: u64) -> (&'static str, u64, u64, u64) {
    let (least, most) = if most == 0 { (0, DAYS_30) } else { (1, most) };
    ("defaults.timeout_sec", value, least, most)
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tools: ToolName::ALL.to_vec(),
            exec: "command".into(),
            grace_ms: None,
            defaults: Defaults::default(),
            limits: Limits::default(),
        }
    }
}

impl Default for Defaults {
    fn default() -> Self {
        Self { yield_ms: 10_000, timeout_sec: 1800, silence_timeout_sec: 0, log_lines: 200 }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wait_max_ms: 120_000,
            timeout_max_sec: 0,
            answer_bytes: 32 << 10,
            text_bytes: 512 << 10,
            ended: 64,
            calls: 64,
            message_bytes: 4 << 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, String> {
        let settings: Settings =
            toml::from_str(text).map_err(|error| error.message().to_owned())?;
        settings.check().map_err(|error| error.to_string())?;
        Ok(settings)
    }

    #[test]
    fn the_shipped_file_is_the_default() {
        let shipped = include_str!("../../policy/mcp.toml");
        assert_eq!(parse(shipped), Ok(Settings::default()));
        assert_eq!(parse(""), Ok(Settings::default()));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (text, why) in [
            ("tool = []", "unknown field `tool`"),
            ("tools = [\"shell\"]", "unknown variant `shell`"),
            ("[limits]\nwait_max_ms = 120001", "limits.wait_max_ms 120001 is outside 10..=120000"),
            ("[limits]\nwait_max_ms = 5000", "defaults.yield_ms 10000 is outside 10..=5000"),
            ("[limits]\ntimeout_max_sec = 60", "defaults.timeout_sec 1800 is outside 1..=60"),
            (
                "[defaults]\ntimeout_sec = 0\n[limits]\ntimeout_max_sec = 60",
                "defaults.timeout_sec 0 is outside 1..=60",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(why), "{text}: {error}");
        }
    }

    #[test]
    fn tools_are_written_by_their_names_in_the_protocol() {
        for tool in ToolName::ALL {
            assert_eq!(serde_json::to_value(tool).unwrap(), tool.as_str());
        }
    }
}
