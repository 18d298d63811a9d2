//! The host where a systemd user manager runs: each session is a transient scope.

use std::{
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use zbus::{Connection, Fd, Variant, fdo};

use self::{
    attempt::Attempt,
    look::UserManager,
    manager::{Link, Property, UNIT},
    place::Scope,
    slices::{Room, Slices},
};
use super::{Host, HostError, ScopeSpec, cgroup, pidfd::PidFd};
use crate::{
    broker::name::{SessionId, UnitName},
    launch::{report::Gap, spec::Supervise},
};

mod attempt;
pub mod look;
mod manager;
mod own;
pub mod place;
mod slices;
mod sweep;

pub use slices::{SLICE, SLICE_MAX};

/// Sessions as transient scopes of the user's service manager.
#[derive(Debug)]
pub struct Systemd {
    link: Arc<Link>,
    /// The broker's own unit, with which every session ends.
    own: UnitName,
    /// Whether the kernel enforces `MemoryMax=` and `TasksMax=` of the manager's units.
    enforces_limits: bool,
    dialect: AtomicUsize,
    slices: Arc<Slices>,
}

/// What a manager understands beyond the oldest that will do, most first. It refuses a transient unit
/// with a property it does not know, and nothing of that unit stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dialect {
    /// Takes a process by descriptor.
    pidfds: bool,
    /// Has a policy for scopes whose processes are killed for want of memory.
    oom_policy: bool,
}

const DIALECTS: [Dialect; 3] = [
    Dialect { pidfds: true, oom_policy: true },
    Dialect { pidfds: false, oom_policy: true },
    Dialect { pidfds: false, oom_policy: false },
];

impl Systemd {
    /// Finds the user's service manager on its bus, and the broker's own unit; a broker that is not the
    /// main process of a service becomes a transient scope, so that sessions can be bound to it.
    ///
    /// # Errors
    /// [`HostError::Manager`] or [`HostError::Silent`] where no user manager answers, or none that may
    /// move the broker: use the portable host then.
    pub async fn connect(connection: &Connection) -> Result<Self, HostError> {
        let link = Link::new(connection).await?;
        let own = own::find_or_become(&link).await?;
        Ok(Self::with(link, own).await)
    }

    /// As [`Systemd::connect`], for sessions that end with a unit that is known already.
    ///
    /// # Errors
    /// As there.
    pub async fn bound_to(connection: &Connection, own: UnitName) -> Result<Self, HostError> {
        Ok(Self::with(Link::new(connection).await?, own).await)
    }

    async fn with(link: Link, own: UnitName) -> Self {
        // It accepts limits without the controllers for them, too.
        let manager = UserManager::of(&link.proxy).await;
        let enforces_limits = match manager {
            Ok(manager) => manager.missing_controllers().is_empty(),
            Err(error) => {
                tracing::warn!(%error, "cannot learn which controllers the manager has");
                false
            }
        };
        let (link, dialect) = (Arc::new(link), AtomicUsize::new(0));
        Self { link, own, enforces_limits, dialect, slices: Arc::default() }
    }

    /// The unit that every session ends with.
    #[must_use]
    pub fn own_unit(&self) -> &UnitName {
        &self.own
    }

    /// Starts the scope in the richest dialect that the manager understands.
    async fn start(
        &self,
        attempt: &mut Attempt,
        spec: &ScopeSpec,
        room: &Room,
        launcher: &PidFd,
    ) -> Result<(), HostError> {
        let mut level = self.dialect.load(Ordering::Relaxed);
        loop {
            let properties = properties(DIALECTS[level], spec, room, &self.own, launcher)?;
            match attempt.start(properties).await {
                Err(error) if is_unknown_property(&error) && level + 1 < DIALECTS.len() => {
                    level += 1;
                    self.dialect.fetch_max(level, Ordering::Relaxed);
                }
                other => return other,
            }
        }
    }

    /// Refuses a unit that is not active: `BindsTo=` would start it. One that stops between this look
    /// and the start of the scope is started again; the manager has no dependency without that.
    async fn check_bound(&self, spec: &ScopeSpec) -> Result<(), HostError> {
        let Some(unit) = &spec.bind_unit else { return Ok(()) };
        let state = self.link.of_unit(unit, UNIT).await?.text("ActiveState");
        if is_active(&state) {
            return Ok(());
        }
        Err(HostError::BoundUnit { unit: unit.clone(), state })
    }

    /// Looks where the launcher is, and that it still lives: the manager places a process that has
    /// ended and is not waited for, and then never sees its scope become empty.
    fn check_placed(
        &self,
        spec: &ScopeSpec,
        room: Room,
        launcher: &PidFd,
    ) -> Result<Scope, HostError> {
        let failed = |source| HostError::system("look where the launcher is", source);
        let group = cgroup::Cgroup::of(launcher.pid()).map_err(failed)?;
        if launcher.has_ended().map_err(failed)? {
            return Err(HostError::Ended);
        }
        if group.name().file_name() != Some(spec.unit.as_str().as_ref()) {
            let found = group.name().to_owned();
            return Err(HostError::Misplaced { unit: spec.unit.clone(), found });
        }
        Ok(Scope::new(Arc::clone(&self.link), &self.own, spec, room, group))
    }
}

impl Host for Systemd {
    type Place = Scope;

    fn backend(&self) -> &'static str {
        "systemd"
    }

    fn gaps(&self) -> Vec<Gap> {
        if self.enforces_limits { Vec::new() } else { vec![Gap::NoResourceLimits] }
    }

    fn supervise(&self, _: &SessionId) -> Result<Option<Supervise>, HostError> {
        Ok(None)
    }

    fn abandon(&self, _: &SessionId) {}

    async fn place(&self, spec: &ScopeSpec, launcher: &PidFd) -> Result<Scope, HostError> {
        let failed = |source| HostError::system("look at the launcher", source);
        let mut attempt = Attempt::new(&self.link, &spec.unit, launcher).map_err(failed)?;
        let placed = async {
            if launcher.has_ended().map_err(failed)? {
                return Err(HostError::Ended);
            }
            self.check_bound(spec).await?;
            let room = self.slices.take();
            self.start(&mut attempt, spec, &room, launcher).await?;
            self.check_placed(spec, room, launcher)
        };
        let placed = placed.await;
        match &placed {
            Ok(_) => attempt.keep(),
            Err(_) => attempt.undo().await,
        }
        placed
    }

    async fn sweep(&self) -> Result<usize, HostError> {
        sweep::sweep(&self.link).await
    }
}

/// Everything that is asked of a scope, nothing left to defaults made for services: 90 s to stop, no
/// SIGHUP. Pinned (`AddRef`), so that it can be asked how it ended.
fn properties(
    dialect: Dialect,
    spec: &ScopeSpec,
    room: &Room,
    own: &UnitName,
    launcher: &PidFd,
) -> Result<Vec<Property<'static>>, HostError> {
    let bound = bound(spec, own);
    let mut properties = vec![
        ("Description", spec.description.clone().into()),
        ("Slice", room.slice().into()),
        ("CollectMode", "inactive-or-failed".into()),
        ("SendSIGHUP", true.into()),
        ("KillMode", "control-group".into()),
        ("TimeoutStopUSec", micros(spec.stop_timeout).into()),
        ("BindsTo", bound.clone().into()),
        ("After", bound.into()),
        ("AddRef", true.into()),
    ];
    if dialect.pidfds {
        let fd = launcher.as_fd().try_clone_to_owned();
        let fd = fd.map_err(|e| HostError::system("pass the launcher's descriptor", e))?;
        properties.push(("PIDFDs", vec![Fd::from(fd)].into()));
    } else {
        properties.push(("PIDs", vec![launcher.pid().cast_unsigned()].into()));
    }
    if dialect.oom_policy {
        properties.push(("OOMPolicy", "continue".into()));
    }
    let optional: [(&str, Option<u64>); 3] = [
        ("RuntimeMaxUSec", spec.runtime_max.map(micros)),
        ("MemoryMax", spec.memory_max),
        ("TasksMax", spec.tasks_max),
    ];
    let given = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
    properties.extend(given.map(|(name, value)| (name, Variant::from(value))));
    Ok(properties)
}

/// The units that the session ends with.
fn bound(spec: &ScopeSpec, own: &UnitName) -> Vec<String> {
    let units = [Some(own), spec.bind_unit.as_ref()];
    units.into_iter().flatten().map(|unit| unit.as_str().to_owned()).collect()
}

/// A time as the manager counts it; what is longer than it can count is for ever.
fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Whether a unit in this state is up.
fn is_active(state: &str) -> bool {
    state == "active" || state == "reloading"
}

fn is_unknown_property(error: &HostError) -> bool {
    let HostError::Manager { source: zbus::Error::FDO(error), .. } = error else { return false };
    matches!(**error, fdo::Error::PropertyReadOnly(_))
}
