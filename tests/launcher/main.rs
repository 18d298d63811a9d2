//! The real launcher, driven over a socket pair and a pty as the broker drives it, with the probe
//! as the tool.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod attempts;
mod facts;
mod mounts;
mod protect;
mod refusals;
mod session;
mod supervised;
mod swapped;
