//! Files that say which executable an agent is: `agents.toml` of a project, and of the user.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io::Read,
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{OFlag, OpenHow, ResolveFlag, openat2},
};
use serde::Deserialize;

use crate::policy::{
    agent::{AgentError, Command, CommandRule},
    beneath,
    cause::Cause,
    file::{self, FILE_MAX},
    surroundings::Surroundings,
    workspace::Opened,
};

/// The project's file, in its workspace.
const OF_PROJECT: &str = ".st2-tools/agents.toml";
/// The user's file, in `XDG_CONFIG_HOME`.
const OF_USER: &str = "st2-tools/agents.toml";

/// What is wrong with such a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OverrideFault {
    /// It cannot be opened or read.
    #[error("cannot be read: {0}")]
    Unreadable(Cause),
    /// A symlink leads out of the directory that it has to lie in, or is on the way in a project.
    #[error("is reached through a symlink that is not followed")]
    Symlink,
    /// The user's file names what is not there.
    #[error("is a symlink that leads nowhere")]
    Dangling,
    /// A directory, a pipe, a device.
    #[error("is no regular file")]
    NotAFile,
    /// Somebody else's.
    #[error("belongs to uid {0}, neither the user nor root")]
    Owner(u32),
    /// Others may change it.
    #[error("can be written by others (mode {0:03o})")]
    Writable(u32),
    /// Longer than a file of the policy.
    #[error("is longer than {FILE_MAX} bytes")]
    TooLong,
    /// Not TOML, or an unknown key.
    #[error("{0}")]
    Content(String),
}

/// What a file says of one agent.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) command: Vec<String>,
    source: PathBuf,
}

impl Found {
    pub(super) fn refuse(&self, agent: &str, rule: CommandRule) -> AgentError {
        AgentError::Command { file: self.source.clone(), agent: agent.to_owned(), rule }
    }

    pub(super) fn decides(self, argv: Vec<OsString>) -> Command {
        Command { argv, source: self.source }
    }
}

/// What the project says.
pub(super) fn of_project(workspace: &Opened, agent: &str) -> Result<Option<Found>, AgentError> {
    let source = workspace.path.join(OF_PROJECT);
    let how = how().resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
    let opened = openat2(&workspace.fd, OF_PROJECT, how);
    found(opened.map(File::from), source, agent, |_| Ok(()))
}

/// What the user says.
pub(super) fn of_user(
    surroundings: &Surroundings,
    agent: &str,
) -> Result<Option<Found>, AgentError> {
    let source = surroundings.config_home.join(OF_USER);
    let directory = match File::open(&surroundings.config_home) {
        Ok(directory) => directory,
        Err(error) => return found(Err(errno(&error)), source, agent, |_| Ok(())),
    };
    let opened = beneath::open(directory.as_fd(), Path::new(OF_USER), how());
    if matches!(opened, Err(Errno::ENOENT)) && source.is_symlink() {
        return Err(AgentError::File { file: source, fault: OverrideFault::Dangling });
    }
    let trusted = |file: &std::fs::Metadata| {
        let (uid, mode) = (file.uid(), file.mode() & 0o777);
        if uid != 0 && uid != surroundings.uid.as_raw() {
            return Err(OverrideFault::Owner(uid));
        }
        if mode & 0o022 == 0 { Ok(()) } else { Err(OverrideFault::Writable(mode)) }
    };
    found(opened.map(File::from), source, agent, trusted)
}

/// `agents.toml`, as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Agents {
    #[serde(default)]
    agents: BTreeMap<String, Override>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Override {
    command: Vec<String>,
}

fn found(
    opened: nix::Result<File>,
    source: PathBuf,
    agent: &str,
    check: impl Fn(&std::fs::Metadata) -> Result<(), OverrideFault>,
) -> Result<Option<Found>, AgentError> {
    let agents = match opened {
        Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(None),
        Err(Errno::ELOOP | Errno::EXDEV) => Err(OverrideFault::Symlink),
        Err(errno) => Err(OverrideFault::Unreadable(errno.into())),
        Ok(file) => read(file, &source, check),
    };
    match agents {
        Ok(mut agents) => {
            Ok(agents.agents.remove(agent).map(|it| Found { command: it.command, source }))
        }
        Err(fault) => Err(AgentError::File { file: source, fault }),
    }
}

fn read(
    file: File,
    source: &Path,
    check: impl Fn(&std::fs::Metadata) -> Result<(), OverrideFault>,
) -> Result<Agents, OverrideFault> {
    let unreadable = |error: std::io::Error| OverrideFault::Unreadable((&error).into());
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(OverrideFault::NotAFile);
    }
    check(&metadata)?;
    let mut text = Vec::new();
    file.take(FILE_MAX + 1).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() as u64 > FILE_MAX {
        return Err(OverrideFault::TooLong);
    }
    let text =
        String::from_utf8(text).map_err(|_| OverrideFault::Content("not UTF-8".to_owned()))?;
    file::parse(source, &text).map_err(|error| OverrideFault::Content(error.without_file()))
}

/// A pipe in its place holds nobody up.
fn how() -> OpenHow {
    OpenHow::new().flags(OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC)
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}
