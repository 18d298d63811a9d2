//! Laying what is planned in the new root, and protecting what is to stay as it is.

use std::{
    ffi::CStr,
    fs::File,
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use super::{
    Extra, Inside, Plan,
    calls::{NODEV, NOSUID, RDONLY},
    error::{MountError, at},
    protect::{Guard, Hold, leaves_hooks},
    source::Source,
    tree::{NewRoot, Tree},
};

/// Where everything begins.
const TOP: &str = "/";

/// Enough for the names on the way to every grant.
const TOP_SIZE: &CStr = c"4194304";

/// A root that grows.
#[derive(Debug)]
pub(super) struct Building<'p> {
    plan: &'p Plan,
    root: NewRoot,
    /// The workspace.
    carried: Tree,
    extras: Vec<Extra>,
    protected: Vec<PathBuf>,
    /// How well each thing that is to be protected is.
    holds: Vec<Hold>,
}

impl<'p> Building<'p> {
    /// Begins with an empty file system, or everything where everything is granted; on top of the old
    /// root, for pivot_root(2) takes only what is mounted.
    ///
    /// It is not read-only: Landlock denies writing with EACCES, which programs expect of a home
    /// directory and do not give up on, as some do on EROFS.
    pub(super) fn begin(plan: &'p Plan, carried: Tree) -> Result<Self, MountError> {
        let path = Path::new(TOP);
        let whole = plan.sources.get(path);
        let top = match whole {
            Some(source) => source.copy(path, &carried)?,
            None => Tree::tmpfs(&[(c"mode", c"0755"), (c"size", TOP_SIZE)], NOSUID | NODEV)
                .map_err(at("make a file system for", path))?,
        };
        let outside = File::open(path).map_err(at("open", path))?;
        top.attach(&outside).map_err(at("mount", path))?;
        let root = NewRoot::new(top, whole.is_none()).map_err(at("look at", path))?;
        // What is in nothing that is written stays as it is anyway.
        let holds = vec![Hold::Whole; plan.root.protect.len()];
        Ok(Self { plan, root, carried, extras: Vec::new(), protected: Vec::new(), holds })
    }

    /// Puts one thing in its place; those that it lies in have to be there.
    pub(super) fn lay(&mut self, path: &Path, source: &Source) -> Result<(), MountError> {
        let tree = if path == Path::new(TOP) {
            self.root.top().try_clone().map_err(at("open", path))?
        } else {
            let tree = source.copy(path, &self.carried)?;
            let place = self.root.place(path, source.is_directory());
            tree.attach(place.map_err(at("make the place of", path))?)
                .map_err(at("mount", path))?;
            tree
        };
        if source.is_writable() {
            self.guard(path, &tree)?;
        }
        let Some(access) = source.own() else { return Ok(()) };
        if matches!(source, Source::Private) {
            self.root.own(&tree).map_err(at("look at", path))?;
        }
        let directory = tree.as_fd().try_clone_to_owned().map_err(at("open", path))?;
        self.extras.push(Extra { path: path.to_owned(), directory, access });
        Ok(())
    }

    /// Protects what is to be protected in a thing that can be written, and keeps the way to it where
    /// it is in another thing that lies in this one.
    fn guard(&mut self, path: &Path, tree: &Tree) -> Result<(), MountError> {
        let mut guard = Guard::default();
        for (protected, hold) in self.plan.root.protect.iter().zip(&mut self.holds) {
            let place = self.plan.place_of(protected);
            let Ok(inner) = place.strip_prefix(path) else { continue };
            let failed = at("protect", &place);
            if inner.as_os_str().is_empty() {
                tree.restrict(RDONLY).map_err(failed)?;
                self.protected.push(place);
            } else if let Some(deeper) = self.plan.next_on_the_way(path, &place) {
                let way = deeper.parent().and_then(|parent| parent.strip_prefix(path).ok());
                guard.pin(tree, way.unwrap_or(Path::new(""))).map_err(failed)?;
            } else {
                let (held, by) = guard.protect(tree, inner, protected.directory).map_err(failed)?;
                *hold = held;
                self.protected.extend(by.map(|by| path.join(by)));
            }
        }
        Ok(())
    }

    /// The root, the workspace in it, and what there is beside the grants.
    pub(super) fn end(mut self) -> (NewRoot, Tree, Inside) {
        let protect: Vec<_> = self.plan.root.protect.iter().zip(self.holds).collect();
        let leaves_hooks = leaves_hooks(self.plan.writes_workspace(), &protect);
        self.protected.sort_unstable();
        self.protected.dedup();
        let inside = Inside { extras: self.extras, protected: self.protected, leaves_hooks };
        (self.root, self.carried, inside)
    }
}
