//! A real tool on a real pty for tests of the terminal: `sh -c SCRIPT` as a session leader.

use std::{
    fs::{File, OpenOptions},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
    process::{Child, Command},
    time::Duration,
};

use nix::{
    fcntl::OFlag,
    pty::{grantpt, posix_openpt, ptsname_r, unlockpt},
    sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr},
    unistd::Pid,
};
use st2_tools::terminal::{Bounds, RingPool, Terminal};

/// How long anything that must happen may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A running tool and its terminal. Both are gone when it is dropped.
pub struct Tool {
    pub terminal: Terminal,
    child: Child,
}

/// Both ends of a new pty in raw mode, closed on exec.
pub fn raw_pty() -> (OwnedFd, OwnedFd) {
    let controller = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let user: File = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlag::O_NOCTTY.bits())
        .open(ptsname_r(&controller).unwrap())
        .unwrap();
    let mut modes = tcgetattr(&user).unwrap();
    cfmakeraw(&mut modes);
    tcsetattr(&user, SetArg::TCSANOW, &modes).unwrap();
    (controller.as_fd().try_clone_to_owned().unwrap(), user.into())
}

/// Starts `sh -c script` with `user` as its controlling terminal.
pub fn spawn(script: &str, user: &OwnedFd) -> Child {
    Command::new("setsid")
        .args(["--ctty", "sh", "-c", script])
        .stdin(user.try_clone().unwrap())
        .stdout(user.try_clone().unwrap())
        .stderr(user.try_clone().unwrap())
        .spawn()
        .unwrap()
}

/// Waits for something that must happen.
pub async fn soon<T>(happening: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, happening).await.expect("it did not happen in time")
}

/// Runs blocking work of a client beside the runtime.
pub async fn client<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    soon(tokio::task::spawn_blocking(work)).await.unwrap()
}

impl Tool {
    /// Starts `sh -c script` with a ring of `ring_bytes`.
    pub fn start(script: &str, ring_bytes: usize) -> Self {
        Self::start_in(script, ring_bytes, &RingPool::default())
    }

    pub fn start_in(script: &str, ring_bytes: usize, pool: &RingPool) -> Self {
        Self::start_with(script, Bounds { ring_bytes, ..Bounds::default() }, pool)
    }

    pub fn start_with(script: &str, bounds: Bounds, pool: &RingPool) -> Self {
        let (controller, user) = raw_pty();
        let child = spawn(script, &user);
        let terminal = Terminal::start(controller, user, bounds, pool).unwrap();
        Self { terminal, child }
    }

    /// Kills the leader.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Waits for the leader's end.
    pub async fn exited(&mut self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        client(move || {
            use nix::sys::wait::{Id, WaitPidFlag, waitid};
            waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
        })
        .await;
    }

    /// Waits for the leader's end and reads the rest.
    pub async fn finished(&mut self) {
        self.exited().await;
        soon(self.terminal.drain(PATIENCE, 7)).await;
    }

    /// Waits until so many bytes have been written, and gives them.
    pub async fn first(&self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < count {
            let max = count - bytes.len();
            let chunk = self.terminal.read_wait(bytes.len() as u64, max, PATIENCE).await.unwrap();
            assert!(!chunk.bytes.is_empty(), "only {:?}", String::from_utf8_lossy(&bytes));
            bytes.extend(chunk.bytes);
        }
        bytes
    }

    /// Waits until so many streams are attached.
    pub async fn attached(&self, count: u32) {
        soon(self.terminal.attached().wait_for(|now| *now == count)).await.unwrap();
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
