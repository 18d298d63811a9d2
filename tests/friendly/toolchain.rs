//! The Rust toolchain that builds the tests, where a user has theirs.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use crate::support::keys::variable;

/// Puts it into the test user's home, if it is not one of the system's: rustup's own directory is `~/.rustup`, and its
/// programs are in `~/.cargo/bin`.
pub fn install() {
    let (cargo, toolchain) = (variable("ST2_TEST_CARGO"), variable("ST2_TEST_TOOLCHAIN"));
    let toolchains = Path::parent(&toolchain).unwrap();
    if !toolchains.ends_with("toolchains") {
        return;
    }
    let home = variable("HOME");
    let programs = programs();
    fs::create_dir_all(&programs).unwrap();
    for name in ["cargo", "rustc"] {
        // The same program under each name, which says whom it stands for.
        fs::copy(&cargo, programs.join(name)).unwrap();
    }
    symlink(toolchains.parent().unwrap(), home.join(".rustup")).unwrap();
}

/// The user's own PATH.
pub fn path() -> String {
    let path = env::var("PATH").unwrap();
    format!("{}:{path}", programs().display())
}

fn programs() -> PathBuf {
    variable("HOME").join(".cargo/bin")
}
