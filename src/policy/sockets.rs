//! The sockets of others that one session is granted.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use crate::{
    launch::{
        report::Tier,
        spec::{OwnRoot, SocketGrant},
    },
    policy::{
        cause::Cause,
        grants::SessionValues,
        off_limits::OffLimits,
        search_path::SearchPath,
        socket::{DeclaredSocket, Socket},
        socket_place::{Followed, follow, never},
        surroundings::Surroundings,
        tool::Tool,
    },
};

/// Why a declared socket is not granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// The tier leaves no socket that could be granted.
    #[error("socket \"{socket}\" cannot be granted in the tier \"{}\"", tier.as_str())]
    Tier {
        /// The socket.
        socket: Socket,
        /// The tier.
        tier: Tier,
    },
    /// The broker's environment does not say where it is.
    #[error("socket \"{socket}\" cannot be found ({rule}): a leading '-' lets it be absent")]
    Unset {
        /// The socket.
        socket: Socket,
        /// What is wanted.
        rule: &'static str,
    },
    /// Nothing is there.
    #[error(
        "socket \"{socket}\" cannot be found ({path:?}: {cause}): a leading '-' lets it be absent"
    )]
    Missing {
        /// The socket.
        socket: Socket,
        /// Where it was looked for.
        path: PathBuf,
        /// Why.
        cause: Cause,
    },
    /// It must not be granted.
    #[error("socket \"{socket}\" cannot be granted: {path:?} {fault}")]
    Refused {
        /// The socket.
        socket: Socket,
        /// Where it leads.
        path: PathBuf,
        /// The rule.
        fault: SocketFault,
    },
}

/// What is wrong with the place of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SocketFault {
    /// A file, a directory.
    #[error("is not a socket")]
    NotASocket,
    /// A tool may have put it there.
    #[error("is a symlink that a tool may have put there")]
    Link,
    /// The user's or the machine's bus.
    #[error("is a bus, by which a tool leaves every confinement")]
    Bus,
    /// The service manager.
    #[error("is the service manager's, which starts programs unconfined")]
    Manager,
    /// The broker's own.
    #[error("is the broker's own")]
    Broker,
}

/// What the sockets of one session are judged with.
pub(super) struct Ground<'a> {
    pub(super) tier: Tier,
    pub(super) surroundings: &'a Surroundings,
    pub(super) values: &'a SessionValues,
    pub(super) off_limits: &'a OffLimits,
}

/// The sockets of one session.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    pub(super) grants: Vec<SocketGrant>,
    /// Variables by which they are found.
    pub(super) environment: BTreeMap<OsString, OsString>,
}

impl Sockets {
    /// Judges the sockets of a tool; other names of what is granted are added to `root`.
    ///
    /// # Errors
    /// [`SocketError`] for one that has to be there and is not, and for one that nobody gets.
    pub(super) fn of(
        tool: &Tool,
        ground: &Ground<'_>,
        root: &mut OwnRoot,
    ) -> Result<Self, SocketError> {
        let mut sockets = Self::default();
        for declared in tool.profile.sockets().chain(&tool.declaration.sockets) {
            match ground.grant(&declared.socket, root) {
                Ok(grant) => sockets.add(declared, grant),
                Err(error) if declared.optional && error.is_absence() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(sockets)
    }

    fn add(&mut self, declared: &DeclaredSocket, grant: SocketGrant) {
        let variable = match declared.socket {
            Socket::SshAgent => Some("SSH_AUTH_SOCK"),
            Socket::Wayland => Some("WAYLAND_DISPLAY"),
            Socket::GpgAgent | Socket::At { .. } => None,
        };
        if let Some(variable) = variable {
            self.environment.insert(variable.into(), grant.at.clone().into());
        }
        if !self.grants.contains(&grant) {
            self.grants.push(grant);
        }
    }
}

/// Where a socket is that a tool could be granted in this tier, were it declared.
///
/// # Errors
/// [`SocketError`] where there is none, or nobody gets it.
pub fn look(
    socket: &Socket,
    tier: Tier,
    surroundings: &Surroundings,
    search: &SearchPath,
) -> Result<PathBuf, SocketError> {
    // What has a name of its own lies in no directory of a session.
    let values = &SessionValues::new(surroundings, Path::new("/"), Path::new("/"));
    let off_limits = &OffLimits::of(surroundings, search, &[]);
    let ground = Ground { tier, surroundings, values, off_limits };
    ground.grant(socket, &mut OwnRoot::default()).map(|grant| grant.path)
}

impl SocketError {
    /// Whether it only says that there is none.
    fn is_absence(&self) -> bool {
        !matches!(self, Self::Refused { .. })
    }
}

impl Ground<'_> {
    fn grant(&self, socket: &Socket, root: &mut OwnRoot) -> Result<SocketGrant, SocketError> {
        let tier = |socket: &Socket| SocketError::Tier { socket: socket.clone(), tier: self.tier };
        if self.tier == Tier::Seccomp {
            return Err(tier(socket));
        }
        let (path, at) = self.place(socket)?;
        if at.is_some() && self.tier != Tier::Mounts {
            return Err(tier(socket));
        }
        let real = self.find(socket, &path)?;
        if real != path && at.is_none() {
            root.links.insert(path, real.clone());
        }
        Ok(SocketGrant { at: at.unwrap_or_else(|| real.clone()), path: real })
    }

    /// Where a socket is looked for, and where the tool finds it if that is another place.
    fn place(&self, socket: &Socket) -> Result<(PathBuf, Option<PathBuf>), SocketError> {
        let unset = |rule| SocketError::Unset { socket: socket.clone(), rule };
        let variable = |name| {
            let value = self.surroundings.environment.get(OsStr::new(name));
            value.filter(|value| !value.is_empty()).map(PathBuf::from)
        };
        match socket {
            Socket::At { path, .. } => Ok((path.template().expand(self.values), None)),
            Socket::SshAgent => variable("SSH_AUTH_SOCK")
                .filter(|path| path.is_absolute())
                .map(|path| (path, None))
                .ok_or_else(|| unset("SSH_AUTH_SOCK of the broker is not an absolute path")),
            Socket::Wayland => {
                let directory = self.surroundings.runtime_dir.clone().unwrap_or_default();
                variable("WAYLAND_DISPLAY")
                    .map(|display| directory.join(display))
                    .filter(|path| path.is_absolute())
                    .map(|path| (path, None))
                    .ok_or_else(|| unset("WAYLAND_DISPLAY of the broker leads to no path"))
            }
            Socket::GpgAgent => {
                let home = self.surroundings.home.join(".gnupg");
                if variable("GNUPGHOME").is_some_and(|set| set != home) {
                    return Err(unset("GNUPGHOME of the broker is not ~/.gnupg"));
                }
                // GnuPG's rule for a home in its usual place (gpgconf(1), `--create-socketdir`).
                let runtime = self.surroundings.runtime_dir.as_ref().map(|it| it.join("gnupg"));
                let directory = runtime.filter(|path| path.is_dir()).unwrap_or(home);
                // The restricted one, which neither shows nor changes keys (gpg-agent(1),
                // `--extra-socket`).
                let extra = directory.join("S.gpg-agent.extra");
                Ok((extra, Some(directory.join("S.gpg-agent"))))
            }
        }
    }

    /// Finds the socket at a path, if it may be granted.
    fn find(&self, socket: &Socket, path: &Path) -> Result<PathBuf, SocketError> {
        let missing = |error: io::Error| {
            let (socket, path, cause) = (socket.clone(), path.to_owned(), (&error).into());
            SocketError::Missing { socket, path, cause }
        };
        let refused = |path, fault| SocketError::Refused { socket: socket.clone(), path, fault };
        let real = match follow(path, self.off_limits).map_err(missing)? {
            Followed::Real(real) => real,
            Followed::Link(link) => return Err(refused(link, SocketFault::Link)),
        };
        let metadata = fs::symlink_metadata(&real).map_err(missing)?;
        if !metadata.file_type().is_socket() {
            return Err(refused(real, SocketFault::NotASocket));
        }
        match never(&real, &metadata, self.surroundings) {
            Some(fault) => Err(refused(real, fault)),
            None => Ok(real),
        }
    }
}

#[cfg(test)]
mod tests;
