//! Where the sockets are that a profile may grant by name.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use crate::policy::surroundings::Surroundings;

/// `SSH_AUTH_SOCK` (ssh-agent(1)).
pub(super) fn ssh_agent(surroundings: &Surroundings) -> Result<PathBuf, String> {
    let path = variable(surroundings, "SSH_AUTH_SOCK").ok_or("SSH_AUTH_SOCK is not set")?;
    there(path)
}

/// The restricted socket of gpg-agent(1), which gives no key away: in the run-time directory where
/// GnuPG has made its own there, else in its home.
pub(super) fn gpg_agent(surroundings: &Surroundings) -> Result<PathBuf, String> {
    const NAME: &str = "S.gpg-agent.extra";
    let home = variable(surroundings, "GNUPGHOME");
    let runtime = surroundings.runtime_dir.as_ref().map(|runtime| runtime.join("gnupg"));
    let directory = match (home, runtime) {
        (Some(home), _) => home,
        (None, Some(runtime)) if runtime.is_dir() => runtime,
        (None, _) => surroundings.home.join(".gnupg"),
    };
    there(directory.join(NAME))
}

/// `WAYLAND_DISPLAY`, in the run-time directory where it is a name.
pub(super) fn wayland(surroundings: &Surroundings) -> Result<PathBuf, String> {
    let display = variable(surroundings, "WAYLAND_DISPLAY").ok_or("WAYLAND_DISPLAY is not set")?;
    let runtime = surroundings.runtime_dir.as_deref().unwrap_or(Path::new("/"));
    there(runtime.join(display))
}

fn variable(surroundings: &Surroundings, name: &str) -> Option<PathBuf> {
    let value = surroundings.environment.get(OsStr::new(name))?;
    (!value.is_empty()).then(|| PathBuf::from(value))
}

fn there(path: PathBuf) -> Result<PathBuf, String> {
    match fs::metadata(&path) {
        Ok(metadata) if metadata.file_type().is_socket() => Ok(path),
        Ok(_) => Err(format!("{} is no socket", path.display())),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::policy::surroundings::Kernel;

    #[test]
    fn each_socket_is_found_where_its_programs_look_for_it() {
        let place = tempfile::tempdir().unwrap();
        let kernel = Kernel { landlock_abi: 7, seccomp: true, mounts: true };
        let mut found = Surroundings::gather(kernel).unwrap();
        found.runtime_dir = Some(place.path().to_owned());
        found.home = place.path().join("home");
        found.environment.clear();
        assert_eq!(ssh_agent(&found).unwrap_err(), "SSH_AUTH_SOCK is not set");
        assert_eq!(wayland(&found).unwrap_err(), "WAYLAND_DISPLAY is not set");
        let missing = gpg_agent(&found).unwrap_err();
        assert!(missing.contains("home/.gnupg/S.gpg-agent.extra: No such file"), "{missing}");

        fs::create_dir(place.path().join("gnupg")).unwrap();
        let at = |name: &str| place.path().join(name);
        let _listeners = ["agent", "gnupg/S.gpg-agent.extra", "wayland-0"]
            .map(|name| UnixListener::bind(at(name)).unwrap());
        found.environment.insert("SSH_AUTH_SOCK".into(), at("agent").into());
        found.environment.insert("WAYLAND_DISPLAY".into(), "wayland-0".into());
        assert_eq!(ssh_agent(&found), Ok(at("agent")));
        assert_eq!(gpg_agent(&found), Ok(at("gnupg/S.gpg-agent.extra")));
        assert_eq!(wayland(&found), Ok(at("wayland-0")));
        found.environment.insert("SSH_AUTH_SOCK".into(), place.path().into());
        assert!(ssh_agent(&found).unwrap_err().ends_with("is no socket"));
    }
}
