//! Programs and policies of the tests' own.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// Puts a program into `~/.local/bin`, where the shipped policy finds it; gives its path there.
pub fn install(program: &Path) -> PathBuf {
    let home = PathBuf::from(env::var_os("HOME").expect("the test runs in the bed"));
    let directory = home.join(".local/bin");
    fs::create_dir_all(&directory).unwrap();
    let installed = directory.join(program.file_name().unwrap());
    if !installed.exists() {
        fs::copy(program, &installed).unwrap();
    }
    installed
}

/// Puts a program that is in the test's own `PATH` into `~/.local/bin`.
pub fn install_from_path(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap();
    let found =
        env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file());
    install(&found.unwrap_or_else(|| panic!("{name} is not installed: run tests/install")))
}

/// A policy directory with these tools, each a name and the text of its file.
pub fn policy_with(tools: &[(&str, &str)]) -> TempDir {
    policy_of(tools, &[])
}

/// The same, with profiles.
pub fn policy_of(tools: &[(&str, &str)], profiles: &[(&str, &str)]) -> TempDir {
    let policy = tempfile::tempdir().unwrap();
    for (directory, files) in [("tools.d", tools), ("profiles.d", profiles)] {
        let directory = policy.path().join(directory);
        fs::create_dir(&directory).unwrap();
        for (name, text) in files {
            fs::write(directory.join(format!("{name}.toml")), text).unwrap();
        }
    }
    policy
}
