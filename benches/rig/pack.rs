//! Many sessions of a peer, as few servers as it has for them, with nobody attached.

use std::{
    fs,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

use super::{
    cgroup::Pen,
    process::{Process, Used},
    stage::Middle,
};

/// How long a peer may take for one of its steps.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a session is tried.
const TRIES: usize = 10;

/// A peer with its sessions.
#[derive(Debug)]
pub struct Pack {
    middle: Middle,
    sockets: TempDir,
    pen: Pen,
    daemon: Option<Child>,
    sessions: usize,
}

impl Pack {
    /// Starts what there is without a session.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn start(middle: Middle) -> anyhow::Result<Self> {
        let sockets = tempfile::Builder::new().prefix("sockets").tempdir()?;
        let pen = Pen::build(&format!("pack-{}", middle.name()))?;
        let mut pack = Self { middle, sockets, pen, daemon: None, sessions: 0 };
        if middle == Middle::Shpool {
            let socket = pack.socket("shpool");
            pack.daemon = Some(pack.spawn(&["shpool", "--socket", &socket, "daemon"])?);
            let began = Instant::now();
            while !fs::exists(&socket)? {
                ensure!(began.elapsed() < PATIENCE, "shpool does not start");
                std::thread::yield_now();
            }
        }
        Ok(pack)
    }

    /// Adds sessions in which a shell runs the script.
    ///
    /// # Errors
    /// Where one does not start.
    pub fn add(&mut self, count: usize, script: &str) -> anyhow::Result<()> {
        for _ in 0..count {
            let mut tries = 0;
            while !self.add_one(script)? {
                tries += 1;
                // A tool of shpool at times ends as its first client detaches.
                ensure!(tries < TRIES, "{} does not open a session", self.middle.name());
            }
        }
        Ok(())
    }

    /// Gives whether it is there.
    fn add_one(&mut self, script: &str) -> anyhow::Result<bool> {
        self.sessions += 1;
        let shared = self.socket(self.middle.name());
        let name = self.sessions.to_string();
        let own = self.socket(&name);
        let quoted = format!("sh -c '{script}'");
        let argv: &[&str] = match self.middle {
            Middle::Dtach => &["dtach", "-n", &own, "-Ez", "sh", "-c", script],
            Middle::Tmux if self.sessions == 1 => {
                &["tmux", "-S", &shared, "-f/dev/null", "new-session", "-d", "sh", "-c", script]
            }
            Middle::Tmux => &["tmux", "-S", &shared, "new-window", "-d", "sh", "-c", script],
            Middle::Shpool => {
                &["shpool", "--socket", &shared, "attach", "--background", "--cmd", &quoted, &name]
            }
            Middle::Broker | Middle::Nothing => bail!("{} is no peer", self.middle.name()),
        };
        Ok(self.spawn(argv)?.wait()?.success())
    }

    /// Memory of its own that the peer has, without the tools, bytes.
    ///
    /// # Errors
    /// Where one of its processes ends meanwhile.
    pub fn anonymous(&self) -> anyhow::Result<u64> {
        self.servers()?.into_iter().map(Process::anonymous).sum()
    }

    /// What the peer has used, without the tools.
    ///
    /// # Errors
    /// Where one of its processes ends meanwhile.
    pub fn used(&self) -> anyhow::Result<Used> {
        let mut all = Used { cpu: Duration::ZERO, turns: 0 };
        for server in self.servers()? {
            let used = server.used()?;
            all.cpu += used.cpu;
            all.turns += used.turns;
        }
        Ok(all)
    }

    /// Its threads.
    ///
    /// # Errors
    /// Where one of its processes ends meanwhile.
    pub fn threads(&self) -> anyhow::Result<u64> {
        self.servers()?.into_iter().map(Process::threads).sum()
    }

    /// Its processes, by their names: `dtach`, `tmux: server`, `shpool`.
    fn servers(&self) -> anyhow::Result<Vec<Process>> {
        let mut servers = Vec::new();
        for process in self.pen.cgroup().processes()? {
            let Ok(name) = fs::read_to_string(format!("/proc/{process}/comm")) else { continue };
            if name.starts_with(self.middle.name()) {
                servers.push(Process(process));
            }
        }
        Ok(servers)
    }

    fn socket(&self, name: &str) -> String {
        self.sockets.path().join(name).display().to_string()
    }

    fn spawn(&self, argv: &[&str]) -> anyhow::Result<Child> {
        let mut command = self.pen.command(argv);
        command.env("TERM", "xterm-256color");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().with_context(|| format!("cannot run {}", argv[0]))
    }
}

impl Drop for Pack {
    fn drop(&mut self) {
        if let Err(error) = self.pen.cgroup().kill() {
            eprintln!("bench: cannot end {}: {error}", self.middle.name());
        }
        if let Some(Err(error)) = self.daemon.as_mut().map(Child::wait) {
            eprintln!("bench: cannot wait for {}: {error}", self.middle.name());
        }
    }
}
