//! Opening a tool: until `Open` answers, until the tool's first byte is read, until its end is announced.
//!
//! The broker's figures are of its service, over the bus, as a client that is connected already has them. The peers'
//! are of commands: there is no other way to have a scope of them.

use std::time::{Duration, Instant};

use st2_tools::client::ReadOptions;

use crate::{
    Plan,
    rig::{
        broker::Broker,
        cost::Cost,
        peer::Peer,
        placement::{Placement, place},
        report::{Bound, Measure, Metric, Report, Subject, Target},
    },
};

/// Ends at once.
const SILENT: &[&str] = &["true"];

/// Says something, then ends.
const SPEAKING: &[&str] = &["echo", "ready"];

const BROKER: &str = "st2-tools, confined and scoped";
const SCOPE: Peer =
    Peer { name: "systemd-run --scope", command: &["systemd-run", "--user", "--scope", "--quiet"] };
const SERVICE: Peer =
    Peer { name: "systemd-run --pty", command: &["systemd-run", "--user", "--pty", "--quiet"] };
const RAW: Peer = Peer { name: "fork and exec on a pty", command: &[] };

const REPLY: Metric = Metric { name: "reply", unit: "ms" };
const FIRST_BYTE: Metric = Metric { name: "first byte", unit: "ms" };
const RESTED: Metric = Metric { name: "first byte after a rest", unit: "ms" };
const EXIT: Metric = Metric { name: "exit", unit: "ms" };
const CPU: Metric = Metric { name: "CPU of all", unit: "ms" };

const TARGETS: [Target; 4] = [
    Target::new(EXIT, BROKER, Measure::Ratio(SCOPE.name), Bound::AtMost(1.0)),
    Target::new(FIRST_BYTE, BROKER, Measure::Ratio(SCOPE.name), Bound::AtMost(0.6)),
    Target::new(FIRST_BYTE, BROKER, Measure::Spread, Bound::AtMost(3.0)),
    Target::new(RESTED, BROKER, Measure::Ratio(SCOPE.name), Bound::AtMost(1.0)),
];

/// So long the machine has moved no process to another control group before a tool is opened after a rest, as is usual
/// where people open tools: the kernel then waits for an RCU grace period before it moves the next (unless cgroup2 is
/// mounted with `favordynmods`), and in a row it does not.
const REST: Duration = Duration::from_millis(100);

/// Who opens the tool.
#[derive(Debug, Clone, Copy)]
enum Opener {
    Broker,
    Peer(Peer),
}

const OPENERS: [Opener; 4] =
    [Opener::Broker, Opener::Peer(SCOPE), Opener::Peer(SERVICE), Opener::Peer(RAW)];

/// Measures.
///
/// # Errors
/// Where anything fails: what was measured until then is not worth having.
pub async fn run(plan: Plan) -> anyhow::Result<Report> {
    let broker = Broker::start().await?;
    let mut bench = Bench { broker, report: Report::new("open", &[]) };
    // What is first touched, read or linked costs once.
    for opener in OPENERS {
        bench.block(opener, Placement::Free, 3).await?;
    }
    bench.report = Report::new("open", &TARGETS);
    for round in 0..plan.rounds {
        for placement in Placement::BOTH {
            place(placement)?;
            for turn in 0..OPENERS.len() {
                let opener = OPENERS[(round + turn) % OPENERS.len()];
                bench.block(opener, placement, plan.count).await?;
            }
        }
        place(Placement::Free)?;
        for turn in 0..OPENERS.len() {
            bench.rested(OPENERS[(round + turn) % OPENERS.len()], plan.count).await?;
        }
    }
    Ok(bench.report)
}

struct Bench {
    broker: Broker,
    report: Report,
}

impl Bench {
    /// Opens so many tools of each kind in a row.
    async fn block(
        &mut self,
        opener: Opener,
        placement: Placement,
        count: usize,
    ) -> anyhow::Result<()> {
        let subject = Subject { name: opener.name(), condition: placement.as_str() };
        let cost = Cost::begin()?;
        for _ in 0..count {
            self.silent(opener, subject).await?;
        }
        let each = cost.so_far()? / u32::try_from(count)?;
        self.report.add(subject, CPU, milliseconds(each));
        for _ in 0..count {
            self.speaking(opener, subject, FIRST_BYTE).await?;
        }
        Ok(())
    }

    async fn silent(&mut self, opener: Opener, subject: Subject) -> anyhow::Result<()> {
        let began = Instant::now();
        let ended = match opener {
            Opener::Broker => {
                let opened = self.broker.open(SILENT).await?;
                self.report.add(subject, REPLY, milliseconds(began.elapsed()));
                self.broker.closed(opened.session.id()).await?;
                Instant::now()
            }
            Opener::Peer(peer) => peer.until_exit(SILENT)?,
        };
        self.report.add(subject, EXIT, milliseconds(ended - began));
        Ok(())
    }

    /// Opens so many tools, each after a rest.
    async fn rested(&mut self, opener: Opener, count: usize) -> anyhow::Result<()> {
        let subject = Subject { name: opener.name(), condition: Placement::Free.as_str() };
        for _ in 0..count {
            tokio::time::sleep(REST).await;
            self.speaking(opener, subject, RESTED).await?;
        }
        Ok(())
    }

    async fn speaking(
        &mut self,
        opener: Opener,
        subject: Subject,
        metric: Metric,
    ) -> anyhow::Result<()> {
        let began = Instant::now();
        let spoke = match opener {
            Opener::Broker => {
                let session = self.broker.open(SPEAKING).await?.session;
                let wait =
                    ReadOptions { wait: Some(Duration::from_secs(10)), ..ReadOptions::default() };
                let chunk = session.read(0, 1, &wait).await?;
                let spoke = Instant::now();
                anyhow::ensure!(!chunk.data.is_empty(), "the tool said nothing");
                self.broker.closed(session.id()).await?;
                Some(spoke)
            }
            Opener::Peer(peer) => peer.until_first_byte(SPEAKING)?,
        };
        if let Some(spoke) = spoke {
            self.report.add(subject, metric, milliseconds(spoke - began));
        }
        Ok(())
    }
}

impl Opener {
    fn name(self) -> &'static str {
        match self {
            Self::Broker => BROKER,
            Self::Peer(peer) => peer.name,
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
