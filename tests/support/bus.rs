//! A user bus: of the test's own, or that of the bed.

use std::{
    env,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{Arc, OnceLock},
};

use tempfile::TempDir;
use tokio::sync::{Mutex, OwnedMutexGuard};
use zbus::{Connection, connection::Builder};

/// A user bus.
#[derive(Debug)]
pub enum Bus {
    /// A `dbus-daemon` of the test's own, without a service manager.
    Private { address: String, daemon: Child, _directory: TempDir },
    /// The bus that the test runs on, shared with a real user manager; one test has it at a time.
    Shared { address: String, _turn: OwnedMutexGuard<()> },
}

impl Bus {
    /// Starts a bus of its own.
    pub fn private() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let address = format!("unix:path={}", directory.path().join("bus").display());
        Self::start(address, directory)
    }

    /// Starts a bus of its own, on an abstract name.
    pub fn hidden(name: &str) -> Self {
        Self::start(format!("unix:abstract={name}"), tempfile::tempdir().unwrap())
    }

    fn start(address: String, directory: TempDir) -> Self {
        let mut daemon = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--nopidfile", "--print-address"])
            .arg(format!("--address={address}"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("dbus-daemon is installed");
        let mut line = String::new();
        BufReader::new(daemon.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self::Private { address: line.trim().to_owned(), daemon, _directory: directory }
    }

    /// Waits for its turn on the bus of the bed.
    pub async fn shared() -> Self {
        static TURN: OnceLock<Arc<Mutex<()>>> = OnceLock::new();
        let turn = TURN.get_or_init(Arc::default).clone().lock_owned().await;
        let address = env::var("DBUS_SESSION_BUS_ADDRESS").expect("the test runs in the bed");
        Self::Shared { address, _turn: turn }
    }

    /// Its address.
    pub fn address(&self) -> &str {
        match self {
            Self::Private { address, .. } | Self::Shared { address, .. } => address,
        }
    }

    /// A new connection.
    pub async fn connect(&self) -> Connection {
        Builder::address(self.address()).build().await.unwrap()
    }

    /// Ends a private bus at once.
    pub fn kill(&mut self) {
        if let Self::Private { daemon, .. } = self {
            daemon.kill().unwrap();
            daemon.wait().unwrap();
        }
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        if let Self::Private { daemon, .. } = self {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}
