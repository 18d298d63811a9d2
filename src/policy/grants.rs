//! What a profile and a tool grant, for one session: variables replaced, symlinks followed, places
//! off limits refused.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io::ErrorKind,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    config::Settings,
    launch::spec::{Access, Grant, Slot, Target},
    policy::{
        off_limits::OffLimits,
        profile::Grants,
        refusal::NotPermitted,
        repository::Linked,
        settled::settled,
        surroundings::Surroundings,
        template::{PathTemplate, Values, Variable},
        tool::Tool,
    },
};

const READ: Access = Access { read: true, write: false, execute: false, device: false };
const WRITE: Access = Access { read: true, write: true, execute: false, device: false };
const EXECUTE: Access = Access { read: true, write: false, execute: true, device: false };
const DEVICE: Access = Access { read: true, write: true, execute: false, device: true };

/// The values of the variables for one session.
#[derive(Debug, Clone)]
pub struct SessionValues {
    home: OsString,
    user: OsString,
    config_home: OsString,
    workspace: OsString,
    tmpdir: OsString,
}

impl SessionValues {
    /// The values as the tool sees them.
    #[must_use]
    pub fn new(surroundings: &Surroundings, workspace: &Path, tmpdir: &Path) -> Self {
        Self {
            home: surroundings.home.clone().into(),
            user: surroundings.user.clone(),
            config_home: surroundings.config_home.clone().into(),
            workspace: workspace.into(),
            tmpdir: tmpdir.into(),
        }
    }

    /// The values with the symlinks on the way to the home directory followed, so that a granted
    /// path that then still changes when it is followed does so through a symlink in the home
    /// directory.
    fn settled(&self) -> Self {
        let follow = |path: &OsStr| settled(Path::new(path)).into();
        Self { home: follow(&self.home), config_home: follow(&self.config_home), ..self.clone() }
    }
}

impl Values for SessionValues {
    fn value(&self, variable: Variable) -> &OsStr {
        match variable {
            Variable::Home => &self.home,
            Variable::User => &self.user,
            Variable::ConfigHome => &self.config_home,
            Variable::Workspace => &self.workspace,
            Variable::TmpDir => &self.tmpdir,
        }
    }
}

/// Where a session's tools are found: the directories of the settings, then the tool's own, as
/// written.
pub(super) fn path_directories(
    tool: &Tool,
    settings: &Settings,
    values: &SessionValues,
) -> Vec<PathBuf> {
    settings
        .path
        .iter()
        .chain(&tool.declaration.path)
        .map(|path| path.template().expand(values))
        .collect()
}

/// `PATH`: those of the directories that exist, but none with a colon in its name, which `PATH`
/// cannot express.
#[must_use]
pub fn path_variable(directories: &[PathBuf]) -> OsString {
    let existing = directories.iter().filter(|directory| {
        directory.is_dir() && !directory.as_os_str().as_bytes().contains(&b':')
    });
    let parts: Vec<&OsStr> = existing.map(|directory| directory.as_os_str()).collect();
    parts.join(OsStr::new(":"))
}

/// Everything granted to one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The narrowest list that says it: no path beneath another of the same access.
    pub paths: Vec<Grant>,
    /// The home directory, its symlinks followed.
    pub home: PathBuf,
    /// Other names of what is granted, and of the home directory: symlinks, and what they name.
    pub links: BTreeMap<PathBuf, PathBuf>,
}

/// Gathers what is granted to one session.
///
/// # Errors
/// [`NotPermitted::GrantMissing`] for a path that is not optional and not there;
/// [`NotPermitted::GrantOffLimits`] for one that may not be granted for writing, or that a symlink
/// leads to.
pub(super) fn resolve(
    tool: &Tool,
    settings: &Settings,
    values: &SessionValues,
    off_limits: &OffLimits,
    linked: Option<&Linked>,
) -> Result<Granted, NotPermitted> {
    let mut ground = Ground {
        values: values.settled(),
        off_limits,
        workspace: None,
        tmpdir: None,
        paths: BTreeMap::new(),
        links: BTreeMap::new(),
    };
    for grants in tool.profile.grants().chain([&tool.declaration.grants]) {
        ground.add_all(grants)?;
    }
    ground.add_linked(linked);
    for path in settings.path.iter().chain(&tool.declaration.path) {
        ground.add(path.template(), EXECUTE)?;
    }
    for (named, settled) in
        [(&values.home, &ground.values.home), (&values.config_home, &ground.values.config_home)]
    {
        if named != settled {
            ground.links.insert(named.into(), settled.into());
        }
    }
    Ok(ground.into_granted())
}

/// Access gathered by place.
struct Ground<'o> {
    values: SessionValues,
    off_limits: &'o OffLimits,
    workspace: Option<Access>,
    tmpdir: Option<Access>,
    paths: BTreeMap<PathBuf, Access>,
    links: BTreeMap<PathBuf, PathBuf>,
}

impl Ground<'_> {
    fn add_all(&mut self, grants: &Grants) -> Result<(), NotPermitted> {
        let lists = [
            (&grants.read, READ),
            (&grants.write, WRITE),
            (&grants.execute, EXECUTE),
            (&grants.devices, DEVICE),
        ];
        for (paths, access) in lists {
            for path in paths {
                self.add(path, access)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &PathTemplate, access: Access) -> Result<(), NotPermitted> {
        match path.base() {
            Some(Variable::Workspace) => widen(self.workspace.get_or_insert_default(), access),
            Some(Variable::TmpDir) => widen(self.tmpdir.get_or_insert_default(), access),
            _ => self.add_path(path, access)?,
        }
        Ok(())
    }

    fn add_path(&mut self, path: &PathTemplate, access: Access) -> Result<(), NotPermitted> {
        let written = path.expand(&self.values);
        let canonical = match written.canonicalize() {
            Ok(canonical) => canonical,
            Err(error) if path.optional() && may_be_absent(error.kind()) => return Ok(()),
            Err(error) => {
                return Err(NotPermitted::GrantMissing { path: written, cause: (&error).into() });
            }
        };
        let detour =
            || (canonical != written).then(|| self.off_limits.detour(&canonical)).flatten();
        let never = access.write && !access.device;
        let refused = if never { self.off_limits.write(&canonical) } else { None };
        if let Some(why) = refused.or_else(detour) {
            return Err(NotPermitted::GrantOffLimits { path: written, canonical, why });
        }
        // Whatever lies in the workspace the tool could replace; it has it by the workspace's own
        // grant, or not.
        if !canonical.starts_with(&self.values.workspace) {
            if canonical != written {
                self.links.insert(written, canonical.clone());
            }
            widen(self.paths.entry(canonical).or_default(), access);
        }
        Ok(())
    }

    /// What a worktree shares with its repository is granted as the worktree is.
    fn add_linked(&mut self, linked: Option<&Linked>) {
        if let (Some(linked), Some(access)) = (linked, self.workspace) {
            widen(self.paths.entry(linked.common.clone()).or_default(), access);
        }
    }

    fn into_granted(self) -> Granted {
        let Self {
            values: SessionValues { workspace: workspace_path, tmpdir: tmpdir_path, home, .. },
            ..
        } = self;
        let slot = |slot, path: OsString, access: Option<Access>| {
            access.map(|access| grant(Target::Descriptor(slot, path.into()), access))
        };
        let narrowest =
            self.paths.iter().filter(|(path, access)| !is_implied(&self.paths, path, **access));
        let paths = std::iter::empty()
            .chain(slot(Slot::Workspace, workspace_path, self.workspace))
            .chain(slot(Slot::TmpDir, tmpdir_path, self.tmpdir))
            .chain([grant(Target::OwnTerminal, DEVICE)])
            .chain(narrowest.map(|(path, access)| grant(Target::Path(path.clone()), *access)))
            .collect();
        Granted { paths, home: home.into(), links: self.links }
    }
}

/// Nothing is optional any more: what is not there was left out.
fn grant(target: Target, access: Access) -> Grant {
    Grant { target, access, optional: false }
}

/// An optional path that this user may not even look for is as good as absent: it could not be
/// granted either.
fn may_be_absent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
}

fn is_implied(paths: &BTreeMap<PathBuf, Access>, path: &Path, access: Access) -> bool {
    let above = path.ancestors().skip(1).filter_map(|ancestor| paths.get(ancestor));
    above.into_iter().any(|wider| covers(*wider, access))
}

fn covers(wider: Access, access: Access) -> bool {
    (wider.read || !access.read)
        && (wider.write || !access.write)
        && (wider.execute || !access.execute)
        && (wider.device || !access.device)
}

fn widen(access: &mut Access, by: Access) {
    access.read |= by.read;
    access.write |= by.write;
    access.execute |= by.execute;
    access.device |= by.device;
}

#[cfg(test)]
mod tests;
