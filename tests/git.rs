//! git for real: commits, remotes over ssh and https, linked worktrees, in every tier that this machine has; and what no
//! session may do with them.

#![allow(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod support;

mod git {
    mod daily;
    mod hostile_links;
    mod lazygit;
    mod remotes;
    mod servers;
    mod tools;
    mod worktrees;
}
