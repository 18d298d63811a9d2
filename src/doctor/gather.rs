//! Looks at the machine, the bus and the policy.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use crate::{
    config::{LANDLOCK_ABI_VARIABLE, MAX_TIER_VARIABLE, Overrides, Settings},
    doctor::facts::{Facts, GPG_AGENT, GROUP_FILES, Groups, Policy, Socket, Sysctls},
    host::{cgroup::Cgroup, probe, spawn},
    launch::{self, report::Tier},
    policy::{
        catalogue::{Catalogue, Entry},
        search_path::{POLICY_PATH_VARIABLE, SearchPath},
        socket,
        sockets::{self, SocketError},
        surroundings::{Kernel, Surroundings, SurroundingsError},
    },
};

mod bus;

/// Where the kernel lists the security modules in force (securityfs).
const MODULES: &str = "/sys/kernel/security/lsm";

/// Looks at everything; takes as long as the launcher's probe, a few milliseconds.
///
/// # Errors
/// [`SurroundingsError`]: nothing can be said without knowing whose sessions they are.
pub async fn gather() -> Result<Facts, SurroundingsError> {
    let launcher = spawn::locate().map_err(|failure| failure.message);
    let no_mounts = match &launcher {
        Ok(launcher) => probe::mounts(launcher).err().map(|error| error.to_string()),
        Err(_) => None,
    };
    let surroundings = Surroundings::gather(Kernel {
        landlock_abi: launch::landlock_abi(),
        seccomp: launch::has_seccomp(),
        mounts: launcher.is_ok() && no_mounts.is_none(),
    })?;
    let Surroundings { environment, config_home, .. } = &surroundings;
    let search = SearchPath::find(environment, surroundings.executable(), config_home)
        .map_err(|error| error.to_string());
    Ok(Facts {
        sockets: sockets(&surroundings, search.as_ref().ok()),
        policy: search.and_then(|search| policy(search, &surroundings)),
        release: release(),
        modules: modules(Path::new(MODULES)),
        launcher,
        no_mounts,
        sysctls: sysctls(),
        groups: groups().map_err(|error| error.to_string()),
        bus: bus::look().await,
        variables: variables(),
        surroundings,
    })
}

fn release() -> String {
    let name = nix::sys::utsname::uname();
    name.map_or_else(|_| String::new(), |name| name.release().to_string_lossy().into_owned())
}

fn modules(file: &Path) -> Option<Vec<String>> {
    let text = fs::read_to_string(file).ok()?;
    Some(text.trim().split(',').map(str::to_owned).collect())
}

fn sysctls() -> Sysctls {
    let number = |name: &str| {
        let text = fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?;
        text.trim().parse().ok()
    };
    Sysctls {
        max_user_namespaces: number("user/max_user_namespaces"),
        unprivileged_userns_clone: number("kernel/unprivileged_userns_clone"),
        apparmor_restrict: number("kernel/apparmor_restrict_unprivileged_userns"),
    }
}

/// The root of the hierarchy has no such files; any group below it shows what the kernel has.
fn groups() -> std::io::Result<Groups> {
    let own = Cgroup::of(nix::unistd::getpid().as_raw())?;
    let below = || {
        let entries = fs::read_dir(own.path()).ok()?;
        entries.flatten().map(|entry| entry.path()).find(|path| path.is_dir())
    };
    let is_root = !own.path().join("cgroup.events").exists();
    let shows = if is_root { below() } else { Some(own.path().to_owned()) };
    let lacks = |group: PathBuf| {
        GROUP_FILES.into_iter().filter(|file| !group.join(file).exists()).collect()
    };
    Ok(Groups { own: own.path().to_owned(), lacks: shows.map(lacks) })
}

fn policy(search: SearchPath, surroundings: &Surroundings) -> Result<Policy, String> {
    let overrides = Overrides::from_environment(&surroundings.environment);
    let overrides = overrides.map_err(|error| error.to_string())?;
    let settings = Settings::load(&search, overrides);
    let there = search.directories().iter().filter(|directory| directory.is_dir());
    let directories = there.cloned().collect();
    let catalogue = Catalogue::load(search);
    let faults = catalogue.faults().map(ToString::to_string).collect();
    let ready = catalogue.entries().filter(|(_, entry)| matches!(entry, Entry::Ready(_)));
    let tools = ready.count();
    let masked = catalogue.masked().iter().map(|link| link.display().to_string()).collect();
    Ok(Policy { settings, directories, tools, faults, masked })
}

fn variables() -> Vec<(&'static str, String)> {
    let known =
        [MAX_TIER_VARIABLE, LANDLOCK_ABI_VARIABLE, spawn::LAUNCHER_VARIABLE, POLICY_PATH_VARIABLE];
    let set = known.into_iter().filter_map(|name| env::var_os(name).map(|value| (name, value)));
    set.map(|(name, value)| (name, value.to_string_lossy().into_owned())).collect()
}

/// Looked for as a session of the best tier would have them: which tier grants which is judged later.
fn sockets(surroundings: &Surroundings, search: Option<&SearchPath>) -> Vec<Socket> {
    let none = SearchPath::new(Vec::new());
    let search = search.unwrap_or(&none);
    let named = [
        ("ssh-agent", socket::Socket::SshAgent),
        (GPG_AGENT, socket::Socket::GpgAgent),
        ("wayland", socket::Socket::Wayland),
    ];
    let place = |socket: &socket::Socket| {
        sockets::look(socket, Tier::Mounts, surroundings, search).map_err(|error| match error {
            SocketError::Unset { rule, .. } => rule.to_owned(),
            SocketError::Missing { path, cause, .. } => format!("{}: {cause}", path.display()),
            other => other.to_string(),
        })
    };
    named.into_iter().map(|(name, socket)| Socket { name, place: place(&socket) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn security_modules_are_read_where_the_kernel_shows_them() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, "lockdown,capability,landlock\n").unwrap();
        let found = modules(file.path()).unwrap();
        assert_eq!(found, ["lockdown", "capability", "landlock"]);
        assert_eq!(modules(Path::new("/no/such/file")), None);
    }

    #[test]
    fn this_machine_has_control_groups_and_a_kernel() {
        let groups = groups().unwrap();
        assert!(groups.own.is_dir(), "{groups:?}");
        assert!(groups.lacks.is_none_or(|lacks| lacks.is_empty()));
        assert!(release().starts_with(|c: char| c.is_ascii_digit()), "{}", release());
        assert!(sysctls().max_user_namespaces.is_some());
    }
}
