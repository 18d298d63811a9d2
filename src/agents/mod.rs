//! What agents are given: the text of a terminal, made for a model to read; and who they are.
//!
//! Nothing here is the broker's; it is what a client does with what it read.
#![forbid(unsafe_code)]

pub mod identity;
pub mod text;
