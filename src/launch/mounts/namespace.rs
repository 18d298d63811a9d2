//! A user namespace that changes nothing of who one is, and a mount namespace owned by it; a network
//! namespace, where one is wanted.

use std::{
    fs, io,
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
};

use nix::{
    sched::{CloneFlags, unshare},
    sys::socket::{AddressFamily, SockFlag, SockType, socket},
    unistd::{getegid, geteuid},
};

use super::{
    calls,
    error::{MountError, at},
};

// netdevice(7).
nix::ioctl_write_ptr_bad!(set_flags, libc::SIOCSIFFLAGS, libc::ifreq);

/// Enters them, for an ordinary user and for root alike; the caller then has every capability over
/// the new mounts, and over nothing else.
///
/// The user and group are mapped to themselves, and nobody else: whose files are another's belong to
/// the overflow ids in there. What root could do to them goes with its capabilities anyway.
pub(super) fn enter(with_loopback: bool) -> Result<(), MountError> {
    let (user, group) = (geteuid(), getegid());
    let (network, what) = if with_loopback {
        (CloneFlags::CLONE_NEWNET, "user, mount and network")
    } else {
        (CloneFlags::empty(), "user and mount")
    };
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | network)
        .map_err(|errno| MountError::Namespace { what, source: errno.into() })?;
    // Without "deny" an ordinary user may not map a group (user_namespaces(7)).
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", &format!("{group} {group} 1"))?;
    if with_loopback {
        bring_up_loopback().map_err(|source| MountError::Loopback { source })?;
    }
    calls::make_all_private().map_err(at("make private what is mounted at", Path::new("/")))
}

fn write(file: &'static str, text: &str) -> Result<(), MountError> {
    fs::write(file, text).map_err(|source| MountError::Identity { file, source })
}

/// Brings up the one interface that a new network namespace has; the kernel gives it its addresses,
/// 127.0.0.1 and ::1 (netdevice(7)).
fn bring_up_loopback() -> io::Result<()> {
    let (kind, flags) = (SockType::Datagram, SockFlag::SOCK_CLOEXEC);
    let socket: OwnedFd = socket(AddressFamily::Inet, kind, flags, None)?;
    let mut name = [0; libc::IFNAMSIZ];
    for (to, from) in name.iter_mut().zip(c"lo".to_bytes()) {
        *to = from.cast_signed();
    }
    let up = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).map_err(io::Error::other)?;
    let request =
        libc::ifreq { ifr_name: name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: up } };
    // SAFETY: SIOCSIFFLAGS reads the structure that it is given, which outlives the call.
    unsafe { set_flags(socket.as_raw_fd(), &raw const request) }?;
    Ok(())
}
