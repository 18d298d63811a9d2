//! What this machine gives a launcher, asked of the launcher itself: security modules judge by
//! program.

use std::{
    io::{self, Read},
    os::fd::AsFd,
    path::Path,
    process::{ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::launch::mounts::probe::{ANSWER_MAX, OPTION};

/// How long the launcher may take to answer: a few milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a tool cannot have a root of its own here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoMounts {
    /// The launcher did not run.
    #[error("cannot run the launcher: {source}")]
    Run {
        /// The call's error.
        source: io::Error,
    },
    /// It did not answer.
    #[error("the launcher did not answer within {PATIENCE:?}")]
    Silent,
    /// It says why not.
    #[error("{0}")]
    Refused(String),
}

/// Asks the launcher whether a root of a tool's own can be made. Blocks for at most 5 s.
///
/// # Errors
/// [`NoMounts`].
pub fn mounts(launcher: &Path) -> Result<(), NoMounts> {
    let run = |source| NoMounts::Run { source };
    let mut child = Command::new(launcher)
        .arg(OPTION)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(run)?;
    let answer = child.stdout.take().map_or(Ok(String::new()), read);
    if answer.is_err() {
        // It is about to be waited for; where it has ended already there is nobody to kill.
        let _ = child.kill();
    }
    let succeeded = child.wait().map_err(run)?.success();
    match answer? {
        _ if succeeded => Ok(()),
        answer => Err(NoMounts::Refused(answer)),
    }
}

/// Reads one bounded line, without control characters.
fn read(mut stdout: ChildStdout) -> Result<String, NoMounts> {
    let run = |source| NoMounts::Run { source };
    let deadline = Instant::now() + PATIENCE;
    let (mut answer, mut chunk) = (Vec::new(), [0; 512]);
    while u64::try_from(answer.len()).unwrap_or(u64::MAX) < ANSWER_MAX {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, timeout).map_err(|errno| run(errno.into()))? == 0 {
            return Err(NoMounts::Silent);
        }
        match stdout.read(&mut chunk).map_err(run)? {
            0 => break,
            count => answer.extend_from_slice(&chunk[..count]),
        }
    }
    let text = String::from_utf8_lossy(&answer);
    Ok(text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_answer_as_a_launcher_does_gives_no_mounts() {
        let refused = mounts(Path::new("/bin/false")).unwrap_err();
        assert!(matches!(&refused, NoMounts::Refused(answer) if answer.is_empty()), "{refused}");
        let missing = mounts(Path::new("/no/such/launcher")).unwrap_err();
        assert!(matches!(missing, NoMounts::Run { .. }), "{missing}");
    }
}
