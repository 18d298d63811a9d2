//! The broker under test: a service of the user manager, as it is installed.

use std::{
    env, fs,
    path::Path,
    process::Command,
    rc::Rc,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use futures_util::StreamExt;
use st2_tools::client::{
    BUS_NAME, Client, OpenOptions, Opened, READ_MAX, ReadOptions, Session, SessionId,
    manager::{ManagerProxy, SessionClosedStream},
};
use tempfile::TempDir;
use zbus::{fdo::DBusProxy, names::BusName};

use super::process::Process;

/// How long a tool may be silent that is to say something.
const PATIENCE: Duration = Duration::from_secs(60);

/// Units started so far. Each has a name of its own: the manager forgets a stopped one in its own time.
static UNITS: AtomicUsize = AtomicUsize::new(0);

/// A broker that runs, and a client of it.
#[derive(Debug)]
pub struct Broker {
    client: Client,
    closed: SessionClosedStream,
    workspace: Rc<TempDir>,
    process: u32,
    _service: Service,
}

/// What is declared beside the policy of the checkout.
#[derive(Debug, Clone, Copy, Default)]
pub struct Declared {
    /// `broker.toml`.
    pub settings: &'static str,
    /// Files of `tools.d`: name and content.
    pub tools: &'static [(&'static str, &'static str)],
}

/// Stops the broker's unit when dropped.
#[derive(Debug)]
struct Service {
    unit: String,
    _declared: TempDir,
}

/// Another owner of sessions.
#[derive(Debug)]
pub struct Stranger {
    bus: zbus::Connection,
    client: Client,
    workspace: Rc<TempDir>,
}

impl Broker {
    /// Starts one in the environment of an installed service, with the policy of the checkout.
    pub async fn start() -> anyhow::Result<Self> {
        Self::start_with(Declared::default()).await
    }

    /// Starts one whose policy declares more.
    pub async fn start_with(declared: Declared) -> anyhow::Result<Self> {
        let service = Service::start(declared)?;
        let bus = zbus::Connection::session().await.context("cannot reach the user bus")?;
        let client = Client::over(bus.clone()).await?;
        let closed = ManagerProxy::new(&bus).await?.receive_session_closed().await?;
        let workspace = Rc::new(tempfile::Builder::new().prefix("workspace").tempdir()?);
        let process = DBusProxy::new(&bus)
            .await?
            .get_connection_unix_process_id(BusName::try_from(BUS_NAME)?)
            .await?;
        Ok(Self { client, closed, workspace, process, _service: service })
    }

    /// Another client of the same broker, over a connection of its own, with the same workspace.
    pub async fn stranger(&self) -> anyhow::Result<Stranger> {
        let bus = zbus::Connection::session().await?;
        let client = Client::over(bus.clone()).await?;
        Ok(Stranger { bus, client, workspace: self.workspace.clone() })
    }

    /// Its client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Its process.
    pub fn process(&self) -> Process {
        Process(self.process)
    }

    /// The directory that all sessions have as theirs.
    pub fn workspace(&self) -> &Path {
        self.workspace.path()
    }

    /// Opens a command in a workspace that all share.
    pub async fn open(&self, argv: &[&str]) -> anyhow::Result<Opened> {
        self.open_with(argv, OpenOptions::default()).await
    }

    /// Opens it with more options.
    pub async fn open_with(&self, argv: &[&str], more: OpenOptions) -> anyhow::Result<Opened> {
        Ok(self.client.open("command", &within(&self.workspace, argv, more)).await?)
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

    /// Waits until so many more ends are announced.
    pub async fn closed_so_many(&mut self, count: usize) -> anyhow::Result<()> {
        let announced = self.closed.by_ref().take(count).count().await;
        ensure!(announced == count, "the broker left the bus");
        Ok(())
    }
}

/// Waits until the tool of a session has said so many bytes.
pub async fn said(session: &Session, bytes: u64) -> anyhow::Result<()> {
    let wait = ReadOptions { wait: Some(PATIENCE), ..ReadOptions::default() };
    let mut next = 0;
    while next < bytes {
        let chunk = session.read(next, READ_MAX, &wait).await?;
        ensure!(chunk.next > next, "a tool says no more");
        next = chunk.next;
    }
    Ok(())
}

impl Stranger {
    /// Opens an instance of a tool with these options.
    pub async fn open(
        &self,
        tool: &str,
        argv: &[&str],
        more: OpenOptions,
    ) -> anyhow::Result<Opened> {
        Ok(self.client.open(tool, &within(&self.workspace, argv, more)).await?)
    }

    /// Vanishes: closes its connection.
    pub async fn vanish(self) -> anyhow::Result<()> {
        let Self { bus, client, .. } = self;
        drop(client);
        Ok(bus.close().await?)
    }
}

fn within(workspace: &TempDir, argv: &[&str], more: OpenOptions) -> OpenOptions {
    OpenOptions {
        argv: argv.iter().map(Into::into).collect(),
        workspace: workspace.path().to_str().map(str::to_owned),
        ..more
    }
}

impl Service {
    fn start(declared: Declared) -> anyhow::Result<Self> {
        let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("policy");
        let more = declared.write()?;
        let policy = [&policy, more.path()].map(|path| path.display().to_string()).join(":");
        let policy = format!("--setenv=ST2_TOOLS_POLICY_PATH={policy}");
        let unit = format!("st2-tools-{}.service", UNITS.fetch_add(1, Ordering::Relaxed));
        let programs = env::var_os("ST2_TOOLS_BIN_DIR").context("run benches/run")?;
        let status = Command::new("systemd-run")
            .args(["--user", "--quiet", "--collect", "--slice=session.slice"])
            .args(["--property=Type=dbus", "--property=BusName=org.st2.Tools"])
            .args([&format!("--unit={unit}"), &policy])
            .arg(Path::new(&programs).join("st2-toolsd"))
            .status()
            .context("cannot run systemd-run")?;
        ensure!(status.success(), "the broker did not start: see journalctl --user -u {unit}");
        Ok(Self { unit, _declared: more })
    }
}

impl Declared {
    fn write(self) -> anyhow::Result<TempDir> {
        let directory = tempfile::Builder::new().prefix("policy").tempdir()?;
        if !self.settings.is_empty() {
            fs::write(directory.path().join("broker.toml"), self.settings)?;
        }
        let tools = directory.path().join("tools.d");
        fs::create_dir(&tools)?;
        for (name, content) in self.tools {
            fs::write(tools.join(name), content)?;
        }
        Ok(directory)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let stop = ["--user", "stop", &self.unit];
        if let Err(error) = Command::new("systemctl").args(stop).status() {
            eprintln!("bench: cannot stop the broker: {error}");
        }
    }
}
