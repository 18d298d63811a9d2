//! What is so around the broker, gathered once: the user, its environment, the kernel.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use nix::unistd::{Uid, User, geteuid};

use crate::launch::report::Gap;

/// What the kernel can enforce, as the launcher's code found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel {
    /// Landlock's ABI; 0 where there is none.
    pub landlock_abi: u32,
    /// Whether seccomp filters can be installed.
    pub seccomp: bool,
    /// Whether a root of a tool's own can be made.
    pub mounts: bool,
}

/// Facts that a request is judged with and that no request can change.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The user.
    pub uid: Uid,
    /// Its name.
    pub user: OsString,
    /// Its home directory: `HOME` where that is absolute, else the account's.
    pub home: PathBuf,
    /// The home directory of the account, whatever `HOME` says.
    pub account_home: PathBuf,
    /// Its login shell.
    pub shell: PathBuf,
    /// `XDG_CONFIG_HOME`, `~/.config` where unset.
    pub config_home: PathBuf,
    /// `XDG_RUNTIME_DIR`.
    pub runtime_dir: Option<PathBuf>,
    /// Where temporary directories are made: `TMPDIR` where that is absolute, else `/tmp`.
    pub temp_dir: PathBuf,
    /// The broker's whole environment.
    pub environment: BTreeMap<OsString, OsString>,
    /// The broker's own program files.
    pub programs: Vec<PathBuf>,
    /// Directories of the broker's own: that of all sessions' `TMPDIR`s, that of a private bus.
    pub state_dirs: Vec<PathBuf>,
    /// What the kernel can enforce.
    pub kernel: Kernel,
    /// What the host cannot promise.
    pub host_gaps: Vec<Gap>,
}

/// A fact that could not be learnt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SurroundingsError {
    /// The user database.
    #[error("cannot look up the account of uid {uid}: {source}")]
    Account {
        /// The user.
        uid: Uid,
        /// The call's error.
        source: io::Error,
    },
    /// No account, and no `HOME` to go by.
    #[error("uid {0} has no account and HOME is not an absolute path")]
    NoHome(Uid),
    /// The broker's own path.
    #[error("cannot find the broker's own executable: {0}")]
    Executable(io::Error),
}

impl Surroundings {
    /// Looks around: environment, account, own executable. The caller adds `state_dirs`, the
    /// launcher's path to `programs`, and `host_gaps`.
    ///
    /// # Errors
    /// [`SurroundingsError`] where the account or the executable cannot be found.
    pub fn gather(kernel: Kernel) -> Result<Self, SurroundingsError> {
        let uid = geteuid();
        let account = User::from_uid(uid)
            .map_err(|errno| SurroundingsError::Account { uid, source: errno.into() })?;
        let executable = env::current_exe().map_err(SurroundingsError::Executable)?;
        Self::of(uid, account, executable, env::vars_os().collect(), kernel)
    }

    fn of(
        uid: Uid,
        account: Option<User>,
        executable: PathBuf,
        environment: BTreeMap<OsString, OsString>,
        kernel: Kernel,
    ) -> Result<Self, SurroundingsError> {
        let home = absolute(&environment, "HOME")
            .or_else(|| account.as_ref().map(|account| account.dir.clone()))
            .ok_or(SurroundingsError::NoHome(uid))?;
        let config_home = absolute(&environment, "XDG_CONFIG_HOME");
        let user = match &account {
            Some(account) => OsString::from(&account.name),
            None => OsString::from(uid.to_string()),
        };
        let shell = account.as_ref().map(|account| account.shell.clone());
        Ok(Self {
            uid,
            user,
            account_home: account.map_or_else(|| home.clone(), |account| account.dir),
            shell: shell.filter(|shell| shell.is_absolute()).unwrap_or_else(|| "/bin/sh".into()),
            config_home: config_home.unwrap_or_else(|| home.join(".config")),
            home,
            runtime_dir: absolute(&environment, "XDG_RUNTIME_DIR"),
            temp_dir: absolute(&environment, "TMPDIR").unwrap_or_else(|| "/tmp".into()),
            environment,
            programs: vec![executable],
            state_dirs: Vec::new(),
            kernel,
            host_gaps: Vec::new(),
        })
    }

    /// The broker's executable.
    #[must_use]
    pub fn executable(&self) -> &Path {
        self.programs.first().map_or(Path::new("/"), PathBuf::as_path)
    }
}

/// A variable that is an absolute path: a relative one is to be ignored (XDG Base Directory
/// Specification).
fn absolute(environment: &BTreeMap<OsString, OsString>, name: &str) -> Option<PathBuf> {
    environment.get(OsStr::new(name)).map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: Kernel = Kernel { landlock_abi: 7, seccomp: true, mounts: true };

    fn of(environment: &[(&str, &str)]) -> Result<Surroundings, SurroundingsError> {
        let environment =
            environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Surroundings::of(
            Uid::from_raw(1234),
            None,
            "/usr/bin/st2-toolsd".into(),
            environment,
            KERNEL,
        )
    }

    #[test]
    fn this_process_has_surroundings() {
        let found = Surroundings::gather(KERNEL).unwrap();
        assert_eq!(found.uid, geteuid());
        assert!(
            found.home.is_absolute() && found.shell.is_absolute() && found.temp_dir.is_absolute()
        );
        assert_eq!(found.executable(), env::current_exe().unwrap());
    }

    #[test]
    fn relative_directories_are_ignored() {
        let found = of(&[
            ("HOME", "/h"),
            ("TMPDIR", "t"),
            ("XDG_CONFIG_HOME", "c"),
            ("XDG_RUNTIME_DIR", ""),
        ])
        .unwrap();
        assert_eq!((found.temp_dir, found.config_home), ("/tmp".into(), "/h/.config".into()));
        assert_eq!(found.runtime_dir, None);
        assert_eq!((found.user, found.shell), ("1234".into(), "/bin/sh".into()));
    }

    #[test]
    fn without_account_and_home_there_is_no_broker() {
        for environment in [&[][..], &[("HOME", "h")]] {
            assert_eq!(
                of(environment).unwrap_err().to_string(),
                "uid 1234 has no account and HOME is not an absolute path"
            );
        }
    }
}
