//! A control group: who is in it, until nobody is, and the end of all who are.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use nix::errno::Errno;

const ROOT: &str = "/sys/fs/cgroup";

/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is looked at.
const GLANCE: Duration = Duration::from_micros(200);

/// A control group that is there.
#[derive(Debug)]
pub struct Cgroup(PathBuf);

/// A control group of our own: all that was started in it ends when it is dropped.
#[derive(Debug)]
pub struct Pen(Cgroup);

impl Cgroup {
    /// The one that a process is in.
    ///
    /// # Errors
    /// Where the process has ended.
    pub fn of(process: u32) -> anyhow::Result<Self> {
        let path = format!("/proc/{process}/cgroup");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let inside = text.lines().find_map(|line| line.strip_prefix("0::/"));
        let inside = inside.with_context(|| format!("process {process} is in no cgroup2"))?;
        Ok(Self(Path::new(ROOT).join(inside)))
    }

    /// The processes in it, without those of groups below it.
    ///
    /// # Errors
    /// Where it is gone.
    pub fn processes(&self) -> anyhow::Result<Vec<u32>> {
        let text = fs::read_to_string(self.0.join("cgroup.procs"))
            .with_context(|| format!("cannot see who is in {}", self.0.display()))?;
        Ok(text.lines().map(str::parse).collect::<Result<_, _>>()?)
    }

    /// What tells when nobody is in it any longer.
    ///
    /// # Errors
    /// Where it is gone.
    pub fn watch(&self) -> anyhow::Result<Watch> {
        let events = File::open(self.0.join("cgroup.events"));
        Ok(Watch(events.with_context(|| format!("cannot watch {}", self.0.display()))?))
    }

    /// Kills everybody in it.
    ///
    /// # Errors
    /// Where it is not ours, or gone.
    pub fn kill(&self) -> anyhow::Result<()> {
        fs::write(self.0.join("cgroup.kill"), "1")
            .with_context(|| format!("cannot kill {}", self.0.display()))
    }
}

/// `cgroup.events` of a control group.
#[derive(Debug)]
pub struct Watch(File);

impl Watch {
    /// Waits until nobody is in it, or it is gone; gives when that was, to [`GLANCE`].
    ///
    /// Looks again and again: the kernel holds notifications back for up to 10 ms (`CGROUP_FILE_NOTIFY_MIN_INTV`), and drops
    /// what it holds back when the group is removed.
    ///
    /// # Errors
    /// Where that takes more than a minute.
    pub fn until_empty(self) -> anyhow::Result<Instant> {
        let began = Instant::now();
        while self.populated()? {
            ensure!(began.elapsed() < PATIENCE, "a control group does not empty");
            sleep(GLANCE);
        }
        Ok(Instant::now())
    }

    fn populated(&self) -> anyhow::Result<bool> {
        let mut text = [0; 256];
        match self.0.read_at(&mut text, 0) {
            Ok(count) => Ok(String::from_utf8_lossy(&text[..count]).contains("populated 1")),
            // It has been removed.
            Err(error) if error.raw_os_error() == Some(Errno::ENODEV as i32) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Pen {
    /// Makes one below our own.
    ///
    /// # Errors
    /// Where our own is not delegated to us: outside of a bed.
    pub fn build(name: &str) -> anyhow::Result<Self> {
        let path = Cgroup::of(std::process::id())?.0.join(name);
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(Cgroup(path)))
    }

    /// The group.
    pub fn cgroup(&self) -> &Cgroup {
        &self.0
    }

    /// A command that enters it before it becomes `argv`; leader of a session whose controlling
    /// terminal is its standard input, if that is a terminal.
    pub fn command(&self, argv: &[&str]) -> Command {
        let enter =
            "echo 0 >\"$0\"; if [ -t 0 ]; then exec setsid --ctty \"$@\"; fi; exec setsid \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", enter]).arg(self.0.0.join("cgroup.procs")).args(argv);
        command
    }
}

impl Drop for Pen {
    fn drop(&mut self) {
        let emptied = self.0.watch().and_then(|watch| {
            self.0.kill()?;
            watch.until_empty()
        });
        let removed = emptied.and_then(|_| Ok(fs::remove_dir(&self.0.0)?));
        if let Err(error) = removed {
            eprintln!("bench: cannot remove {}: {error}", self.0.0.display());
        }
    }
}
