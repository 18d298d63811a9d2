//! What agents are given: the broker's sessions as tools of the Model Context Protocol, over stdio, and what they show as text;
//! and who agents are.
//!
//! A client of the broker like any other, made of [`client`](crate::client) alone; what a session may touch, how it ends
//! and who owns it is not decided here.
#![forbid(unsafe_code)]

mod arguments;
mod call;
mod desk;
mod ending;
mod entry;
mod exec;
mod failure;
mod follow;
pub mod identity;
mod input;
mod output;
mod process;
mod prompt;
mod record;
mod roster;
mod screen;
pub mod serve;
mod server;
mod session;
pub mod settings;
mod table;
pub mod text;
mod transport;
