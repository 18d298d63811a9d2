//! A client of the broker: typed proxies of the bus contract and a small asynchronous client over them.
//!
//! It stands alone: nothing here knows how the broker is built. A [`Client`] works over any
//! [`zbus::Connection`] that leads to a broker: the user bus, or a private peer-to-peer one.
#![forbid(unsafe_code)]

mod attach;
mod broker;
mod dict;
mod error;
mod id;
pub mod manager;
mod open;
mod outcome;
mod read;
pub mod session;
mod session_client;

pub use self::{
    attach::{AttachOptions, Attached, Mode},
    broker::{Client, Filter, Opened},
    dict::Dict,
    error::{ClientError, Refusal, Step},
    id::{SessionId, SessionIdError},
    open::{Lease, OpenOptions},
    outcome::{Ending, Outcome},
    read::{Chunk, READ_MAX, ReadOptions, WRITE_MAX},
    session_client::Session,
};

/// The broker's well-known name.
pub const BUS_NAME: &str = "org.st2.Tools";
/// The root object.
pub const ROOT_PATH: &str = "/org/st2/Tools";
/// Under which each session has its object.
pub const SESSION_PATH: &str = "/org/st2/Tools/session";
