//! What was found, before anything is made of it.

use std::path::PathBuf;

use crate::{
    config::Settings,
    host::systemd::look::UserManager,
    policy::surroundings::{Kernel, Surroundings},
};

/// Everything that is judged.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The user, its environment, what the kernel can enforce.
    pub surroundings: Surroundings,
    /// The kernel's release, as uname(2) gives it.
    pub release: String,
    /// The security modules in force; none where the kernel does not show them.
    pub modules: Option<Vec<String>>,
    /// Where the launcher is, or why nowhere.
    pub launcher: Result<PathBuf, String>,
    /// Why the launcher cannot make a root of a tool's own; none where it can, or is not there to be
    /// asked.
    pub no_mounts: Option<String>,
    /// What may forbid user namespaces.
    pub sysctls: Sysctls,
    /// The control groups, or why there are none.
    pub groups: Result<Groups, String>,
    /// The user bus, or why there is none.
    pub bus: Result<OnBus, String>,
    /// The policy, or why a broker would not start with it.
    pub policy: Result<Policy, String>,
    /// Variables that change what a broker does, of those that are set: name and value.
    pub variables: Vec<(&'static str, String)>,
    /// Sockets that a profile may grant.
    pub sockets: Vec<Socket>,
}

/// Settings of the kernel about user namespaces; none where this kernel has no such setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sysctls {
    /// `user.max_user_namespaces`.
    pub max_user_namespaces: Option<u64>,
    /// `kernel.unprivileged_userns_clone`.
    pub unprivileged_userns_clone: Option<u64>,
    /// `kernel.apparmor_restrict_unprivileged_userns`.
    pub apparmor_restrict: Option<u64>,
}

/// What ends a group as a whole (Linux 5.14), and what pauses it (Linux 5.2).
pub const GROUP_FILES: [&str; 2] = ["cgroup.kill", "cgroup.freeze"];

/// The unified hierarchy of control groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups {
    /// The control group of this command.
    pub own: PathBuf,
    /// Which of [`GROUP_FILES`] the kernel has not; none where that cannot be seen.
    pub lacks: Option<Vec<&'static str>>,
}

/// What is on the user bus.
#[derive(Debug, Clone)]
pub struct OnBus {
    /// The user manager, or why none answers.
    pub manager: Result<UserManager, String>,
    /// The broker.
    pub broker: Broker,
}

/// The broker on the user bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broker {
    /// It runs, and says this of itself.
    Running {
        /// Its version.
        version: String,
        /// `systemd` or `portable`.
        backend: String,
        /// The best tier it has; `none` where it opens nothing.
        tier: String,
    },
    /// It runs, and does not answer as it should.
    Silent(String),
    /// The bus starts it when it is first called.
    Activatable,
    /// Nobody has the name, and the bus knows of nobody who could.
    Absent,
}

/// The policy as it would be in force.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The settings of the broker.
    pub settings: Settings,
    /// Directories that hold some of it, weakest first.
    pub directories: Vec<PathBuf>,
    /// How many tools can be asked for.
    pub tools: usize,
    /// Files that are not in force, and why.
    pub faults: Vec<String>,
    /// Symlinks by which tools and profiles are masked.
    pub masked: Vec<String>,
}

/// As a profile names the socket of gpg-agent(1).
pub const GPG_AGENT: &str = "gpg-agent";

/// A socket that a profile may grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Socket {
    /// As a profile names it.
    pub name: &'static str,
    /// Where it is, or why nowhere.
    pub place: Result<PathBuf, String>,
}

impl Facts {
    pub(super) fn kernel(&self) -> &Kernel {
        &self.surroundings.kernel
    }
}
