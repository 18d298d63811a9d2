//! A user namespace that changes nothing of who one is, and a mount namespace owned by it.

use std::{fs, path::Path};

use nix::{
    sched::{CloneFlags, unshare},
    unistd::{getegid, geteuid},
};

use super::{
    calls,
    error::{MountError, at},
};

/// Enters both, for an ordinary user and for root alike; the caller then has every capability over
/// the new mounts, and over nothing else.
///
/// The user and group are mapped to themselves, and nobody else: whose files are another's belong to
/// the overflow ids in there. What root could do to them goes with its capabilities anyway.
pub(super) fn enter() -> Result<(), MountError> {
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)
        .map_err(|errno| MountError::Namespace { source: errno.into() })?;
    // Without "deny" an ordinary user may not map a group (user_namespaces(7)).
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", &format!("{group} {group} 1"))?;
    calls::make_all_private().map_err(at("make private what is mounted at", Path::new("/")))
}

fn write(file: &'static str, text: &str) -> Result<(), MountError> {
    fs::write(file, text).map_err(|source| MountError::Identity { file, source })
}
