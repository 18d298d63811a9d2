//! Where policy is looked for.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// Replaces the search path: absolute directories, separated by colons.
pub const POLICY_PATH_VARIABLE: &str = "ST2_TOOLS_POLICY_PATH";

/// Directories with `tools.d`, `profiles.d` and `broker.toml`; what a later one declares overrides
/// an earlier one's, by file name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPath(Vec<PathBuf>);

/// A search path that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{POLICY_PATH_VARIABLE} holds {0:?}, which is not an absolute path")]
pub struct SearchPathError(PathBuf);

impl SearchPath {
    /// These directories, the last one strongest.
    #[must_use]
    pub fn new(directories: Vec<PathBuf>) -> Self {
        Self(directories)
    }

    /// The search path of a broker with this environment, executable and home directory.
    ///
    /// That is `ST2_TOOLS_POLICY_PATH` where set; else the vendor's directory (of an executable that
    /// cargo built in a checkout: the checkout's `policy/`; of an installed one: `share/st2-tools`
    /// of the same prefix), `/etc/st2-tools`, and `st2-tools` in `XDG_CONFIG_HOME`.
    ///
    /// # Errors
    /// [`SearchPathError`] where the variable holds a relative path: what it means would depend on
    /// where the broker was started.
    pub fn find(
        environment: &BTreeMap<OsString, OsString>,
        executable: &Path,
        config_home: &Path,
    ) -> Result<Self, SearchPathError> {
        if let Some(replaced) = environment.get(OsStr::new(POLICY_PATH_VARIABLE)) {
            return Self::split(replaced);
        }
        let vendor = checkout(executable)
            .or_else(|| installed(executable))
            .unwrap_or_else(|| PathBuf::from("/usr/share/st2-tools"));
        Ok(Self(vec![vendor, PathBuf::from("/etc/st2-tools"), config_home.join("st2-tools")]))
    }

    /// The directories, the last one strongest.
    #[must_use]
    pub fn directories(&self) -> &[PathBuf] {
        &self.0
    }

    fn split(written: &OsStr) -> Result<Self, SearchPathError> {
        written
            .as_bytes()
            .split(|byte| *byte == b':')
            .filter(|part| !part.is_empty())
            .map(|part| PathBuf::from(OsStr::from_bytes(part)))
            .map(|part| if part.is_absolute() { Ok(part) } else { Err(SearchPathError(part)) })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// `ROOT/policy` of an executable at `ROOT/target/debug/X` (or `release`, or `deps` beneath them,
/// where cargo puts tests).
fn checkout(executable: &Path) -> Option<PathBuf> {
    let mut directory = executable.parent()?;
    if directory.ends_with("deps") {
        directory = directory.parent()?;
    }
    let built = directory.ends_with("target/debug") || directory.ends_with("target/release");
    let policy = directory.ancestors().nth(2)?.join("policy");
    (built && policy.join("tools.d").is_dir()).then_some(policy)
}

/// `PREFIX/share/st2-tools` of an executable in `PREFIX/libexec/st2-tools`.
fn installed(executable: &Path) -> Option<PathBuf> {
    let directory = executable.parent().filter(|parent| parent.ends_with("libexec/st2-tools"))?;
    Some(directory.ancestors().nth(2)?.join("share/st2-tools"))
}

/// The strongest file of this name in the search path itself; none where the strongest is masked or
/// nobody has it.
///
/// A file that is there but cannot be looked at counts as there: reading it tells why.
#[must_use]
pub fn strongest(search: &SearchPath, name: &str) -> Option<PathBuf> {
    let there =
        |path: &PathBuf| !matches!(path.symlink_metadata(), Err(error) if is_absent(&error));
    let strongest = search.0.iter().rev().map(|directory| directory.join(name)).find(there)?;
    (!is_masked(&strongest)).then_some(strongest)
}

/// Whether a file is a symlink to `/dev/null`, which masks what weaker directories declare (as
/// systemctl(1), `mask`).
#[must_use]
pub fn is_masked(file: &Path) -> bool {
    std::fs::read_link(file).is_ok_and(|target| target == Path::new("/dev/null"))
}

/// Whether an error says that nothing is there.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn find(
        environment: &[(&str, &str)],
        executable: &Path,
    ) -> Result<Vec<PathBuf>, SearchPathError> {
        let environment =
            environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        SearchPath::find(&environment, executable, Path::new("/home/ann/.config"))
            .map(|search| search.0)
    }

    #[test]
    fn an_installed_broker_looks_in_three_places() {
        let expected = ["/usr/share/st2-tools", "/etc/st2-tools", "/home/ann/.config/st2-tools"];
        assert_eq!(
            find(&[], Path::new("/usr/bin/st2-toolsd")).unwrap(),
            expected.map(PathBuf::from)
        );
    }

    #[test]
    fn the_variable_replaces_them_all_and_must_be_absolute() {
        let executable = Path::new("/usr/bin/st2-toolsd");
        let find = |value| find(&[(POLICY_PATH_VARIABLE, value)], executable);
        assert_eq!(find("/a:/b:").unwrap(), ["/a", "/b"].map(PathBuf::from));
        assert_eq!(find("").unwrap(), Vec::<PathBuf>::new());
        assert_eq!(
            find("/a:b").unwrap_err().to_string(),
            "ST2_TOOLS_POLICY_PATH holds \"b\", which is not an absolute path"
        );
    }

    #[test]
    fn a_checkout_stands_in_for_the_vendor() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let first = |executable: &str| find(&[], &root.join(executable)).unwrap().remove(0);
        assert_eq!(first("target/debug/x"), Path::new("/usr/share/st2-tools"), "no policy there");
        fs::create_dir_all(root.join("policy/tools.d")).unwrap();
        for executable in ["target/debug/x", "target/release/x", "target/debug/deps/x"] {
            assert_eq!(first(executable), root.join("policy"), "{executable}");
        }
        for executable in ["bin/x", "target/x", "debug/x", "target/debug/more/x"] {
            assert_eq!(first(executable), Path::new("/usr/share/st2-tools"), "{executable}");
        }
    }

    #[test]
    fn an_installed_executable_finds_the_policy_of_its_own_prefix() {
        let vendor = |executable: &str| {
            let home = Path::new("/config");
            let search = SearchPath::find(&BTreeMap::new(), Path::new(executable), home).unwrap();
            search.directories()[0].clone()
        };
        let usr = Path::new("/usr/share/st2-tools");
        let local = Path::new("/home/u/.local/share/st2-tools");
        assert_eq!(vendor("/usr/libexec/st2-tools/st2-toolsd"), usr);
        assert_eq!(vendor("/home/u/.local/libexec/st2-tools/st2-tools"), local);
        assert_eq!(vendor("/opt/elsewhere/st2-toolsd"), usr);
    }
}
