//! The broker under test: a service of the user manager, as it is installed.

use std::{env, ffi::OsStr, path::Path, process::Command};

use anyhow::{Context, bail, ensure};
use futures_util::StreamExt;
use st2_tools::client::{
    Client, OpenOptions, Opened, SessionId,
    manager::{ManagerProxy, SessionClosedStream},
};
use tempfile::TempDir;

const UNIT: &str = "st2-tools.service";

/// A broker that runs, and a client of it.
#[derive(Debug)]
pub struct Broker {
    bus: zbus::Connection,
    client: Client,
    closed: SessionClosedStream,
    workspace: TempDir,
    _service: Service,
}

/// Stops the broker's unit when dropped.
#[derive(Debug)]
struct Service;

impl Broker {
    /// Starts one in the environment of an installed service, with the policy of the checkout.
    pub async fn start() -> anyhow::Result<Self> {
        let service = Service::start()?;
        let bus = zbus::Connection::session().await.context("cannot reach the user bus")?;
        let client = Client::over(bus.clone()).await?;
        let closed = ManagerProxy::new(&bus).await?.receive_session_closed().await?;
        let workspace = tempfile::Builder::new().prefix("workspace").tempdir()?;
        Ok(Self { bus, client, closed, workspace, _service: service })
    }

    /// The user bus.
    pub fn bus(&self) -> &zbus::Connection {
        &self.bus
    }

    /// Opens a command in a workspace that all share.
    pub async fn open(&self, argv: &[&str]) -> anyhow::Result<Opened> {
        let options = OpenOptions {
            argv: argv.iter().map(Into::into).collect(),
            workspace: self.workspace.path().to_str().map(str::to_owned),
            ..OpenOptions::default()
        };
        Ok(self.client.open("command", &options).await?)
    }

    /// Waits until the end of this session is announced.
    pub async fn closed(&mut self, id: &SessionId) -> anyhow::Result<()> {
        while let Some(signal) = self.closed.next().await {
            if signal.args()?.session.as_str() == id.path().as_str() {
                return Ok(());
            }
        }
        bail!("the broker left the bus")
    }
}

impl Service {
    fn start() -> anyhow::Result<Self> {
        let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("policy");
        let policy = format!("--setenv=ST2_TOOLS_POLICY_PATH={}", policy.display());
        let unit = format!("--unit={UNIT}");
        let programs = env::var_os("ST2_TOOLS_BIN_DIR").context("run benches/run")?;
        let status = Command::new("systemd-run")
            .args(["--user", "--quiet", "--collect", "--slice=session.slice"])
            .args(["--property=Type=dbus", "--property=BusName=org.st2.Tools"])
            .args([&unit, &policy])
            .arg(Path::new(&programs).join("st2-toolsd"))
            .status()
            .context("cannot run systemd-run")?;
        ensure!(status.success(), "the broker did not start: see journalctl --user -u {UNIT}");
        Ok(Self)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let stop = ["--user", "stop", UNIT].map(OsStr::new);
        if let Err(error) = Command::new("systemctl").args(stop).status() {
            eprintln!("bench: cannot stop the broker: {error}");
        }
    }
}
