//! What the tests of a running broker share: a bus, a broker on it, clients, deadlines.
//!
//! A test never sleeps: it waits for an event, at most [`PATIENCE`].

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "what cannot be had fails the test")]

pub mod bus;
pub mod client;
pub mod doomed;
pub mod frame;
pub mod frames;
pub mod keys;
pub mod listeners;
pub mod looks;
pub mod manager;
pub mod ran;
pub mod random;
pub mod repository;
pub mod running;
pub mod screen;
pub mod stopped;
pub mod tools;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use st2_tools::client::{Dict, session::SessionProxy};
use tempfile::TempDir;
use tokio::{sync::OnceCell, time::timeout};
use zbus::{DBusError, fdo::DBusProxy};

use self::running::{Installed, Running, environment_line};
pub use self::{bus::Bus, client::Client};

/// Longest wait for anything that is to happen.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for something, at most [`PATIENCE`].
pub async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    match timeout(PATIENCE, event).await {
        Ok(value) => value,
        Err(_) => panic!("{what} did not happen within {PATIENCE:?}"),
    }
}

/// One of the project's programs.
pub fn program(name: &str) -> PathBuf {
    let beside = || Path::new(env!("CARGO_BIN_EXE_st2-tools")).with_file_name(name);
    env::var_os("ST2_TOOLS_BIN_DIR").map_or_else(beside, |dir| Path::new(&dir).join(name))
}

/// The policy of the checkout.
pub fn policy() -> PathBuf {
    env::var_os("ST2_TOOLS_POLICY_PATH")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("policy"), PathBuf::from)
}

/// A broker that runs, and its bus.
#[derive(Debug)]
pub struct Broker {
    // Dropped in this order: the turn on a shared bus goes last.
    running: Running,
    runtime_dir: TempDir,
    pub bus: Bus,
}

/// How a broker is to be started.
#[derive(Debug, Default)]
pub struct Start {
    environment: Vec<(String, String)>,
    settings: Vec<String>,
    policies: Vec<PathBuf>,
    log: Option<PathBuf>,
}

impl Start {
    /// Sets a variable of its environment.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a line to the `[Service]` section of its unit.
    pub fn setting(mut self, line: &str) -> Self {
        self.settings.push(line.to_owned());
        self
    }

    /// Adds a policy directory that overrides the checkout's.
    pub fn policy(mut self, directory: &Path) -> Self {
        self.policies.push(directory.to_owned());
        self
    }

    /// Writes what it says on standard error into a file; not for a unit.
    pub fn log(mut self, file: &Path) -> Self {
        self.log = Some(file.to_owned());
        self
    }

    /// Starts it on a private bus.
    pub async fn private(self) -> Broker {
        self.on(Bus::private()).await
    }

    /// Starts it beside the real user manager.
    pub async fn shared(self) -> Broker {
        self.on(Bus::shared().await).await
    }

    /// Starts it as the shipped unit, by its name on the bus.
    pub async fn unit(self) -> Broker {
        let bus = Bus::shared().await;
        let runtime_dir = tempfile::tempdir().unwrap();
        let mut settings = self.settings.clone();
        let environment = self.environment(runtime_dir.path());
        settings.extend(environment.iter().map(|(name, value)| environment_line(name, value)));
        let running = Running::Unit(Installed::new(&program("st2-toolsd"), &settings));
        let broker = Broker { running, runtime_dir, bus };
        let connection = broker.bus.connect().await;
        let dbus = DBusProxy::new(&connection).await.unwrap();
        dbus.reload_config().await.unwrap();
        let name = "org.st2.Tools".try_into().unwrap();
        soon("the unit's start", dbus.start_service_by_name(name, 0)).await.unwrap();
        broker
    }

    fn environment(self, temp_dir: &Path) -> Vec<(String, String)> {
        let paths = [vec![policy()], self.policies].concat();
        let paths = env::join_paths(paths).unwrap().into_string().unwrap();
        let own =
            [("ST2_TOOLS_POLICY_PATH", paths.as_str()), ("TMPDIR", temp_dir.to_str().unwrap())];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        own.into_iter().chain(self.environment).collect()
    }

    /// Starts it, and waits until it has its name.
    pub async fn on(self, bus: Bus) -> Broker {
        let runtime_dir = tempfile::tempdir().unwrap();
        let mut command = Command::new(program("st2-toolsd"));
        if let Some(log) = &self.log {
            command.stderr(fs::File::create(log).unwrap());
        }
        command
            .env("DBUS_SESSION_BUS_ADDRESS", bus.address())
            .envs(self.environment(runtime_dir.path()));
        let connection = bus.connect().await;
        let dbus = DBusProxy::new(&connection).await.unwrap();
        let mut owners =
            dbus.receive_name_owner_changed_with_args(&[(0, "org.st2.Tools")]).await.unwrap();
        let child = command.spawn().unwrap();
        let mut broker = Broker { running: Running::Child(child), runtime_dir, bus };
        soon("the broker's start", async {
            tokio::select! {
                _ = owners.next() => {}
                status = broker.exited() => panic!("the broker ended at once: {status}"),
            }
        })
        .await;
        broker
    }
}

impl Broker {
    /// Starts one on a private bus.
    pub async fn private() -> Self {
        Start::default().private().await
    }

    /// Starts one beside the real user manager.
    pub async fn shared() -> Self {
        Start::default().shared().await
    }

    /// Starts one as the shipped unit.
    pub async fn unit() -> Self {
        Start::default().unit().await
    }

    /// A client with a connection of its own.
    pub async fn client(&self) -> Client {
        Client::new(self.bus.connect().await).await
    }

    /// The broker's process.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.running.pid())
    }

    /// How many descriptors it has. It lets nobody list them, but the size of the directory is their number
    /// (proc_pid_fd(5), since Linux 6.2).
    pub fn descriptors(&self) -> u64 {
        fs::metadata(format!("/proc/{}/fd", self.pid())).unwrap().len()
    }

    /// What is in its directory for temporary directories: one entry a session.
    pub fn tmpdirs(&self) -> Vec<PathBuf> {
        let list = |path: &Path| -> Vec<PathBuf> {
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect()
        };
        list(self.runtime_dir.path()).iter().flat_map(|outer| list(outer)).collect()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    /// Waits for its end.
    pub async fn exited(&mut self) -> std::process::ExitStatus {
        loop {
            if let Some(status) = self.running.try_exit() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Options with a workspace.
pub fn within(workspace: &Path) -> Dict {
    Dict::new().with("workspace", workspace.to_str().unwrap().to_owned())
}

/// A workspace of the test's own.
pub fn workspace() -> TempDir {
    tempfile::Builder::new().prefix("workspace").tempdir().unwrap()
}

/// Reads a session's output until it holds a text; gives all of it.
pub async fn output_until(session: &SessionProxy<'_>, text: &str) -> String {
    let mut output = Vec::new();
    let mut cursor = 0;
    let read = async {
        loop {
            let options = Dict::new().with("wait_ms", 10_000u64);
            let (bytes, _, next, eof) = session.read(cursor, 65536, &options).await.unwrap();
            output.extend_from_slice(&bytes);
            cursor = next;
            let seen = String::from_utf8_lossy(&output).into_owned();
            if seen.contains(text) {
                return seen;
            }
            assert!(!eof, "{text:?} is not in the output: {seen:?}");
        }
    };
    soon(&format!("{text:?} in the output"), read).await
}

/// Reads all that a session has written until its end.
pub async fn all_output(session: &SessionProxy<'_>) -> String {
    let mut output = Vec::new();
    let mut cursor = 0;
    loop {
        let options = Dict::new().with("wait_ms", 10_000u64);
        let (bytes, _, next, eof) =
            soon("output", session.read(cursor, 65536, &options)).await.unwrap();
        output.extend_from_slice(&bytes);
        cursor = next;
        if eof && bytes.is_empty() {
            return String::from_utf8_lossy(&output).into_owned();
        }
    }
}

/// Waits for a session's outcome.
pub async fn outcome(session: &SessionProxy<'_>) -> Dict {
    let (closed, outcome) = soon("the end", session.wait(20_000)).await.unwrap();
    assert!(closed, "the session has not ended");
    outcome
}

/// The name of a method's error, and its text.
pub fn error_of<T: std::fmt::Debug>(result: zbus::Result<T>) -> (String, String) {
    match result {
        Err(zbus::Error::MethodError(name, text, _)) => {
            (name.to_string(), text.unwrap_or_default())
        }
        Err(zbus::Error::FDO(error)) => {
            (error.name().to_string(), error.description().unwrap_or_default().to_owned())
        }
        other => panic!("not an error of a method: {other:?}"),
    }
}

/// The short name of an error of the contract.
pub fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Waits until a condition holds that no event tells of.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    soon(what, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// The same for a thread of its own.
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not happen within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until a session's owner is in a state.
pub async fn owner_state(session: &SessionProxy<'_>, state: &str) {
    soon(state, async { while session.owner_state().await.unwrap() != state {} }).await;
}

/// Whether a process lives; a zombie does not.
pub fn lives(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z")))
}

/// The tiers of this machine, the best first.
pub async fn tiers() -> Vec<String> {
    static TIERS: OnceCell<Vec<String>> = OnceCell::const_new();
    TIERS.get_or_init(ask_for_tiers).await.clone()
}

async fn ask_for_tiers() -> Vec<String> {
    const ALL: [&str; 3] = ["mounts", "resolve-unix", "seccomp"];
    /// The first Landlock ABI that has the right of this name.
    const RESOLVE_UNIX: u32 = 9;
    let broker = Broker::unit().await;
    let manager = broker.client().await.manager;
    let (best, abi) = (manager.tier().await.unwrap(), manager.landlock_abi().await.unwrap());
    let known = ALL.iter().position(|tier| *tier == best);
    let known =
        known.unwrap_or_else(|| panic!("the best tier is {best}, which is none of {ALL:?}"));
    let is_here = |tier: &&&str| **tier != "resolve-unix" || abi >= RESOLVE_UNIX;
    ALL[known..].iter().filter(is_here).map(|tier| (*tier).to_owned()).collect()
}
