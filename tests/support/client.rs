//! A client of the broker, in this process or in one that can be killed.

use std::{
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::Path,
    process::{Child, Command},
};

use st2_tools::client::{Dict, manager::ManagerProxy, session::SessionProxy};
use zbus::{Connection, connection::Builder};

use super::{Bus, soon, within};

/// A client of the broker.
#[derive(Debug, Clone)]
pub struct Client {
    pub connection: Connection,
    pub manager: ManagerProxy<'static>,
}

impl Client {
    /// Speaks over a connection.
    pub async fn new(connection: Connection) -> Self {
        let manager = ManagerProxy::new(&connection).await.unwrap();
        Self { connection, manager }
    }

    /// Its unique name.
    pub fn name(&self) -> String {
        self.connection.unique_name().unwrap().to_string()
    }

    /// Opens a session.
    pub async fn open(
        &self,
        tool: &str,
        options: Dict,
    ) -> zbus::Result<(SessionProxy<'static>, Dict)> {
        let (path, info) = soon("Open", self.manager.open(tool, &options)).await?;
        Ok((self.session(path.as_str()).await, info))
    }

    /// Opens a session of `command`.
    pub async fn run(&self, workspace: &Path, argv: &[&str]) -> SessionProxy<'static> {
        let argv: Vec<String> = argv.iter().map(|argument| (*argument).to_owned()).collect();
        self.open("command", within(workspace).with("argv", argv)).await.unwrap().0
    }

    /// A session by its path.
    pub async fn session(&self, path: &str) -> SessionProxy<'static> {
        SessionProxy::builder(&self.connection)
            .path(path.to_owned())
            .cache_properties(zbus::proxy::CacheProperties::No)
            .build()
            .await
            .unwrap()
    }

    /// Leaves the bus.
    pub async fn vanish(self) {
        drop(self.manager);
        self.connection.close().await.unwrap();
    }
}

/// Starts a process that holds a connection's place on the bus, systemd-stdio-bridge(1).
pub fn bridge(stream: UnixStream, address: &str) -> Child {
    let stream = OwnedFd::from(stream);
    Command::new("systemd-stdio-bridge")
        .arg(format!("--bus-path={address}"))
        .stdin(stream.try_clone().unwrap())
        .stdout(stream)
        .spawn()
        .expect("systemd-stdio-bridge is installed")
}

/// A client whose place on the bus is held by a [`bridge`]: when that process is killed, the bus
/// sees what it sees of any client that crashes.
#[derive(Debug)]
pub struct Killable {
    pub client: Client,
    bridge: Child,
}

impl Killable {
    /// Connects one to a bus.
    pub async fn on(bus: &Bus) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let bridge = bridge(theirs, bus.address());
        let connection = soon("the bridge", Builder::unix_stream(ours).build()).await.unwrap();
        Self { client: Client::new(connection).await, bridge }
    }

    /// Kills the process (SIGKILL): the client knows of nothing.
    pub fn kill(mut self) {
        self.bridge.kill().unwrap();
        self.bridge.wait().unwrap();
    }
}

impl Drop for Killable {
    fn drop(&mut self) {
        let _ = self.bridge.kill();
        let _ = self.bridge.wait();
    }
}
