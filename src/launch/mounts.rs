//! A root of the tool's own: a user and a mount namespace that hold only what is granted, so that no
//! other file has a name, and no other socket a path.
//!
//! [`Plan`] is made before the gate, from the opened grants; [`Plan::enter`] makes the namespaces,
//! builds the root and leaves everything else. Nothing is looked up twice with different results:
//! what is found again is compared with what was opened. The kernel copies mounts of its own
//! namespace only, so a descriptor from before is of no use as a source; the one thing that comes
//! along is the working directory (mount_namespaces(7)), which carries the workspace.
//!
//! The standard descriptors are opened anew inside, so that programs find their terminal by its name
//! there; all others are close-on-exec. Nothing from outside is left.

use std::{
    collections::BTreeMap,
    ffi::CStr,
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
    calls::{NODEV, NOEXEC, NOSUID, RDONLY},
    error::at,
    protect::Guard,
    tree::{Identity, NewRoot, Tree, kind},
};
use super::{
    confine::Descriptors,
    spec::{Access, ConfinementSpec, Grant, OwnRoot, Slot, Target},
};

mod calls;
mod error;
mod namespace;
pub mod probe;
pub mod protect;
mod tree;

pub use error::MountError;

/// The most that a tool may keep in its own `/tmp`, and in its own `/dev/shm`. Their pages count as
/// memory of the session.
const PRIVATE_SIZE: &CStr = c"268435456";

/// The most files in each.
const PRIVATE_INODES: &CStr = c"65536";

/// Enough for the names on the way to every grant.
const TOP_SIZE: &CStr = c"4194304";

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

/// Where one thing in the new root comes from.
#[derive(Debug)]
enum Source {
    /// The same path, as long as it is the same file.
    Path { identity: Identity, is_directory: bool, access: Access },
    /// The workspace, carried by the working directory.
    Workspace { writable: bool },
    /// The session's terminal, by its name outside.
    Terminal { name: PathBuf, identity: Identity },
    /// Nothing: memory.
    Private,
    /// Nothing: a new instance of devpts.
    Terminals,
}

/// What a new root will hold.
#[derive(Debug)]
pub struct Plan {
    sources: BTreeMap<PathBuf, Source>,
    workspace: PathBuf,
    root: OwnRoot,
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
        Ok(Self { sources, workspace, root: spec.root.clone() })
    }

    /// Takes one grant, opened.
    ///
    /// # Errors
    /// [`MountError::Path`] where its identity cannot be read.
    pub fn add(&mut self, grant: &Grant, opened: BorrowedFd<'_>) -> Result<(), MountError> {
        let (path, access) = match &grant.target {
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
            Target::Path(path) => (self.settled(path, opened)?, grant.access),
            Target::Descriptor(_, path) => (path.clone(), grant.access),
        };
        let identity = Identity::of(opened).map_err(at("look at", &path))?;
        let is_directory = kind(opened).map_err(at("look at", &path))? == SFlag::S_IFDIR;
        self.sources.insert(path, Source::Path { identity, is_directory, access });
        Ok(())
    }

    /// The path without symlinks; where it is another, the one that was named leads there.
    fn settled(&mut self, path: &Path, opened: BorrowedFd<'_>) -> Result<PathBuf, MountError> {
        let settled = name_of(opened)?;
        if settled != path {
            self.root.links.insert(path.to_owned(), settled.clone());
        }
        Ok(settled)
    }

    /// A terminal without a name here (of another devpts instance) can be used, but not opened anew.
    fn add_terminal(&mut self, terminal: BorrowedFd<'_>) -> Result<(), MountError> {
        let Ok(name) = ttyname(terminal) else { return Ok(()) };
        let identity = Identity::of(terminal).map_err(at("look at", &name))?;
        self.sources.insert(name.clone(), Source::Terminal { name, identity });
        Ok(())
    }

    /// Leaves everything that is not in the plan, for good; the working directory is then the
    /// session's, inside. Gives what the tool has beside the grants.
    ///
    /// # Errors
    /// [`MountError`]; the caller may be half inside then and must end.
    pub fn enter(mut self, descriptors: &Descriptors<'_>) -> Result<Vec<Extra>, MountError> {
        let [workspace, cwd] =
            [Slot::Workspace, Slot::Cwd].map(|slot| &descriptors.directories[slot as usize]);
        let inner = inner_path(workspace, cwd)?;
        fchdir(workspace).map_err(at("enter", &self.workspace))?;
        namespace::enter()?;
        let carried = Tree::of_cwd().map_err(at("copy the mount of", &self.workspace))?;
        self.settle_terminal();
        let mut root = self.top()?;
        let mut extras = Vec::new();
        for (path, source) in &self.sources {
            match source {
                Source::Workspace { writable } => {
                    self.lay_workspace(&mut root, &carried, *writable)?
                }
                other => extras.extend(lay(&mut root, path, other)?),
            }
        }
        self.name_the_rest(&mut root)?;
        let cwd_inside = open_inside(&carried, &inner, cwd)?;
        pivot(&root).map_err(at("change the root to", Path::new("/")))?;
        fchdir(&cwd_inside).map_err(at("enter", &inner))?;
        self.open_terminal()?;
        Ok(extras)
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

    /// An empty file system, or everything where everything is granted; on top of the old root, for
    /// pivot_root(2) takes only what is mounted.
    ///
    /// It is not read-only: Landlock denies writing with EACCES, which programs expect of a home
    /// directory and do not give up on, as some do on EROFS.
    fn top(&mut self) -> Result<NewRoot, MountError> {
        let path = Path::new("/");
        let whole = self.sources.remove(path);
        let top = match &whole {
            Some(source) => copy(path, source)?,
            None => Tree::tmpfs(&[(c"mode", c"0755"), (c"size", TOP_SIZE)], NOSUID | NODEV)
                .map_err(at("make a file system for", path))?,
        };
        let outside = File::open(path).map_err(at("open", path))?;
        top.attach(&outside).map_err(at("mount", path))?;
        NewRoot::new(top, whole.is_none()).map_err(at("look at", path))
    }

    fn lay_workspace(
        &self,
        root: &mut NewRoot,
        tree: &Tree,
        writable: bool,
    ) -> Result<(), MountError> {
        let path = &self.workspace;
        let attributes = NOSUID | NODEV | if writable { 0 } else { RDONLY };
        tree.restrict(attributes).map_err(at("restrict the mount of", path))?;
        let place = root.place(path, true).map_err(at("make the place of", path))?;
        tree.attach(place).map_err(at("mount", path))?;
        let mut guard = Guard::default();
        for protected in self.root.protect.iter().filter(|_| writable) {
            let what = at("protect", &protected.path);
            guard.protect(tree, protected).map_err(what)?;
        }
        Ok(())
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

/// Puts one thing but the workspace in its place.
fn lay(root: &mut NewRoot, path: &Path, source: &Source) -> Result<Option<Extra>, MountError> {
    let tree = copy(path, source)?;
    let is_directory = match source {
        Source::Path { is_directory, .. } => *is_directory,
        Source::Terminal { .. } => false,
        Source::Workspace { .. } | Source::Private | Source::Terminals => true,
    };
    let place = root.place(path, is_directory).map_err(at("make the place of", path))?;
    tree.attach(place).map_err(at("mount", path))?;
    let read_write = Access { read: true, write: true, ..Access::default() };
    let access = match source {
        Source::Private => {
            root.own(&tree).map_err(at("look at", path))?;
            read_write
        }
        Source::Terminals => Access { device: true, ..read_write },
        Source::Path { .. } | Source::Terminal { .. } | Source::Workspace { .. } => {
            return Ok(None);
        }
    };
    let directory = tree.as_fd().try_clone_to_owned().map_err(at("open", path))?;
    Ok(Some(Extra { path: path.to_owned(), directory, access }))
}

/// The mount for one thing but the workspace, with its attributes.
///
/// A device node is written to through a read-only mount all the same; its mode and times are not.
fn copy(path: &Path, source: &Source) -> Result<Tree, MountError> {
    let (from, identity, attributes) = match source {
        Source::Private => {
            let options =
                [(c"mode", c"1777"), (c"size", PRIVATE_SIZE), (c"nr_inodes", PRIVATE_INODES)];
            return Tree::tmpfs(&options, NOSUID | NODEV | NOEXEC)
                .map_err(at("make a file system for", path));
        }
        Source::Terminals => return Tree::devpts().map_err(at("make terminals for", path)),
        Source::Terminal { name, identity } => {
            (name.as_path(), *identity, NOSUID | NOEXEC | RDONLY)
        }
        Source::Path { identity, access, .. } if access.device => {
            (path, *identity, NOSUID | NOEXEC | RDONLY)
        }
        Source::Path { identity, access, .. } => {
            (path, *identity, NOSUID | NODEV | if access.write { 0 } else { RDONLY })
        }
        Source::Workspace { .. } => return Err(MountError::Changed(path.to_owned())),
    };
    let tree = Tree::at(from).map_err(at("copy the mount of", from))?;
    if Identity::of(&tree).map_err(at("look at", from))? != identity {
        return Err(MountError::Changed(from.to_owned()));
    }
    tree.restrict(attributes).map_err(at("restrict the mount of", from))?;
    Ok(tree)
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
