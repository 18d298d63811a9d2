//! Which tools exist and what a request may ask of each: files, read and validated, then resolved
//! against one request.
//!
//! ```text
//! search path → catalogue (tools, profiles) ─┐
//! broker.toml, environment → settings ───────┼─ resolve ─→ Resolved or Refusal
//! one Open → request, surroundings ──────────┘
//! ```
//!
//! Nothing here starts anything. A policy file that cannot be used disables what it declares; it
//! never widens anything.
#![forbid(unsafe_code)]

pub mod agent;
pub mod arguments;
pub mod catalogue;
pub mod cause;
pub mod composition;
pub mod explain;
pub mod file;
pub mod grants;
pub mod judge;
pub mod off_limits;
pub mod overrides;
pub mod profile;
pub mod protect;
pub mod refusal;
pub mod repository;
pub mod request;
pub mod resolve;
pub mod resolved;
pub mod search_path;
pub mod socket;
pub mod sockets;
pub mod surroundings;
pub mod template;
pub mod tool;
pub mod variable;
pub mod workspace;

mod beneath;
mod environment;
mod narrow;
mod settled;
mod socket_place;

#[cfg(test)]
mod bed;
#[cfg(test)]
mod shipped;
