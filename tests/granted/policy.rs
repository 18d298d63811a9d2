//! Tools of the test's own, each under a profile of its own.

use std::path::Path;

use st2_tools::config::MAX_TIER_VARIABLE;
use tempfile::TempDir;

use crate::support::{
    Broker, Client, Start, error_of,
    ran::{self, Ran},
    short,
    tools::policy_of,
    within,
};

/// The tiers that can grant a socket where it is.
pub const WITH_SOCKETS: [&str; 2] = ["mounts", "resolve-unix"];

/// A policy directory with a tool `script`, a shell under the profile `workspace` and these lines of TOML beside it.
pub fn script_with(lines: &str) -> TempDir {
    let tool =
        "title = 'script'\ncommand = ['sh', '-ec']\narguments = 'any'\nprofile = 'granted'\n";
    let profile = format!("title = 'granted'\ninclude = ['workspace']\n{lines}\n");
    policy_of(&[("script", tool)], &[("granted", &profile)])
}

/// A broker in one tier, with a policy.
pub fn start(tier: &str, policy: &Path) -> Start {
    Start::default().env(MAX_TIER_VARIABLE, tier).policy(policy)
}

/// Runs a script to its end; `$0` and on are the words after it.
pub async fn run(broker: &Broker, workspace: &Path, argv: &[&str]) -> Ran {
    ran::run(&broker.client().await, "script", workspace, argv).await
}

/// Asserts that a session of the tool is refused; gives the error's short name and its text.
pub async fn refused(client: &Client, workspace: &Path) -> (String, String) {
    let argv = vec!["true".to_owned()];
    let (name, text) = error_of(client.open("script", within(workspace).with("argv", argv)).await);
    (short(&name).to_owned(), text)
}
