//! A root of the tool's own: a user and a mount namespace that hold only what is granted, so that no
//! other file has a name, and no other socket a path.
//!
//! [`Plan`] is made from the opened grants; [`Plan::enter`] makes the namespaces,
//! builds the root and leaves everything else. Nothing is looked up twice with different results:
//! what is found again is compared with what was opened. The kernel copies mounts of its own
//! namespace only, so a descriptor from before is of no use as a source; the one thing that comes
//! along is the working directory (mount_namespaces(7)), which carries the workspace.
//!
//! The standard descriptors are opened anew inside, so that programs find their terminal by its name
//! there; all others are close-on-exec. Nothing from outside is left.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
    path::{Path, PathBuf},
};

use nix::{
    fcntl::{OFlag, OpenHow, ResolveFlag, openat2},
    mount::{MntFlags, umount2},
    sys::stat::SFlag,
    unistd::{dup2_stderr, dup2_stdin, dup2_stdout, fchdir, pivot_root, ttyname},
};

use self::{
    building::Building,
    error::at,
    source::Source,
    tree::{Identity, NewRoot, Tree, kind},
};
use super::{
    confine::Descriptors,
    spec::{
        Access, ConfinementSpec, Grant, Network, OwnRoot, Protected, Slot, SocketGrant, Target,
    },
};

mod building;
mod calls;
mod error;
mod namespace;
pub mod probe;
pub mod protect;
mod source;
mod tree;

pub use error::MountError;

/// Directories of the tool's own, which it may read and write.
const PRIVATE: [&str; 2] = ["/tmp", "/dev/shm"];

/// Directories that are there, and empty.
const EMPTY: [&str; 2] = ["/run", "/dev/pts"];

/// The node that makes terminals, by its two names.
const PTMX: [&str; 2] = ["/dev/ptmx", "/dev/pts/ptmx"];

/// The session's terminal where `/dev/pts` is an instance of the tool's own, as in containers.
const CONSOLE: &str = "/dev/console";

/// Names in `/dev` that programs rely on.
const DEV_LINKS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// What a new root will hold.
#[derive(Debug)]
pub struct Plan {
    sources: BTreeMap<PathBuf, Source>,
    workspace: PathBuf,
    root: OwnRoot,
    /// Whether there is a network of the session's own.
    with_loopback: bool,
}

/// What a tool has in its root beside the grants.
#[derive(Debug)]
pub struct Extra {
    /// Where.
    pub path: PathBuf,
    /// It.
    pub directory: OwnedFd,
    /// What may be done with it.
    pub access: Access,
}

/// What there is inside, beside the grants.
#[derive(Debug, Default)]
pub struct Inside {
    /// What the tool has of its own.
    pub extras: Vec<Extra>,
    /// What can only be read in the directories that it writes in.
    pub protected: Vec<PathBuf>,
    /// Whether what was to be protected for git's sake is not, all in all.
    pub leaves_hooks: bool,
}

impl Plan {
    /// Begins with what every root has, and the workspace, which nobody may write yet.
    ///
    /// # Errors
    /// [`MountError::Path`] where the workspace has no path any more.
    pub fn new(spec: &ConfinementSpec, workspace: BorrowedFd<'_>) -> Result<Self, MountError> {
        let named = spec.grants.iter().find_map(|grant| match &grant.target {
            Target::Descriptor(Slot::Workspace, path) => Some(path.clone()),
            Target::Descriptor(..) | Target::Path(_) | Target::OwnTerminal => None,
        });
        let workspace = named.map_or_else(|| name_of(workspace), Ok)?;
        let mut sources: BTreeMap<PathBuf, Source> =
            PRIVATE.iter().map(|path| (path.into(), Source::Private)).collect();
        sources.insert(workspace.clone(), Source::Workspace { writable: false });
        let with_loopback = spec.network == Network::Loopback;
        Ok(Self { sources, workspace, root: spec.root.clone(), with_loopback })
    }

    /// Takes one grant, opened.
    ///
    /// # Errors
    /// [`MountError::Path`] where its identity cannot be read.
    pub fn add(&mut self, grant: &Grant, opened: BorrowedFd<'_>) -> Result<(), MountError> {
        let path = match &grant.target {
            Target::Descriptor(Slot::Workspace, _) => {
                let source = Source::Workspace { writable: grant.access.write };
                self.sources.insert(self.workspace.clone(), source);
                return Ok(());
            }
            Target::OwnTerminal => return self.add_terminal(opened),
            Target::Path(path) if PTMX.iter().any(|ptmx| path == Path::new(ptmx)) => {
                self.sources.insert("/dev/pts".into(), Source::Terminals);
                return Ok(());
            }
            Target::Path(path) | Target::Descriptor(_, path) => path,
        };
        let identity = Identity::of(opened).map_err(at("look at", path))?;
        let is_directory = kind(opened).map_err(at("look at", path))? == SFlag::S_IFDIR;
        let source = Source::Path { identity, is_directory, access: grant.access };
        self.sources.insert(path.clone(), source);
        Ok(())
    }

    /// Takes one socket, opened.
    ///
    /// # Errors
    /// [`MountError::Path`] where its identity cannot be read.
    pub fn add_socket(
        &mut self,
        grant: &SocketGrant,
        opened: BorrowedFd<'_>,
    ) -> Result<(), MountError> {
        let identity = Identity::of(opened).map_err(at("look at", &grant.path))?;
        let source = Source::Socket { path: grant.path.clone(), identity };
        self.sources.insert(grant.at.clone(), source);
        Ok(())
    }

    /// A terminal without a name here (of another devpts instance) can be used, but not opened anew.
    fn add_terminal(&mut self, terminal: BorrowedFd<'_>) -> Result<(), MountError> {
        let Ok(name) = ttyname(terminal) else { return Ok(()) };
        let identity = Identity::of(terminal).map_err(at("look at", &name))?;
        self.sources.insert(name.clone(), Source::Terminal { name, identity });
        Ok(())
    }

    /// Leaves everything that is not in the plan, for good; the working directory is then the
    /// session's, inside.
    ///
    /// # Errors
    /// [`MountError`]; the caller may be half inside then and must end.
    pub fn enter(mut self, descriptors: &Descriptors<'_>) -> Result<Inside, MountError> {
        let [workspace, cwd] =
            [Slot::Workspace, Slot::Cwd].map(|slot| &descriptors.received[slot as usize]);
        let inner = inner_path(workspace, cwd)?;
        fchdir(workspace).map_err(at("enter", &self.workspace))?;
        namespace::enter(self.with_loopback)?;
        let carried = Tree::of_cwd().map_err(at("copy the mount of", &self.workspace))?;
        self.settle_terminal();
        let mut building = Building::begin(&self, carried)?;
        for (path, source) in &self.sources {
            building.lay(path, source)?;
        }
        let (mut root, carried, inside) = building.end();
        self.name_the_rest(&mut root)?;
        let cwd_inside = open_inside(&carried, &inner, cwd)?;
        pivot(&root).map_err(at("change the root to", Path::new("/")))?;
        fchdir(&cwd_inside).map_err(at("enter", &inner))?;
        self.open_terminal()?;
        Ok(inside)
    }

    /// The session's terminal gives way to an instance of the tool's own.
    fn settle_terminal(&mut self) {
        if !self.has_terminals() {
            return;
        }
        let own = self.terminal().map(Path::to_owned);
        if let Some(source) = own.and_then(|path| self.sources.remove(&path)) {
            self.sources.insert(CONSOLE.into(), source);
        }
    }

    fn has_terminals(&self) -> bool {
        matches!(self.sources.get(Path::new("/dev/pts")), Some(Source::Terminals))
    }

    /// Where the session's terminal is, if it has a name.
    fn terminal(&self) -> Option<&Path> {
        let is_own = |source: &Source| matches!(source, Source::Terminal { .. });
        self.sources.iter().find(|(_, source)| is_own(source)).map(|(path, _)| path.as_path())
    }

    /// Opens the session's terminal by its name inside, as the standard descriptors.
    fn open_terminal(&self) -> Result<(), MountError> {
        let Some(path) = self.terminal() else { return Ok(()) };
        let terminal =
            File::options().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path);
        let terminal = terminal.map_err(at("open", path))?;
        dup2_stdin(&terminal)
            .and_then(|()| dup2_stdout(&terminal))
            .and_then(|()| dup2_stderr(&terminal))
            .map_err(at("take", path))
    }

    /// Where something that is to be protected is.
    fn place_of(&self, protected: &Protected) -> PathBuf {
        protected.beneath.as_deref().unwrap_or(&self.workspace).join(&protected.path)
    }

    /// The next deeper thing on the way from one to a path.
    fn next_on_the_way<'a>(&self, from: &Path, to: &'a Path) -> Option<&'a Path> {
        let deeper = to.ancestors().take_while(|path| *path != from);
        deeper.filter(|path| self.sources.contains_key(*path)).last()
    }

    fn writes_workspace(&self) -> bool {
        self.sources.get(&self.workspace).is_some_and(Source::is_writable)
    }

    /// Empty directories and other names, where the grants leave room for them.
    fn name_the_rest(&self, root: &mut NewRoot) -> Result<(), MountError> {
        for path in EMPTY.iter().map(Path::new).chain(self.root.home.as_deref()) {
            // A name that is something else already is not missed.
            let _ = root.place(path, true);
        }
        let ptmx = self.has_terminals().then_some((PTMX[0], "pts/ptmx"));
        let dev = DEV_LINKS.into_iter().chain(ptmx);
        for (path, target) in dev {
            let path = Path::new(path);
            root.link(path, Path::new(target)).map_err(at("make the symlink", path))?;
        }
        for (path, target) in system_links().iter().chain(&self.root.links) {
            root.link(path, target).map_err(at("make the symlink", path))?;
        }
        Ok(())
    }
}

/// Symlinks at the top of the file system, such as `/bin` where the system keeps all in `/usr`.
fn system_links() -> BTreeMap<PathBuf, PathBuf> {
    let entries = fs::read_dir("/").into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links.filter_map(|link| Some((link.path(), fs::read_link(link.path()).ok()?))).collect()
}

/// The path by which the kernel knows a descriptor.
fn name_of(file: BorrowedFd<'_>) -> Result<PathBuf, MountError> {
    let link = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    fs::read_link(&link).map_err(at("read", &link))
}

/// The working directory, seen from the workspace.
fn inner_path(workspace: &OwnedFd, cwd: &OwnedFd) -> Result<PathBuf, MountError> {
    let (workspace, cwd) = (name_of(workspace.as_fd())?, name_of(cwd.as_fd())?);
    match cwd.strip_prefix(&workspace) {
        // The empty path is no path to open.
        Ok(inner) => Ok(Path::new(".").join(inner)),
        Err(_) => Err(MountError::Astray { cwd, workspace }),
    }
}

/// Opens the working directory in the new root: the very directory that was judged, or none.
fn open_inside(workspace: &Tree, inner: &Path, cwd: &OwnedFd) -> Result<OwnedFd, MountError> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
    let inside = openat2(workspace, inner, how).map_err(at("open", inner))?;
    let [was, is] = [cwd.as_fd(), inside.as_fd()].map(Identity::of);
    if was.map_err(at("look at", inner))? == is.map_err(at("look at", inner))? {
        Ok(inside)
    } else {
        Err(MountError::Changed(inner.to_owned()))
    }
}

/// Makes the new root the root of all, and lets go of the old one.
///
/// With `.` as both arguments the old root ends up on top of the new one (pivot_root(2)).
fn pivot(root: &NewRoot) -> nix::Result<()> {
    fchdir(root.top())?;
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)
}
