//! Tools that run git, or a script beside it, under the shipped profiles.

use std::os::unix::fs::symlink;

use st2_tools::config::MAX_TIER_VARIABLE;
use tempfile::TempDir;

use crate::support::{Broker, Start, keys::SshAgent, tools::policy_with};

/// What a user has who works with remotes: `git` is git, `script` a shell; `-offline` is without remotes by declaration,
/// `plain` without git's profile.
const TOOLS: [(&str, &str); 4] = [
    (
        "git",
        "title = 'git'\ncommand = ['git']\narguments = 'any'\nprofile = ['git', '-git-remote']\n",
    ),
    (
        "script",
        "title = 'script'\ncommand = ['sh', '-ec']\narguments = 'any'\nprofile = ['git', '-git-remote']\n",
    ),
    (
        "script-offline",
        "title = 'script'\ncommand = ['sh', '-ec']\narguments = 'any'\nprofile = 'git'\n",
    ),
    ("script-plain", "title = 'script'\ncommand = ['sh', '-ec']\narguments = 'any'\n"),
];

/// A broker in one tier, which has the agent of its user.
pub async fn broker(tier: &str, agent: &SshAgent, masked: &[&str]) -> (Broker, TempDir) {
    let policy = policy_with(&TOOLS);
    for profile in masked {
        let file = policy.path().join(format!("profiles.d/{profile}.toml"));
        symlink("/dev/null", file).unwrap();
    }
    let start = Start::default().env(MAX_TIER_VARIABLE, tier).policy(policy.path());
    let socket = agent.socket().to_str().unwrap().to_owned();
    (start.env("SSH_AUTH_SOCK", socket).unit().await, policy)
}
