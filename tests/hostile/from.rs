//! The sessions in which attempts are made: each has its tool, and its workspace in the scene.

use st2_tools::client::Dict;

use crate::support::within;

use super::scene::Scene;

/// The session in which an attempt is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// In a repository of git.
    Repository,
    /// In another one, which is replaced.
    Replaced,
    /// In a workspace that is none.
    Plain,
    /// With the user's ssh-agent granted.
    Keys,
    /// With a loopback network of its own.
    Loopback,
    /// With terminals of its own granted.
    Terminals,
    /// In a linked worktree, whose repository is elsewhere.
    Worktree,
    /// Under the profile of builds.
    Builder,
    /// Under the profile of coding agents, with a directory of its own in the home directory.
    Coder,
    /// Under the profile that reads only.
    Reader,
    /// In a session of its own, after all others: it ends them.
    Last,
}

/// The tools beside the shipped `command`, and their profiles: names and files.
pub const TOOLS: [(&str, &str); 7] = [
    ("keys", "title = 'keys'\ncommand = []\narguments = 'any'\nsockets = ['ssh-agent']"),
    ("loopback", "title = 'loopback'\ncommand = []\narguments = 'any'\nprofile = 'loopback'"),
    (
        "terminals",
        "title = 'terminals'\ncommand = []\narguments = 'any'\ngrants.devices = ['/dev/ptmx']",
    ),
    ("worktree", "title = 'worktree'\ncommand = []\narguments = 'any'\nprofile = 'git'"),
    ("builder", "title = 'builder'\ncommand = []\narguments = 'any'\nprofile = 'build'"),
    ("coder", "title = 'coder'\ncommand = []\narguments = 'any'\nprofile = 'coder'"),
    ("reader", "title = 'reader'\ncommand = []\narguments = 'any'\nprofile = 'readonly'"),
];
pub const PROFILES: [(&str, &str); 2] = [
    ("loopback", "title = 'loopback'\ninclude = ['workspace']\nnetwork = 'loopback'"),
    ("coder", "title = 'coder'\ninclude = ['agent']\ngrants.write = ['~/.coder']"),
];

impl From {
    /// In the order in which they are opened.
    pub const ALL: [Self; 11] = [
        Self::Repository,
        Self::Replaced,
        Self::Plain,
        Self::Keys,
        Self::Loopback,
        Self::Terminals,
        Self::Worktree,
        Self::Builder,
        Self::Coder,
        Self::Reader,
        Self::Last,
    ];

    /// The tool that is opened.
    pub fn tool(self) -> &'static str {
        match self {
            Self::Repository | Self::Replaced | Self::Plain | Self::Last => "command",
            Self::Keys => "keys",
            Self::Loopback => "loopback",
            Self::Terminals => "terminals",
            Self::Worktree => "worktree",
            Self::Builder => "builder",
            Self::Coder => "coder",
            Self::Reader => "reader",
        }
    }

    /// What it is opened with, to run these words.
    pub fn options(self, scene: &Scene, argv: Vec<String>) -> Dict {
        within(&scene.place(self)).with("argv", argv)
    }

    /// The error with which a tier must refuse it, for it cannot give what the tool asks for.
    pub fn refused_in(self, tier: &str) -> Option<&'static str> {
        match (self, tier) {
            (Self::Keys, "seccomp") => Some("NotPermitted"),
            (Self::Loopback, "seccomp" | "resolve-unix") => Some("ConfinementUnavailable"),
            _ => None,
        }
    }
}
