//! Whether this machine lets a root of one's own be made: by making one.

use std::{
    fs::File,
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
    path::Path,
    process::ExitCode,
};

use super::{MountError, Plan, error::at};
use crate::launch::{
    confine::Descriptors,
    report::Tier,
    spec::{Access, ConfinementSpec, Grant, Target},
};

/// The launcher's one option: makes a root of its own, then ends, with status 0 where that went well.
pub const OPTION: &str = "--probe-mounts";

/// The longest answer, bytes: one line that says why not.
pub const ANSWER_MAX: u64 = 512;

/// Runs the launcher as a probe. Security modules judge by program, so only the launcher itself can
/// tell.
#[must_use]
pub fn run() -> ExitCode {
    match probe() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Whoever asked sees the status in any case.
            let _ = writeln!(io::stdout(), "{error}");
            ExitCode::FAILURE
        }
    }
}

/// Makes a root like a tool's: a directory, a system directory and a device node in it.
fn probe() -> Result<(), MountError> {
    let read = Access { read: true, ..Access::default() };
    let device = Access { write: true, device: true, ..read };
    let grants = [("/proc", read), ("/dev/null", device)].map(|(path, access)| Grant {
        target: Target::Path(path.into()),
        access,
        optional: false,
    });
    let spec = ConfinementSpec::new(Tier::Mounts, grants.into());
    let workspace = open("/usr")?;
    let mut plan = Plan::new(&spec, workspace.as_fd())?;
    for grant in &spec.grants {
        if let Target::Path(path) = &grant.target {
            plan.add(grant, open(path)?.as_fd())?;
        }
    }
    let received = [workspace, open("/usr")?];
    plan.enter(&Descriptors { received: &received, terminal: None }).map(drop)
}

fn open(path: impl AsRef<Path>) -> Result<OwnedFd, MountError> {
    let path = path.as_ref();
    let file = File::options().read(true).custom_flags(libc::O_PATH).open(path);
    file.map(OwnedFd::from).map_err(at("open", path))
}
