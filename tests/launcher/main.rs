//! The real launcher, driven over a socket pair and a pty as the broker drives it, with the probe
//! as the tool.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod attempts;
mod degraded;
mod facts;
mod loopback;
mod mounts;
mod pidfd;
mod pipes;
mod protect;
mod refusals;
mod session;
mod sockets;
mod stopped;
mod supervised;
mod swapped;
