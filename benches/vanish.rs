//! An owner that vanishes, without a grace: until nobody is left in the session's control group, of a tree of 21
//! processes that end when they are asked to, and of one that has to be killed.
//!
//! The peers do by hand what the broker has the user manager do, with a tree that runs unconfined.

use std::{
    io::Read,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use anyhow::ensure;
use st2_tools::client::OpenOptions;
use zbus::Connection;

use crate::{
    Plan,
    rig::{
        broker::{Broker, Declared, Stranger, said},
        cgroup::{Cgroup, Pen},
        placement::{Placement, place},
        report::{Bound, Measure, Metric, Report, Subject, Target},
    },
};

/// From the first gentle signal to SIGKILL, for all who wait for it.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);

const TOOL: &str = "tree";

const DECLARED: Declared = Declared {
    settings: "",
    tools: &[(
        "tree.toml",
        "title = \"A tree of processes\"\ncommand = []\narguments = \"any\"\n\
         profile = [\"workspace\", \"git-config\"]\nstop_timeout_ms = 500\n",
    )],
};

const WELL_BEHAVED: &str = "for i in $(seq 20); do sleep 1000 & done; echo READY; wait";
const STUBBORN: &str =
    "trap '' HUP TERM INT; for i in $(seq 20); do sleep 1000 & done; echo READY; wait";

const BROKER: &str = "st2-tools, owner vanished";
const MANAGER: &str = "StopUnit of a systemd-run --scope";
const KERNEL: &str = "cgroup.kill";

const EMPTY: Metric = Metric { name: "well-behaved, empty", unit: "ms" };
const BEYOND: Metric = Metric { name: "stubborn, beyond its stop timeout", unit: "ms" };

const TARGETS: [Target; 2] = [
    Target::new(EMPTY, BROKER, Measure::Value, Bound::AtMost(20.0)),
    Target::new(BEYOND, BROKER, Measure::Value, Bound::AtMost(300.0)),
];

/// Who ends the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Broker,
    Manager,
    Kernel,
}

impl By {
    fn name(self) -> &'static str {
        match self {
            Self::Broker => BROKER,
            Self::Manager => MANAGER,
            Self::Kernel => KERNEL,
        }
    }
}

/// Measures.
///
/// # Errors
/// Where anything fails: what was measured until then is not worth having.
pub async fn run(plan: Plan) -> anyhow::Result<Report> {
    let broker = Broker::start_with(DECLARED).await?;
    let mut bench =
        Bench { broker, bus: Connection::session().await?, trees: 0, report: Report::new("", &[]) };
    for by in [By::Broker, By::Manager, By::Kernel] {
        bench.end(by, WELL_BEHAVED).await?;
    }
    bench.report = Report::new("vanish", &TARGETS);
    for _ in 0..plan.rounds {
        for placement in Placement::BOTH {
            place(placement)?;
            for by in [By::Broker, By::Manager, By::Kernel] {
                bench.block(by, placement, plan.count.div_ceil(4)).await?;
            }
        }
    }
    place(Placement::Free)?;
    Ok(bench.report)
}

struct Bench {
    broker: Broker,
    bus: Connection,
    trees: usize,
    report: Report,
}

impl Bench {
    async fn block(&mut self, by: By, placement: Placement, count: usize) -> anyhow::Result<()> {
        let subject = Subject { name: by.name(), condition: placement.as_str() };
        for _ in 0..count {
            let took = self.end(by, WELL_BEHAVED).await?;
            self.report.add(subject, EMPTY, milliseconds(took));
        }
        if by != By::Kernel {
            let took = self.end(by, STUBBORN).await?;
            self.report.add(subject, BEYOND, milliseconds(took) - milliseconds(STOP_TIMEOUT));
        }
        Ok(())
    }

    async fn end(&mut self, by: By, script: &str) -> anyhow::Result<Duration> {
        self.trees += 1;
        match by {
            By::Broker => vanish(self.broker.stranger().await?, script).await,
            By::Manager => stop(&self.bus, &format!("tree-{}.scope", self.trees), script).await,
            By::Kernel => kill(&format!("tree-{}", self.trees), script),
        }
    }
}

/// Opens a tree and has its owner vanish.
async fn vanish(owner: Stranger, script: &str) -> anyhow::Result<Duration> {
    let more = OpenOptions { grace: Some(Duration::ZERO), ..OpenOptions::default() };
    let opened = owner.open(TOOL, &["sh", "-c", script], more).await?;
    said(&opened.session, 5).await?;
    let leader = opened.info.number("pid").map(u32::try_from);
    let Some(Ok(leader)) = leader else { anyhow::bail!("Open gave no pid") };
    let watch = watch(&Cgroup::of(leader)?)?;
    let began = Instant::now();
    owner.vanish().await?;
    Ok(watch.until_empty()? - began)
}

/// Starts a tree in a scope and has the manager stop that.
async fn stop(bus: &Connection, unit: &str, script: &str) -> anyhow::Result<Duration> {
    let timeout = format!("--property=TimeoutStopSec={}ms", STOP_TIMEOUT.as_millis());
    let name = format!("--unit={unit}");
    let mut command = std::process::Command::new("systemd-run");
    command.args([
        "--user",
        "--scope",
        "--quiet",
        "--collect",
        &timeout,
        &name,
        "sh",
        "-c",
        script,
    ]);
    let mut tree = start(command)?;
    let watch = watch(&Cgroup::of(tree.id())?)?;
    let began = Instant::now();
    bus.call_method(
        Some("org.freedesktop.systemd1"),
        "/org/freedesktop/systemd1",
        Some("org.freedesktop.systemd1.Manager"),
        "StopUnit",
        &(unit, "replace"),
    )
    .await?;
    let ended = watch.until_empty()?;
    tree.wait()?;
    Ok(ended - began)
}

/// Starts a tree in a control group and has the kernel kill all in it.
fn kill(name: &str, script: &str) -> anyhow::Result<Duration> {
    let pen = Pen::build(name)?;
    let mut tree = start(pen.command(&["sh", "-c", script]))?;
    let watch = watch(pen.cgroup())?;
    let began = Instant::now();
    pen.cgroup().kill()?;
    let ended = watch.until_empty()?;
    tree.wait()?;
    Ok(ended - began)
}

/// Starts a tree and waits until all of it is there.
fn start(mut command: std::process::Command) -> anyhow::Result<Child> {
    let mut tree = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut word = [0; 5];
    if let Some(output) = &mut tree.stdout {
        output.read_exact(&mut word)?;
    }
    ensure!(&word == b"READY", "a tree said {word:?}");
    Ok(tree)
}

/// Watches a control group that the tree is in.
fn watch(cgroup: &Cgroup) -> anyhow::Result<crate::rig::cgroup::Watch> {
    let count = cgroup.processes()?.len();
    ensure!(count >= 21, "a tree has {count} processes");
    cgroup.watch()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
