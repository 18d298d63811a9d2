//! All ways out that are tried, by what they go for.

mod files;
mod kernel;
mod metadata;
mod network;
mod persistence;
mod processes;
mod shared;
mod sockets;

use super::attempt::Attempt;

/// Every attempt that a probe makes.
pub fn all() -> Vec<Attempt> {
    [
        files::attempts(),
        metadata::attempts(),
        persistence::attempts(),
        sockets::attempts(),
        network::attempts(),
        shared::attempts(),
        processes::attempts(),
        kernel::attempts(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
