//! From what a tool may touch to what the kernel enforces: a root of its own, Landlock, capabilities,
//! the system call filter.
//!
//! [`Prepared`] holds everything that can fail for a reason in the specification alone;
//! [`Prepared::restrict`] only throws away rights. The kernel's answers make the [`Report`].

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use self::{
    describe::{TERMINAL, describe, list, list_path, local_sockets},
    open::{open, open_socket},
    rights::{handled, own_rights, rights},
};
use super::{
    capability,
    mounts::Plan,
    report::{Gap, Report, Tier},
    seccomp::Filter,
    spec::{ConfinementSpec, Network, Slot},
};

mod describe;
mod error;
mod open;
mod rights;

pub use describe::gaps;
pub use error::ConfineError;

/// The Landlock ABI that a whole confinement needs: the first with scopes for signals and abstract
/// sockets.
pub const REQUIRED_ABI: u32 = 6;

/// The Landlock ABI that judges connections to pathname sockets, `RESOLVE_UNIX`.
pub const SOCKETS_ABI: u32 = 9;

/// The Landlock ABI that knows TCP ports.
pub const PORTS_ABI: u32 = 4;

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
    /// What the broker opened, in the order of [`Slot`].
    pub received: &'a [OwnedFd],
    /// The user end of the session's pty, where it has one.
    pub terminal: Option<BorrowedFd<'a>>,
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
        let local = local_sockets(spec, abi);
        grantable(spec, local)?;
        let mut ruleset = create(spec, abi)?;
        let workspace = descriptors.received.first().map(AsFd::as_fd);
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
            let rights = rights(&target, grant, abi)?;
            if !rights.is_empty() {
                ruleset = ruleset.add_rule(PathBeneath::new(&target, rights))?;
                list(&mut report, grant, descriptors.terminal);
            }
        }
        for grant in &spec.sockets {
            let socket = open_socket(grant)?;
            if let Some(plan) = &mut plan {
                plan.add_socket(grant, socket.as_fd())?;
            }
            ruleset = add_socket(ruleset, &socket, abi)?;
        }
        ruleset = add_ports(ruleset, &spec.network, abi)?;
        let filter = Filter::compile(&spec.network, local)?;
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
            let inside = plan.enter(descriptors)?;
            for extra in inside.extras {
                let rights = own_rights(&extra.directory, extra.access, abi)?;
                ruleset = ruleset.add_rule(PathBeneath::new(&extra.directory, rights))?;
                list_path(&mut report, &extra.path, extra.access);
            }
            let protected = inside.protected.iter();
            report.protect = protected.map(|path| path.to_string_lossy().into_owned()).collect();
            // What was foreseen may have changed by now, and only what is counts.
            if inside.leaves_hooks && !report.gaps.contains(&Gap::GitHooks) {
                report.gaps.push(Gap::GitHooks);
                report.gaps.sort_unstable();
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
    let ports = matches!(spec.network, Network::TcpConnect(_));
    if abi < PORTS_ABI && ports && !spec.allow_degraded {
        return Err(ConfineError::NoPorts(abi));
    }
    if abi < REQUIRED_ABI && !spec.allow_degraded {
        return Err(ConfineError::OldLandlock(abi));
    }
    if abi < SOCKETS_ABI && spec.tier == Tier::ResolveUnix {
        return Err(ConfineError::NoResolveUnix(abi));
    }
    Ok(ABI::from(i32::try_from(abi).unwrap_or(0)))
}

/// Refuses what a tier cannot give. Whoever judged the request has refused it before.
fn grantable(spec: &ConfinementSpec, local: bool) -> Result<(), ConfineError> {
    let tier = spec.tier;
    if spec.network == Network::Loopback && tier != Tier::Mounts {
        return Err(ConfineError::NoLoopback(tier));
    }
    let Some(first) = spec.sockets.first() else { return Ok(()) };
    let path = first.path.clone();
    match (tier, spec.sockets.iter().find(|socket| socket.at != socket.path)) {
        (Tier::Seccomp, _) => Err(ConfineError::NoSockets { path, tier }),
        (Tier::Mounts | Tier::ResolveUnix, _) if !local => Err(ConfineError::NoLocalSockets(path)),
        (Tier::ResolveUnix, Some(moved)) => {
            let (path, at) = (moved.path.clone(), moved.at.clone());
            Err(ConfineError::SocketElsewhere { path, at, tier })
        }
        (Tier::Mounts | Tier::ResolveUnix, _) => Ok(()),
    }
}

/// Makes a ruleset that denies everything that this ABI can deny.
///
/// Every right is a hard requirement: the kernel has just said that it knows them all. Only any
/// network at all cannot be granted by port, so the network is left alone then, as where it is the
/// session's own.
fn create(spec: &ConfinementSpec, abi: ABI) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(handled(abi))?;
    if spec.tier == Tier::ResolveUnix {
        ruleset = ruleset.handle_access(AccessFs::ResolveUnix)?;
    }
    if abi >= ABI::V4 && matches!(spec.network, Network::None | Network::TcpConnect(_)) {
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

/// Grants connecting to a socket, where Landlock judges that.
fn add_socket(
    ruleset: RulesetCreated,
    socket: &OwnedFd,
    abi: ABI,
) -> Result<RulesetCreated, RulesetError> {
    if (abi as u32) < SOCKETS_ABI {
        return Ok(ruleset);
    }
    ruleset.add_rule(PathBeneath::new(socket, AccessFs::ResolveUnix))
}

/// Grants connecting to ports, where Landlock knows ports.
fn add_ports(
    ruleset: RulesetCreated,
    network: &Network,
    abi: ABI,
) -> Result<RulesetCreated, RulesetError> {
    match network {
        Network::TcpConnect(ports) if abi as u32 >= PORTS_ABI => {
            let rule = |port: &u16| NetPort::new(*port, AccessNet::ConnectTcp);
            ports.iter().map(rule).try_fold(ruleset, RulesetCreated::add_rule)
        }
        Network::None | Network::Loopback | Network::TcpConnect(_) | Network::All => Ok(ruleset),
    }
}

#[cfg(test)]
mod tests;
