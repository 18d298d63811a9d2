//! Where the path of a socket leads, and which sockets nobody gets.
//!
//! A symlink on the way counts only where no tool can have put it: in a directory that no session
//! can have for writing, or where it stays in its own directory.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
};

use crate::policy::{
    off_limits::OffLimits, settled::Settler, sockets::SocketFault, surroundings::Surroundings,
};

/// Most symlinks on the way, as in the kernel (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Followed {
    /// There, by no symlink any more.
    Real(PathBuf),
    /// Nowhere: this symlink does not count.
    Link(PathBuf),
}

/// Follows an absolute path name by name.
///
/// # Errors
/// What a look at one of them gives; `ELOOP` behind too many symlinks.
pub(super) fn follow(path: &Path, off_limits: &OffLimits) -> io::Result<Followed> {
    let mut left = names(path);
    let mut reached = PathBuf::from("/");
    let mut links = 0;
    while let Some(name) = left.pop() {
        if name == ".." {
            reached.pop();
            continue;
        }
        let next = reached.join(&name);
        match fs::read_link(&next) {
            // There, and no symlink (readlink(2)).
            Err(error) if error.kind() == ErrorKind::InvalidInput => reached = next,
            Err(error) => return Err(error),
            Ok(_) if links == LINKS_MAX => return Err(io::Error::from_raw_os_error(libc::ELOOP)),
            Ok(target) if counts(&target, &reached, off_limits)? => {
                links += 1;
                if target.is_absolute() {
                    reached = PathBuf::from("/");
                }
                left.extend(names(&target));
            }
            Ok(_) => return Ok(Followed::Link(next)),
        }
    }
    Ok(Followed::Real(reached))
}

/// The names of a path, the last one first.
fn names(path: &Path) -> Vec<OsString> {
    let named = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    let mut names: Vec<OsString> = named.collect();
    names.reverse();
    names
}

/// Whether a symlink in a directory can be relied on.
fn counts(target: &Path, directory: &Path, off_limits: &OffLimits) -> io::Result<bool> {
    let stays = target.components().all(|part| matches!(part, Component::Normal(_)));
    let everybodys = fs::metadata(directory)?.mode() & 0o002 != 0;
    Ok(stays || (!everybodys && off_limits.workspace(directory).is_some()))
}

/// Why nobody gets a socket, if so: for its place, or because it is one of these by another name.
pub(super) fn never(
    path: &Path,
    socket: &fs::Metadata,
    surroundings: &Surroundings,
) -> Option<SocketFault> {
    let is_same = |known: &Path| {
        let known = fs::metadata(known);
        known.is_ok_and(|known| (known.dev(), known.ino()) == (socket.dev(), socket.ino()))
    };
    let mut places = places(surroundings).into_iter();
    let mut settler = Settler::default();
    let found = places.find(|(place, _)| path.starts_with(settler.settle(place)) || is_same(place));
    found.map(|(_, fault)| fault)
}

fn places(surroundings: &Surroundings) -> Vec<(PathBuf, SocketFault)> {
    let Surroundings { runtime_dir, state_dirs, environment, .. } = surroundings;
    let runtime = |name| runtime_dir.as_ref().map(|runtime: &PathBuf| runtime.join(name));
    let address = environment.get(OsStr::new("DBUS_SESSION_BUS_ADDRESS"));
    let system = |path| Some(PathBuf::from(path));
    std::iter::empty()
        .chain([runtime("bus"), runtime("dbus-1"), system("/run/dbus")])
        .chain([system("/run/dbus/system_bus_socket")])
        .chain(address.into_iter().flat_map(|address| bus_paths(address)).map(Some))
        .map(|place| (place, SocketFault::Bus))
        .chain(
            [runtime("systemd"), runtime("systemd/private")]
                .into_iter()
                .chain([system("/run/systemd"), system("/run/systemd/private")])
                .map(|place| (place, SocketFault::Manager)),
        )
        .filter_map(|(place, fault)| Some((place?, fault)))
        .chain(state_dirs.iter().map(|place| (place.clone(), SocketFault::Broker)))
        .collect()
}

/// The paths in a D-Bus address (D-Bus Specification, "Server Addresses").
fn bus_paths(address: &OsStr) -> Vec<PathBuf> {
    let address = address.to_string_lossy().into_owned();
    let addresses = address.split(';').filter_map(|one| one.strip_prefix("unix:"));
    let keys = addresses.flat_map(|keys| keys.split(','));
    keys.filter_map(|key| key.strip_prefix("path=")).map(PathBuf::from).collect()
}
