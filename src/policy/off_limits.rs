//! Places that no session gets as its workspace, and that no grant may reach by a detour.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::policy::{search_path::SearchPath, settled::Settler, surroundings::Surroundings};

/// Trees of the system: writing there changes what every program of the machine does.
const SYSTEM: &[&str] = &[
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/boot",
    "/efi",
    "/etc",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/snap",
];

/// Directories that hold what belongs to many: fine to be beneath, not to have whole.
const SHARED: &[&str] = &[
    "/",
    "/home",
    "/media",
    "/mnt",
    "/nix",
    "/opt",
    "/srv",
    "/tmp",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/log",
    "/var/spool",
    "/var/tmp",
];

/// Places in the home directory that hold keys, or what the desktop and the user manager start by
/// themselves.
const PERSONAL: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".config/autostart",
    ".config/environment.d",
    ".config/systemd",
    ".local/share/dbus-1",
    ".local/share/systemd",
];

/// Why a place is off limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// Part of the system.
    System,
    /// Shared by many.
    Shared,
    /// The home directory, or one that holds it.
    Home,
    /// Keys, or what starts by itself.
    Personal,
    /// The sockets of the user's services.
    Runtime,
    /// The policy.
    Policy,
    /// The broker's own directories.
    State,
    /// The broker's own programs.
    Programs,
    /// Where tools are found.
    Path,
}

/// All places off limits for one broker.
#[derive(Debug, Clone)]
pub struct OffLimits {
    homes: Vec<PathBuf>,
    /// Neither in them, nor with them inside.
    guarded: Vec<(PathBuf, Why)>,
    programs: Vec<PathBuf>,
}

impl OffLimits {
    /// The places off limits around this broker; `path` is where tools are found.
    ///
    /// A place that does not exist yet is off limits all the same: a tool could make it.
    #[must_use]
    pub fn of(surroundings: &Surroundings, search: &SearchPath, path: &[PathBuf]) -> Self {
        let mut settler = Settler::default();
        let mut homes = vec![&surroundings.home, &surroundings.account_home];
        homes.dedup();
        let personal =
            homes.iter().flat_map(|home| PERSONAL.iter().map(move |name| home.join(name)));
        let guarded = std::iter::empty()
            .chain(surroundings.runtime_dir.iter().map(|path| (path.clone(), Why::Runtime)))
            .chain(search.directories().iter().map(|path| (path.clone(), Why::Policy)))
            .chain(surroundings.state_dirs.iter().map(|path| (path.clone(), Why::State)))
            .chain(personal.map(|path| (path, Why::Personal)))
            .chain(path.iter().map(|path| (path.clone(), Why::Path)))
            .map(|(path, why)| (settler.settle(&path), why))
            .collect();
        Self {
            homes: homes.iter().map(|home| settler.settle(home)).collect(),
            guarded,
            programs: surroundings.programs.iter().map(|path| settler.settle(path)).collect(),
        }
    }

    /// Why a canonical path cannot be a workspace.
    #[must_use]
    pub fn workspace(&self, path: &Path) -> Option<Why> {
        if SHARED.iter().any(|shared| path == Path::new(shared)) {
            return Some(Why::Shared);
        }
        if SYSTEM.iter().any(|tree| path.starts_with(tree)) {
            return Some(Why::System);
        }
        self.write(path)
    }

    /// Why nothing may be granted for writing at a canonical path.
    #[must_use]
    pub fn write(&self, path: &Path) -> Option<Why> {
        if path == Path::new("/") {
            return Some(Why::Shared);
        }
        if self.homes.iter().any(|home| home.starts_with(path)) {
            return Some(Why::Home);
        }
        let overlaps = |place: &Path| path.starts_with(place) || place.starts_with(path);
        let guarded = self.guarded.iter().find(|(place, _)| overlaps(place)).map(|(_, why)| *why);
        let programs = || {
            let held = self.programs.iter().any(|program| program.starts_with(path));
            held.then_some(Why::Programs)
        };
        guarded.or_else(programs)
    }

    /// Why a symlink may not lead to a canonical path: what lies there is granted by its own name
    /// or not at all.
    #[must_use]
    pub fn detour(&self, path: &Path) -> Option<Why> {
        let secret = |why: Why| matches!(why, Why::Personal | Why::Runtime | Why::State);
        self.guarded
            .iter()
            .find(|(place, why)| secret(*why) && path.starts_with(place))
            .map(|(_, why)| *why)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "it is part of the system",
            Self::Shared => "it holds what belongs to many",
            Self::Home => "it is the home directory, or holds it",
            Self::Personal => {
                "it is, holds or lies in a directory of keys or of what starts by itself"
            }
            Self::Runtime => "it is, holds or lies in XDG_RUNTIME_DIR",
            Self::Policy => "it is, holds or lies in a policy directory",
            Self::State => "it is, holds or lies in a directory of the broker's own",
            Self::Programs => "it holds the broker's own programs",
            Self::Path => "it is, holds or lies in a directory of PATH",
        })
    }
}
