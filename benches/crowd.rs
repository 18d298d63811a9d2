//! A thousand live sessions: opened, each answering, closed; and what one more costs when ten, a hundred or a thousand
//! are there.

use std::time::{Duration, Instant};

use anyhow::ensure;
use futures_util::{StreamExt, TryStreamExt, stream};
use st2_tools::client::{Filter, Session};

use crate::{
    Plan,
    rig::{
        broker::{Broker, Declared, said},
        cost::Cost,
        report::{Bound, Measure, Metric, Report, Subject, Target},
    },
};

/// How many there are when the cost of one more is measured.
const CROWDS: [(usize, &str); 3] =
    [(10, "one more beside 10"), (100, "one more beside 100"), (1000, "one more beside 1000")];

/// One more than the crowd at its largest.
const DECLARED: Declared = Declared {
    settings: "[limits]\nlive_sessions_per_owner = 1001\nlive_sessions = 1001\n",
    tools: &[],
};

/// Opens and calls that are under way at a time: what the broker takes of one owner.
const AT_ONCE: usize = 32;

/// Says what it is told. The terminal says it before, so that the answer is the second line.
const TOOL: &[&str] = &["cat"];
const QUESTION: &[u8] = b"x\n";
const ECHOED: u64 = 3;

const ALL: &str = "1000 sessions";

const OPENED: Metric = Metric { name: "all opened", unit: "s" };
const ANSWERED: Metric = Metric { name: "each answered", unit: "s" };
const CLOSED: Metric = Metric { name: "all closed", unit: "s" };
const OPEN: Metric = Metric { name: "open", unit: "ms" };
const BROKER_CPU: Metric = Metric { name: "CPU of the broker, open to close", unit: "ms" };
const ALL_CPU: Metric = Metric { name: "CPU of all, open to close", unit: "ms" };
const MEMORY: Metric = Metric { name: "memory each", unit: "KiB" };

/// What is flat: it does not double while the crowd grows a hundredfold.
const FLAT: f64 = 2.0;

const TARGETS: [Target; 5] = [
    Target::new(OPENED, ALL, Measure::Value, Bound::AtMost(6.0)),
    Target::new(CLOSED, ALL, Measure::Value, Bound::AtMost(2.0)),
    Target::new(OPEN, CROWDS[2].1, Measure::Ratio(CROWDS[0].1), Bound::AtMost(FLAT)),
    Target::new(BROKER_CPU, CROWDS[2].1, Measure::Ratio(CROWDS[0].1), Bound::AtMost(FLAT)),
    Target::new(MEMORY, CROWDS[2].1, Measure::Ratio(CROWDS[1].1), Bound::AtMost(FLAT)),
];

/// Measures. The thousand cost seconds a round.
///
/// # Errors
/// Where anything fails: what was measured until then is not worth having.
pub async fn run(plan: Plan) -> anyhow::Result<Report> {
    let mut report = Report::new("crowd", &TARGETS);
    for _ in 0..plan.rounds {
        // A broker that had a thousand keeps memory for the next.
        let mut bench = Bench { broker: Broker::start_with(DECLARED).await?, report };
        bench.one_more().await?;
        bench.round(plan.count).await?;
        report = bench.report;
    }
    Ok(report)
}

struct Bench {
    broker: Broker,
    report: Report,
}

impl Bench {
    async fn round(&mut self, count: usize) -> anyhow::Result<()> {
        let process = self.broker.process();
        let before = process.anonymous()?;
        let mut sessions = Vec::new();
        let mut opening = Duration::ZERO;
        for (crowd, name) in CROWDS {
            let began = Instant::now();
            sessions.extend(self.open(crowd - sessions.len()).await?);
            opening += began.elapsed();
            let each = process.anonymous()?.saturating_sub(before) as f64 / 1024.0 / crowd as f64;
            self.report.add(condition(name), MEMORY, each);
            self.some_more(name, count).await?;
        }
        self.report.add(condition(ALL), OPENED, opening.as_secs_f64());
        let began = Instant::now();
        answer(&sessions).await?;
        self.report.add(condition(ALL), ANSWERED, began.elapsed().as_secs_f64());
        self.close(sessions.len()).await
    }

    async fn open(&self, count: usize) -> anyhow::Result<Vec<Session>> {
        let opens = stream::iter((0..count).map(|_| self.broker.open(TOOL)));
        opens.buffer_unordered(AT_ONCE).map_ok(|opened| opened.session).try_collect().await
    }

    /// Opens and kills one more, so often, in a row.
    async fn some_more(&mut self, name: &'static str, count: usize) -> anyhow::Result<()> {
        let subject = condition(name);
        let (cost, before) = (Cost::begin()?, self.broker.process().used()?.cpu);
        for _ in 0..count {
            let opened = self.one_more().await?;
            self.report.add(subject, OPEN, opened.as_secs_f64() * 1000.0);
        }
        let each = u32::try_from(count)?;
        let broker = (self.broker.process().used()?.cpu - before) / each;
        self.report.add(subject, BROKER_CPU, broker.as_secs_f64() * 1000.0);
        self.report.add(subject, ALL_CPU, (cost.so_far()? / each).as_secs_f64() * 1000.0);
        Ok(())
    }

    async fn one_more(&mut self) -> anyhow::Result<Duration> {
        let began = Instant::now();
        let session = self.broker.open(TOOL).await?.session;
        let opened = began.elapsed();
        session.kill().await?;
        self.broker.closed(session.id()).await?;
        Ok(opened)
    }

    async fn close(&mut self, count: usize) -> anyhow::Result<()> {
        let began = Instant::now();
        let all = Filter::default().to_dict();
        let client = self.broker.client().clone();
        // At the same time: announcements that nobody takes would hold up the reply.
        let closing = client.manager().close_sessions(&all);
        let (closed, announced) = tokio::join!(closing, self.broker.closed_so_many(count));
        announced?;
        ensure!(usize::try_from(closed?)? == count, "not all {count} sessions were closed");
        self.report.add(condition(ALL), CLOSED, began.elapsed().as_secs_f64());
        Ok(())
    }
}

fn condition(name: &'static str) -> Subject {
    Subject { name, condition: "free" }
}

/// Asks each of them, and waits for its tool's answer.
async fn answer(sessions: &[Session]) -> anyhow::Result<()> {
    stream::iter(sessions)
        .map(|session| async move {
            session.write(QUESTION).await?;
            said(session, ECHOED + 1).await
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}
