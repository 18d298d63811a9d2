//! All ways out that are tried, by what they go for.

mod files;
mod granted;
mod kernel;
mod metadata;
mod network;
mod persistence;
mod processes;
mod profiles;
mod shared;
mod sockets;
mod worktrees;

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
        granted::attempts(),
        worktrees::attempts(),
        profiles::attempts(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
