//! The terminal with real tools on real ptys.
#![forbid(unsafe_code)]
// Beside tests too: an `unwrap` of a test is one of its assertions.
#![allow(clippy::unwrap_used)]

mod baseline;
mod direct;
mod ending;
mod flow;
#[path = "../support/frame.rs"]
mod frame;
mod framed;
mod framed_input;
mod frames;
mod judge;
mod pipes;
mod queries;
mod random;
mod renewed;
#[path = "../support/random.rs"]
mod seed;
mod streams;
mod tool;
mod typing;
