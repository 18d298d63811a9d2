//! The core: sessions, leases, quotas. Pure and synchronous: each call changes the state and gives the effects it caused.

#![forbid(unsafe_code)]

pub mod access;
pub mod clock;
pub mod deadline;
pub mod effect;
pub mod events;
pub mod lane;
pub mod lease;
pub mod name;
pub mod outcome;
pub mod ownership;
pub mod registry;
mod reuse;
pub mod session;
pub mod share;
pub mod view;

pub use registry::Broker;
