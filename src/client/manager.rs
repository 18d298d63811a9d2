//! `org.st2.Tools.Manager1`, as the bus shows it.

use std::collections::BTreeMap;

use zbus::{ObjectPath, OwnedObjectPath, Result, proxy};

use super::Dict;

/// `org.st2.Tools.Manager1`, at the root object.
#[proxy(
    interface = "org.st2.Tools.Manager1",
    default_service = "org.st2.Tools",
    default_path = "/org/st2/Tools"
)]
pub trait Manager {
    /// Opens a tool; replies once its `execve` has succeeded.
    fn open(&self, tool: &str, options: &Dict) -> Result<(OwnedObjectPath, Dict)>;

    /// The sessions that match the filter, one row each.
    fn list_sessions(&self, filter: &Dict) -> Result<Vec<Dict>>;

    /// The catalogue, one row a tool.
    fn list_tools(&self) -> Result<Vec<Dict>>;

    /// A dry run of `Open`.
    fn explain(&self, tool: &str, options: &Dict) -> Result<Dict>;

    /// Makes the caller the owner; gives the token that claims the lease next time, and its sessions.
    fn claim_lease(&self, token: &str) -> Result<(String, Vec<OwnedObjectPath>)>;

    /// Extends a token lease and lets the calling connection control its sessions; gives the
    /// new end, µs since the epoch.
    fn renew_lease(&self, token: &str) -> Result<u64>;

    /// Closes the caller's own sessions that match; gives how many.
    fn close_sessions(&self, filter: &Dict) -> Result<u32>;

    /// The log of lifecycle events after one, at most so many; and the number to go on after.
    fn list_events(&self, after: u64, limit: u32) -> Result<(Vec<Dict>, u64)>;

    /// A session is there.
    #[zbus(signal)]
    fn session_opened(&self, session: ObjectPath<'_>, info: Dict) -> Result<()>;

    /// A session ended.
    #[zbus(signal)]
    fn session_closed(&self, session: ObjectPath<'_>, outcome: Dict) -> Result<()>;

    /// Version of the interfaces: an addition raises it.
    #[zbus(property(emits_changed_signal = "const"))]
    fn version(&self) -> Result<u32>;

    /// Version of the broker.
    #[zbus(property(emits_changed_signal = "const"))]
    fn broker_version(&self) -> Result<String>;

    /// `systemd` or `portable`.
    #[zbus(property(emits_changed_signal = "const"))]
    fn backend(&self) -> Result<String>;

    /// The kernel's Landlock ABI.
    #[zbus(property(emits_changed_signal = "const"))]
    fn landlock_abi(&self) -> Result<u32>;

    /// The best tier available here.
    #[zbus(property(emits_changed_signal = "const"))]
    fn tier(&self) -> Result<String>;

    /// What this broker can do beyond the first version.
    #[zbus(property(emits_changed_signal = "const"))]
    fn features(&self) -> Result<Vec<String>>;

    /// Every limit, by name.
    #[zbus(property(emits_changed_signal = "const"))]
    fn limits(&self) -> Result<BTreeMap<String, u64>>;

    /// The bus that the broker is on.
    #[zbus(property(emits_changed_signal = "const"))]
    fn bus_id(&self) -> Result<String>;
}
