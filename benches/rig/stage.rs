//! A tool on a terminal with something in the middle: the broker, a peer, or nothing.

use std::{
    env,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use st2_tools::{
    client::AttachOptions,
    host::pty::{Pty, Size},
};
use tempfile::TempDir;

use super::{broker::Broker, cgroup::Pen, line::Line};

/// What every tool says once it is there.
pub const READY: &str = "READY";

/// How long a peer may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is in the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Middle {
    /// The broker.
    Broker,
    /// Nothing: the tool's own pty.
    Nothing,
    /// dtach(1).
    Dtach,
    /// tmux(1).
    Tmux,
    /// shpool(1).
    Shpool,
}

impl Middle {
    /// What it is called in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Broker => "st2-tools",
            Self::Nothing => "raw pty",
            Self::Dtach => "dtach",
            Self::Tmux => "tmux",
            Self::Shpool => "shpool",
        }
    }

    /// All of these that this machine has; those that it lacks are named.
    pub fn present(wanted: &[Self]) -> Vec<Self> {
        let (present, absent): (Vec<_>, Vec<_>) =
            wanted.iter().copied().partition(|it| it.is_installed());
        for middle in absent {
            eprintln!("bench: no {} here to compare with: benches/run --install", middle.name());
        }
        present
    }

    fn is_installed(self) -> bool {
        let program = match self {
            Self::Broker | Self::Nothing => return true,
            Self::Dtach | Self::Tmux | Self::Shpool => self.name(),
        };
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path).any(|directory| directory.join(program).is_file())
    }
}

/// A place for tools: the broker, and a directory for the sockets of peers.
#[derive(Debug)]
pub struct Stage {
    broker: Broker,
    sockets: TempDir,
    tools: usize,
}

/// A tool that runs and has said so, and its client.
#[derive(Debug)]
pub struct Played {
    /// The client's end.
    pub lines: Vec<Line>,
    pen: Option<Pen>,
    clients: Vec<Child>,
}

impl Stage {
    /// Starts the broker.
    ///
    /// # Errors
    /// Where it does not start.
    pub async fn set() -> anyhow::Result<Self> {
        let sockets = tempfile::Builder::new().prefix("sockets").tempdir()?;
        Ok(Self { broker: Broker::start().await?, sockets, tools: 0 })
    }

    /// The directory that every tool starts in.
    pub fn workspace(&self) -> &Path {
        self.broker.workspace()
    }

    /// Has a shell run the script, which says [`READY`] when it is there, with so many clients attached, and drops what
    /// came. Without a client only the broker, dtach and tmux can; with several only the broker and tmux, which show a
    /// client that comes later what was said before.
    ///
    /// # Errors
    /// Where it does not start.
    pub async fn play(
        &mut self,
        middle: Middle,
        script: &str,
        clients: usize,
    ) -> anyhow::Result<Played> {
        self.tools += 1;
        let script = format!("cd '{}'; {script}", self.workspace().display());
        if middle == Middle::Broker {
            return self.session(&script, clients).await;
        }
        let pen = Pen::build(&format!("peer-{}", self.tools))?;
        let peer = Peer { middle, socket: self.sockets.path().join(self.tools.to_string()), pen };
        peer.play(&script, clients)
    }

    async fn session(&self, script: &str, clients: usize) -> anyhow::Result<Played> {
        let session = self.broker.open(&["sh", "-c", script]).await?.session;
        let mut lines = Vec::new();
        for _ in 0..clients {
            let stream = session.attach(&AttachOptions::default()).await?.into_inner();
            let mut line = Line::new(OwnedFd::from(stream.into_std()?));
            line.expect(READY)?;
            lines.push(line);
        }
        Ok(Played { lines, pen: None, clients: Vec::new() })
    }
}

/// Something of other make that is in the middle of one tool.
struct Peer {
    middle: Middle,
    socket: PathBuf,
    pen: Pen,
}

impl Peer {
    fn play(self, script: &str, clients: usize) -> anyhow::Result<Played> {
        let mut children = self.serve(script, clients)?;
        let mut lines = Vec::new();
        for client in 0..clients {
            let (mut line, child) = self.attach(script, client)?;
            line.expect(READY)?;
            lines.push(line);
            children.push(child);
        }
        Ok(Played { lines, pen: Some(self.pen), clients: children })
    }

    /// Starts what is there before the first client, where there is such.
    fn serve(&self, script: &str, clients: usize) -> anyhow::Result<Vec<Child>> {
        let socket = self.socket()?;
        let argv: &[&str] = match self.middle {
            Middle::Shpool => &["shpool", "--socket", socket, "daemon"],
            Middle::Dtach if clients == 0 => &["dtach", "-n", socket, "-Ez", "sh", "-c", script],
            Middle::Tmux if clients == 0 => &[
                "tmux",
                "-S",
                socket,
                "-f/dev/null",
                "new-session",
                "-d",
                "--",
                "sh",
                "-c",
                script,
            ],
            _ => {
                ensure!(clients > 0, "{} needs a client", self.middle.name());
                return Ok(Vec::new());
            }
        };
        let mut command = self.pen.command(argv);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().with_context(|| format!("cannot run {}", argv[0]))?;
        let began = Instant::now();
        while !self.socket.exists() {
            ensure!(began.elapsed() < PATIENCE, "{} does not start", argv[0]);
            std::thread::yield_now();
        }
        Ok(vec![child])
    }

    /// Runs a client on a pty of its own.
    fn attach(&self, script: &str, client: usize) -> anyhow::Result<(Line, Child)> {
        let socket = self.socket()?;
        let quoted = format!("sh -c \"{}\"", script.replace(['\\', '"', '$'], "\\$0"));
        let first = client == 0 && !self.socket.exists();
        let argv: &[&str] = match self.middle {
            Middle::Broker | Middle::Nothing => &["sh", "-c", script],
            Middle::Dtach => &["dtach", "-A", socket, "-Ez", "sh", "-c", script],
            Middle::Tmux if first => {
                &["tmux", "-S", socket, "-f/dev/null", "new-session", "--", "sh", "-c", script]
            }
            Middle::Tmux => &["tmux", "-S", socket, "attach-session"],
            Middle::Shpool => &["shpool", "--socket", socket, "attach", "--cmd", &quoted, "bench"],
        };
        let pty = Pty::open(Size::new(80, 24))?;
        let mut command = self.pen.command(argv);
        command.env("TERM", "xterm-256color");
        command.stdin(Stdio::from(pty.user.try_clone()?));
        command.stdout(Stdio::from(pty.user.try_clone()?)).stderr(Stdio::from(pty.user));
        let child = command.spawn().with_context(|| format!("cannot run {}", argv[0]))?;
        Ok((Line::new(OwnedFd::from(pty.controller)), child))
    }

    fn socket(&self) -> anyhow::Result<&str> {
        self.socket.to_str().context("the path of a socket is not UTF-8")
    }
}

impl Played {
    /// Its only client's line.
    ///
    /// # Errors
    /// Where it has none.
    pub fn line(&mut self) -> anyhow::Result<&mut Line> {
        self.lines.first_mut().context("no client is attached")
    }
}

impl Drop for Played {
    /// Ends what runs of it, and reaps it. A session of the broker ends with its owner, the broker's client.
    fn drop(&mut self) {
        drop(self.pen.take());
        for child in &mut self.clients {
            if let Err(error) = child.wait() {
                eprintln!("bench: cannot wait for a peer: {error}");
            }
        }
    }
}
