//! The D-Bus edge: reads a call, asks the engine, writes the answer. It decides nothing.

#![forbid(unsafe_code)]

mod callers;
mod dict;
mod error;
mod filter;
mod guard;
mod manager;
mod open;
mod options;
mod owners;
mod properties;
mod publisher;
mod rows;
mod session;

pub use self::{
    callers::Callers,
    error::Error,
    guard::Guarded,
    manager::{Manager, Surface},
    owners::watch_owners,
    publisher::{Publisher, publish},
};

/// The name on the bus.
pub const NAME: &str = "org.st2.Tools";

/// The manager's path; sessions are beneath it.
pub const ROOT: &str = "/org/st2/Tools";

/// What the one peer of a private connection is called, where there are no unique names.
const PEER: &str = ":peer";

/// Numbers the contract; grows with each addition.
pub const VERSION: u32 = 2;

/// A session's path.
#[must_use]
pub fn session_path(id: &crate::broker::name::SessionId) -> zbus::OwnedObjectPath {
    let path = format!("{ROOT}/session/{id}");
    // An id has only letters and digits, each of which an object path may hold.
    zbus::ObjectPath::try_from(path).expect("a session id makes an object path").into()
}
