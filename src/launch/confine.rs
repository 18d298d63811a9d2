//! From what a tool may touch to what the kernel enforces: a root of its own, Landlock, capabilities,
//! the system call filter.
//!
//! [`Prepared`] holds everything that can fail for a reason in the specification, so that it fails
//! before the scope is there; [`Prepared::restrict`] only throws away rights. The kernel's answers
//! make the [`Report`].

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access as _, AccessNet, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use self::{
    describe::{TERMINAL, describe, list, list_path, local_sockets},
    rights::{handled, rights},
};
use super::{
    capability::{self, CapabilityError},
    mounts::{MountError, Plan},
    report::{Report, Tier},
    seccomp::{Filter, SeccompError},
    spec::{ConfinementSpec, Grant, Network, Slot, Target},
};

mod describe;
mod rights;

pub use describe::gaps;

/// The Landlock ABI that a whole confinement needs: the first with scopes for signals and abstract
/// sockets.
pub const REQUIRED_ABI: u32 = 6;

/// Why a tool cannot be confined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfineError {
    /// Landlock is not built in, or not among the `lsm=` of the kernel's command line.
    #[error("this kernel has no landlock")]
    NoLandlock,
    /// Below [`REQUIRED_ABI`], and the policy does not allow that.
    #[error("landlock ABI {0} is below {REQUIRED_ABI} and the policy does not allow it")]
    OldLandlock(u32),
    /// Ports are granted, but this ABI does not know ports.
    #[error("landlock ABI {0} is below 4 and cannot grant TCP ports")]
    NoPorts(u32),
    /// A granted path cannot be opened.
    #[error("cannot open the granted path {}: {source}", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// The call's error.
        source: io::Error,
    },
    /// A granted file's kind cannot be read.
    #[error("cannot read the kind of a granted file: {source}")]
    Stat {
        /// The call's error.
        source: io::Error,
    },
    /// A grant names a descriptor that did not come.
    #[error("no descriptor came for the {0:?} grant")]
    NoDescriptor(Slot),
    /// A rule or the ruleset was refused.
    #[error("cannot make the landlock ruleset: {source}")]
    Ruleset {
        /// What landlock says.
        source: RulesetError,
    },
    /// The kernel took the ruleset, but not all of it.
    #[error("landlock enforces the ruleset only as {0:?}")]
    NotEnforced(RulesetStatus),
    /// A root of the tool's own.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// Capabilities.
    #[error(transparent)]
    Capability(#[from] CapabilityError),
    /// The system call filter.
    #[error(transparent)]
    Seccomp(#[from] SeccompError),
}

impl From<RulesetError> for ConfineError {
    fn from(source: RulesetError) -> Self {
        Self::Ruleset { source }
    }
}

/// Gives the Landlock ABI of this kernel, 0 where it has none (landlock_create_ruleset(2)).
#[must_use]
pub fn landlock_abi() -> u32 {
    const VERSION: libc::c_uint = 1; // LANDLOCK_CREATE_RULESET_VERSION, which libc does not name
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: with the version flag the call takes no attributes and only returns a number.
    let abi = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0, VERSION) };
    u32::try_from(abi).unwrap_or(0)
}

/// What grants refer to beside paths.
#[derive(Debug)]
pub struct Descriptors<'a> {
    /// Directories opened by the broker, in the order of [`Slot`].
    pub directories: &'a [OwnedFd],
    /// The user end of the session's pty.
    pub terminal: BorrowedFd<'a>,
}

/// A confinement that waits to be put on.
#[derive(Debug)]
pub struct Prepared {
    abi: ABI,
    /// Of the tier that has a root of its own.
    plan: Option<Plan>,
    ruleset: RulesetCreated,
    filter: Filter,
    report: Report,
}

impl Prepared {
    /// Opens every grant and compiles the filter.
    ///
    /// # Errors
    /// [`ConfineError`]; nothing is restricted then.
    pub fn new(
        spec: &ConfinementSpec,
        descriptors: &Descriptors<'_>,
    ) -> Result<Self, ConfineError> {
        let abi = effective_abi(spec)?;
        let mut ruleset = create(abi, &spec.network)?;
        let workspace = descriptors.directories.first().map(AsFd::as_fd);
        let mut report = describe(spec, abi, workspace);
        let mut plan = match (spec.tier, workspace) {
            (Tier::ResolveUnix | Tier::Seccomp, _) => None,
            (Tier::Mounts, Some(workspace)) => Some(Plan::new(spec, workspace)?),
            (Tier::Mounts, None) => return Err(ConfineError::NoDescriptor(Slot::Workspace)),
        };
        for grant in &spec.grants {
            let Some(target) = open(grant, descriptors)? else { continue };
            if let Some(plan) = &mut plan {
                plan.add(grant, target.as_fd())?;
            }
            let rights = rights(&target, grant.access, abi)?;
            if !rights.is_empty() {
                ruleset = ruleset.add_rule(PathBeneath::new(&target, rights))?;
                list(&mut report, grant, descriptors.terminal);
            }
        }
        for port in granted_ports(&spec.network) {
            ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
        let filter = Filter::compile(&spec.network, local_sockets(spec, abi))?;
        Ok(Self { abi, plan, ruleset, filter, report })
    }

    /// Restricts the calling thread and everything that comes of it, for good.
    ///
    /// In the order in which each step can still do its work: the root, `no_new_privs` and Landlock,
    /// capabilities, the filter. The rules were made from files outside, and hold inside: they are
    /// about files, not about mounts.
    ///
    /// # Errors
    /// [`ConfineError`]; the thread may be partly restricted then and must end.
    pub fn restrict(self, descriptors: &Descriptors<'_>) -> Result<Report, ConfineError> {
        let Self { abi, plan, mut ruleset, filter, mut report } = self;
        if let Some(plan) = plan {
            for extra in plan.enter(descriptors)? {
                let rights = rights(&extra.directory, extra.access, abi)?;
                ruleset = ruleset.add_rule(PathBeneath::new(&extra.directory, rights))?;
                list_path(&mut report, &extra.path, extra.access);
            }
        }
        let status = ruleset.restrict_self()?;
        if status.ruleset != RulesetStatus::FullyEnforced || !status.no_new_privs {
            return Err(ConfineError::NotEnforced(status.ruleset));
        }
        capability::drop_all()?;
        filter.install()?;
        Ok(report)
    }
}

/// The kernel's ABI as far as a test's cap and the rights that are known here go.
fn effective_abi(spec: &ConfinementSpec) -> Result<ABI, ConfineError> {
    let kernel = landlock_abi();
    let abi = kernel.min(spec.landlock_abi_cap.unwrap_or(u32::MAX)).min(ABI::V10 as u32);
    if abi == 0 {
        return Err(ConfineError::NoLandlock);
    }
    if abi < REQUIRED_ABI && !spec.allow_degraded {
        return Err(ConfineError::OldLandlock(abi));
    }
    if abi < 4 && matches!(spec.network, Network::TcpConnect(_)) {
        return Err(ConfineError::NoPorts(abi));
    }
    Ok(ABI::from(i32::try_from(abi).unwrap_or(0)))
}

/// Makes a ruleset that denies everything that this ABI can deny.
///
/// Every right is a hard requirement: the kernel has just said that it knows them all. Only any
/// network at all cannot be granted by port, so the network is left alone then.
fn create(abi: ABI, network: &Network) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(handled(abi))?;
    if abi >= ABI::V4 && *network != Network::All {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    if abi >= ABI::V6 {
        ruleset = ruleset.scope(Scope::from_all(abi))?;
    }
    let created = ruleset.create()?;
    // What the tool is refused is worth a line in the audit log; by default only the launcher's own
    // refusals would be.
    if abi >= ABI::V7 { created.log_new_exec(true) } else { Ok(created) }
}

/// Opens what a grant names; `None` where it is missing and need not be there.
fn open(grant: &Grant, descriptors: &Descriptors<'_>) -> Result<Option<OwnedFd>, ConfineError> {
    let failed = |path: &Path, source| ConfineError::Open { path: path.to_owned(), source };
    match &grant.target {
        Target::Path(path) => match open_path(path) {
            Ok(file) => Ok(Some(file)),
            Err(source) if grant.optional && is_missing(&source) => Ok(None),
            Err(source) => Err(failed(path, source)),
        },
        Target::Descriptor(slot, path) => {
            let directory = descriptors.directories.get(*slot as usize);
            let directory = directory.ok_or(ConfineError::NoDescriptor(*slot))?;
            directory.try_clone().map(Some).map_err(|source| failed(path, source))
        }
        Target::OwnTerminal => {
            let terminal = descriptors.terminal.try_clone_to_owned();
            terminal.map(Some).map_err(|source| failed(Path::new(TERMINAL), source))
        }
    }
}

fn open_path(path: &Path) -> io::Result<OwnedFd> {
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    File::options().read(true).custom_flags(flags).open(path).map(OwnedFd::from)
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The ports that Landlock grants.
fn granted_ports(network: &Network) -> &[u16] {
    match network {
        Network::TcpConnect(ports) => ports,
        Network::None | Network::Loopback | Network::All => &[],
    }
}

#[cfg(test)]
mod tests;
