//! A tool opened by the launcher alone, without a broker: in a tier, or by a launcher that confines nothing.

use std::{
    env,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Instant,
};

use anyhow::{Context, ensure};
use st2_tools::{
    broker::{name::SessionId, outcome::Ending},
    config::{MaxTier, Overrides, Settings},
    host::{
        child::{Child, Exit},
        probe,
        pty::{Pty, Size},
        spawn::Launcher,
        tmpdir::{TmpDir, TmpRoot},
    },
    launch::{self, report::Tier},
    policy::{
        catalogue::Catalogue,
        judge::Judge,
        request::Request,
        resolved::Resolved,
        search_path::SearchPath,
        surroundings::{Kernel, Surroundings},
    },
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};

/// Ends at once.
const TOOL: &str = "/usr/bin/true";

/// Where tools are opened: programs, a workspace, a private directory.
#[derive(Debug)]
pub struct Site {
    launcher: PathBuf,
    bare: PathBuf,
    workspace: TempDir,
    root: TmpRoot,
    tmpdir: TmpDir,
}

/// A tool as the policy has it in one tier.
#[derive(Debug)]
pub struct Confined {
    /// What it is called in reports.
    pub name: &'static str,
    tier: Tier,
    resolved: Resolved,
}

/// A tool that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Over {
    /// When its execve(2) had succeeded.
    pub executed: Instant,
    /// When it had ended.
    pub ended: Instant,
}

impl Site {
    /// Finds the programs, makes the directories.
    ///
    /// # Errors
    /// Where a program is missing.
    pub fn lay_out() -> anyhow::Result<Self> {
        let programs = PathBuf::from(env::var_os("ST2_TOOLS_BIN_DIR").context("run benches/run")?);
        let root = TmpRoot::create(&env::temp_dir())?;
        let tmpdir = root.make(&id()?)?;
        let site = Self {
            launcher: programs.join("st2-tools-launch"),
            bare: programs.join("examples/st2-tools-bare"),
            workspace: tempfile::Builder::new().prefix("workspace").tempdir()?,
            root,
            tmpdir,
        };
        for program in [&site.launcher, &site.bare] {
            ensure!(program.is_file(), "there is no {}: run benches/run", program.display());
        }
        Ok(site)
    }

    /// The tool in each tier that this machine has, the best first.
    ///
    /// # Errors
    /// Where the policy refuses it, or there is no tier at all.
    pub fn tiers(&self) -> anyhow::Result<Vec<Confined>> {
        let all = [
            (Tier::Mounts, "confined, tier mounts"),
            (Tier::ResolveUnix, "confined, tier resolve-unix"),
            (Tier::Seccomp, "confined, tier seccomp"),
        ];
        let mut tiers = Vec::new();
        for (tier, name) in all {
            let resolved = self.resolve(tier)?;
            if resolved.spec.confinement.tier == tier {
                tiers.push(Confined { name, tier, resolved });
            } else {
                eprintln!("bench: this machine has no tier {}", tier.as_str());
            }
        }
        ensure!(!tiers.is_empty(), "this machine has no tier");
        Ok(tiers)
    }

    /// What the shipped policy makes of `command` where this is the best tier.
    fn resolve(&self, most: Tier) -> anyhow::Result<Resolved> {
        let mut surroundings = Surroundings::gather(Kernel {
            landlock_abi: launch::landlock_abi(),
            seccomp: launch::has_seccomp(),
            mounts: probe::mounts(&self.launcher).is_ok(),
        })?;
        surroundings.state_dirs.push(self.root.path().to_owned());
        let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("policy");
        let search = SearchPath::new(vec![policy]);
        let overrides = Overrides { max_tier: MaxTier::Most(most), ..Overrides::default() };
        let settings = Arc::new(Settings::load(&search, overrides));
        let (catalogue, root) = (Catalogue::load(search), self.root.path().to_owned());
        let judge = Judge::new(catalogue, surroundings, settings, root);
        let request = Request {
            argv: vec![TOOL.into()],
            workspace: Some(self.workspace.path().to_owned()),
            ..Request::default()
        };
        Ok(judge.resolve(&id()?, "command", &request)?)
    }

    /// Opens the tool confined, and waits for its end.
    ///
    /// # Errors
    /// Where it does not start, or fails, or gets another tier.
    pub async fn confined(&self, tool: &Confined) -> anyhow::Result<Over> {
        let resolved = &tool.resolved;
        let pty = Pty::open(Size::new(80, 24))?;
        let mut launcher = Launcher::spawn(&self.launcher, pty.user)?;
        let directories =
            [resolved.workspace_fd.as_fd(), resolved.cwd_fd.as_fd(), self.tmpdir.as_fd()];
        launcher.send_spec(&resolved.spec, &directories).await?;
        launcher.ready().await?;
        let started = launcher.release().await?;
        let executed = Instant::now();
        ensure!(started.report.tier == tool.tier, "the launcher took another tier");
        over(executed, launcher.exited().await)
    }

    /// Opens the tool unconfined, and waits for its end.
    ///
    /// # Errors
    /// Where it does not start, or fails.
    pub async fn bare(&self) -> anyhow::Result<Over> {
        let pty = Pty::open(Size::new(80, 24))?;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut control = UnixStream::from_std(ours)?;
        let second = pty.user.try_clone()?;
        let spawned = Command::new(&self.bare)
            .arg(TOOL)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(second))
            .stderr(Stdio::from(pty.user))
            .spawn()?;
        let mut child = Child::adopt(spawned)?;
        control.read_exact(&mut [0]).await?;
        control.write_all(b"!").await?;
        ensure!(control.read(&mut [0]).await? == 0, "the tool was not executed");
        over(Instant::now(), child.exited().await?)
    }
}

fn over(executed: Instant, exit: Exit) -> anyhow::Result<Over> {
    let ended = Instant::now();
    ensure!(exit.ending == Ending::Exited(0), "the tool failed: {:?}", exit.ending);
    Ok(Over { executed, ended })
}

fn id() -> anyhow::Result<SessionId> {
    SessionId::new("bench").context("a session may be called bench")
}
