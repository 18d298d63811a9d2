//! A confinement in words: the report, before the kernel has been asked.

use std::{
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
};

use landlock::ABI;

use super::{PORTS_ABI, SOCKETS_ABI, open::open_path};
use crate::launch::{
    mounts::protect::{self, Hold, leaves_hooks},
    report::{Gap, Report, Tier},
    spec::{Access, ConfinementSpec, Grant, Network, OwnRoot, Protected, Slot, Target},
};

/// Where services and desktops keep their sockets, that of the user bus first.
const SOCKETS: [&str; 3] = ["/run", "/tmp", "/var/run"];

/// The name of a terminal that has none here (another devpts instance).
pub(super) const TERMINAL: &str = "terminal";

/// Writes a grant into the lists of a report. Device nodes are listed as such only.
pub(super) fn list(report: &mut Report, grant: &Grant, terminal: Option<BorrowedFd<'_>>) {
    let path = match &grant.target {
        Target::Path(path) | Target::Descriptor(_, path) => path.clone(),
        Target::OwnTerminal => {
            let name = terminal.and_then(|terminal| nix::unistd::ttyname(terminal).ok());
            name.unwrap_or_else(|| PathBuf::from(TERMINAL))
        }
    };
    list_path(report, &path, grant.access);
}

/// Writes a path into the lists of a report.
pub(super) fn list_path(report: &mut Report, path: &Path, access: Access) {
    let name = path.to_string_lossy().into_owned();
    if access.device {
        report.devices.push(name);
        return;
    }
    for (granted, paths) in [
        (access.read, &mut report.read),
        (access.write, &mut report.write),
        (access.execute, &mut report.execute),
    ] {
        if granted {
            paths.push(name.clone());
        }
    }
}

/// Everything of a report but the grants.
pub(super) fn describe(
    spec: &ConfinementSpec,
    abi: ABI,
    workspace: Option<BorrowedFd<'_>>,
) -> Report {
    Report {
        tier: spec.tier,
        landlock_abi: abi as u32,
        read: Vec::new(),
        write: Vec::new(),
        execute: Vec::new(),
        devices: Vec::new(),
        protect: Vec::new(),
        network: spec.network.to_string(),
        unix_sockets: if local_sockets(spec, abi) { "session" } else { "none" }.to_owned(),
        sockets: spec.sockets.iter().map(|it| it.at.to_string_lossy().into_owned()).collect(),
        signals: if abi >= ABI::V6 { "session" } else { "open" }.to_owned(),
        syscalls: "filtered".to_owned(),
        capabilities: "none".to_owned(),
        gaps: gaps(spec, abi as u32, workspace),
    }
}

/// Whether local sockets can be left to a tool: those that it could name are its own, lie beneath what
/// was granted, or are granted themselves; and those without a path are scoped.
///
/// Where Landlock does not judge connections, a grant of a place where everybody's sockets are takes
/// them from the tool altogether.
pub(super) fn local_sockets(spec: &ConfinementSpec, abi: ABI) -> bool {
    let everybodys = |grant: &Grant| match &grant.target {
        Target::Path(path) => !grant.access.device && holds_sockets(path, &spec.root),
        Target::Descriptor(..) | Target::OwnTerminal => false,
    };
    match spec.tier {
        Tier::Mounts | Tier::ResolveUnix if abi as u32 >= SOCKETS_ABI => true,
        Tier::Mounts => abi >= ABI::V6 && !spec.grants.iter().any(everybodys),
        Tier::ResolveUnix | Tier::Seccomp => false,
    }
}

fn holds_sockets(path: &Path, root: &OwnRoot) -> bool {
    let places = SOCKETS.iter().map(Path::new).chain(root.home.as_deref());
    let mut places = places.map(|place| place.starts_with(path));
    let beneath = path.starts_with(SOCKETS[0]) && !path.is_file();
    beneath || places.any(|holds| holds)
}

/// What this tier on this Landlock ABI does not enforce on this workspace.
///
/// Abstract sockets are none of it below ABI 6: the filter refuses the sockets themselves.
#[must_use]
pub fn gaps(
    spec: &ConfinementSpec,
    landlock_abi: u32,
    workspace: Option<BorrowedFd<'_>>,
) -> Vec<Gap> {
    let writes = |grant: &&Grant| grant.access.write && !grant.access.device;
    let written = || spec.grants.iter().filter(writes);
    let is_workspace =
        |grant: &Grant| matches!(grant.target, Target::Descriptor(Slot::Workspace, _));
    let leaves = written().any(is_workspace);
    let outside = written().any(|grant| matches!(grant.target, Target::Path(_)));
    let holds = spec.root.protect.iter().map(|it| (it, hold(spec, it, workspace)));
    let ports = matches!(spec.network, Network::TcpConnect(_));
    [
        (spec.tier != Tier::Mounts, Gap::MetadataOutside),
        (leaves_hooks(leaves, &holds.collect::<Vec<_>>()), Gap::GitHooks),
        (leaves, Gap::WorkspaceCode),
        (outside, Gap::OutsideCode),
        (!spec.sockets.is_empty(), Gap::GrantedSockets),
        (spec.no_user_namespace, Gap::NoUserNamespace),
        (written().next().is_some(), Gap::DiskSpace),
        (spec.grants.iter().any(shows_processes), Gap::ProcessesVisible),
        (ports && landlock_abi < 10, Gap::UdpOpen),
        (ports && landlock_abi < PORTS_ABI, Gap::TcpOpen),
        (landlock_abi < 7, Gap::Audit),
        (landlock_abi < 6, Gap::SignalsOutside),
        (landlock_abi < 5, Gap::DeviceIoctl),
        (landlock_abi < 3, Gap::TruncateOutside),
    ]
    .into_iter()
    .filter_map(|(open, gap)| open.then_some(gap))
    .collect()
}

/// How well something will be protected, as far as it can be foreseen.
fn hold(spec: &ConfinementSpec, it: &Protected, workspace: Option<BorrowedFd<'_>>) -> Hold {
    let in_mounts = spec.tier == Tier::Mounts;
    match (&it.beneath, workspace) {
        (Some(directory), _) if !is_written(spec, directory) => Hold::Whole,
        (Some(directory), _) if in_mounts => {
            open_path(directory).map_or(Hold::None, |directory| protect::hold(directory, &it.path))
        }
        (None, Some(workspace)) if in_mounts => protect::hold(workspace, &it.path),
        _ => Hold::None,
    }
}

/// Whether the tool may write in a directory.
fn is_written(spec: &ConfinementSpec, directory: &Path) -> bool {
    spec.grants.iter().filter(|grant| grant.access.write).any(|grant| match &grant.target {
        Target::Path(path) | Target::Descriptor(_, path) => directory.starts_with(path),
        Target::OwnTerminal => false,
    })
}

/// Whether a grant lets other processes be seen: `/proc` is the machine's own in every tier.
fn shows_processes(grant: &Grant) -> bool {
    let Target::Path(path) = &grant.target else { return false };
    grant.access.read && Path::new("/proc").starts_with(path)
}
