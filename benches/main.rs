//! What sessions cost, always beside peers measured in the same run. Run by `benches/run`.
//!
//! Each benchmark is one file: it takes a [`Plan`], measures in rounds that interleave the broker with its peers, and
//! gives a [`Report`]. What they share is in [`rig`]. Nothing here passes or fails: a machine that others use decides
//! about absolute times, so only ratios within one run mean something.

mod bulk;
mod confinement;
mod crowd;
mod echo;
mod fanout;
mod idle;
mod memory;
mod open;
mod read;
mod rig;
mod unattended;
mod vanish;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::{Parser, ValueEnum};

use rig::{machine::Machine, report::Report};

/// Measures st2-tools beside its peers, in a bed with a systemd user manager.
#[derive(Debug, Parser)]
struct Arguments {
    /// Which benchmarks; all of them where none is named.
    benchmarks: Vec<Benchmark>,
    /// How often each block of measurements is taken, the blocks of all subjects in turn.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Measurements in a row in one block.
    #[arg(long, default_value_t = 20)]
    count: usize,
    /// Where to write what was measured, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// What `cargo bench` adds.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Benchmark {
    /// A tool opened, confined and scoped: until it runs, speaks, has ended.
    Open,
    /// What confinement adds to an open, in each tier.
    Confinement,
    /// An owner that vanishes, until the session's control group is empty.
    Vanish,
    /// A key, until it comes back through an attached stream.
    Echo,
    /// Much output to one stream: text, and zeros in raw mode.
    Bulk,
    /// Much output that nobody is attached for.
    Unattended,
    /// Much output to four streams.
    Fanout,
    /// Memory and threads, with and without sessions.
    Memory,
    /// A thousand live sessions.
    Crowd,
    /// Sessions in which nothing happens.
    Idle,
    /// `Read` over the bus.
    Read,
}

impl Benchmark {
    async fn run(self, plan: Plan) -> anyhow::Result<Report> {
        match self {
            Self::Open => open::run(plan).await,
            Self::Confinement => confinement::run(plan).await,
            Self::Vanish => vanish::run(plan).await,
            Self::Echo => echo::run(plan).await,
            Self::Bulk => bulk::run(plan).await,
            Self::Unattended => unattended::run(plan).await,
            Self::Fanout => fanout::run(plan).await,
            Self::Memory => memory::run(plan).await,
            Self::Crowd => crowd::run(plan).await,
            Self::Idle => idle::run(plan).await,
            Self::Read => read::run(plan).await,
        }
    }
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
struct Plan {
    rounds: usize,
    count: usize,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let plan = Plan { rounds: arguments.rounds.max(1), count: arguments.count.max(1) };
    let benchmarks = match arguments.benchmarks.as_slice() {
        [] => Benchmark::value_variants(),
        named => named,
    };
    let machine = Machine::look();
    println!("{machine}");
    // One thread: what the client of the broker costs is in its figures, so it wakes no threads of its own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut reports = Vec::new();
    for benchmark in benchmarks {
        let report = runtime.block_on(benchmark.run(plan))?;
        println!("\n{report}");
        reports.push(report.to_json());
    }
    let Some(path) = &arguments.json else { return Ok(()) };
    let all = serde_json::json!({ "machine": machine, "plan": {
        "rounds": plan.rounds, "count": plan.count,
    }, "benchmarks": reports });
    std::fs::write(path, format!("{all:#}\n"))
        .with_context(|| format!("cannot write {}", path.display()))
}
