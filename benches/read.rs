//! `Read` of 64 KiB after 64 KiB of retained output, beside a call that merely replies with as much.

use std::{thread, time::Instant};

use anyhow::{Context, ensure};
use serde_bytes::ByteBuf;
use st2_tools::client::{OpenOptions, ReadOptions, Session};
use tokio::sync::oneshot;
use zbus::{Connection, interface};

use crate::{
    Plan,
    rig::{
        broker::{Broker, said},
        cost::Cost,
        placement::{Placement, place},
        report::{Bound, Measure, Metric, Report, Subject, Target},
    },
};

/// What is retained.
const RING: u64 = 4 << 20;

/// What one call gives.
const PIECE: u32 = 64 << 10;

/// What the tool prints.
const SAYS: u64 = 6 << 20;

/// Prints more than is retained, then stays.
const TOOL: &[&str] = &["sh", "-c", "stty raw; head -c 6291456 /dev/zero; exec sleep 1000"];

const BROKER: &str = "st2-tools, Read";
const LIMIT: &str = "a bus call that replies as much";

const RATE: Metric = Metric { name: "64 KiB a call", unit: "MB/s" };
const CPU: Metric = Metric { name: "CPU of all", unit: "ms/MB" };

const TARGETS: [Target; 1] = [Target::new(RATE, BROKER, Measure::Value, Bound::AtLeast(150.0))];

/// Measures.
///
/// # Errors
/// Where anything fails: what was measured until then is not worth having.
pub async fn run(plan: Plan) -> anyhow::Result<Report> {
    let broker = Broker::start().await?;
    let more = OpenOptions { ring_bytes: Some(RING), ..OpenOptions::default() };
    let session = broker.open_with(TOOL, more).await?.session;
    said(&session, SAYS).await?;
    let begin = session.read(0, 1, &ReadOptions::default()).await?.begin;
    let bus = Connection::session().await?;
    let replier = Replier::start().await?;
    let mut report = Report::new("read", &TARGETS);
    for _ in 0..plan.rounds {
        for placement in Placement::BOTH {
            place(placement)?;
            let began = (Instant::now(), Cost::begin()?);
            let count = read_all(&session, begin).await?;
            add(
                &mut report,
                Subject { name: BROKER, condition: placement.as_str() },
                began,
                count,
            )?;
            let began = (Instant::now(), Cost::begin()?);
            let count = replier.call(&bus).await?;
            add(&mut report, Subject { name: LIMIT, condition: placement.as_str() }, began, count)?;
        }
    }
    place(Placement::Free)?;
    Ok(report)
}

async fn read_all(session: &Session, begin: u64) -> anyhow::Result<usize> {
    let (mut cursor, mut count) = (begin, 0);
    while cursor < SAYS {
        let chunk = session.read(cursor, PIECE, &ReadOptions::default()).await?;
        ensure!(!chunk.data.is_empty(), "nothing to read at {cursor}");
        count += chunk.data.len();
        cursor = chunk.next;
    }
    Ok(count)
}

fn add(
    report: &mut Report,
    subject: Subject,
    (began, cost): (Instant, Cost),
    count: usize,
) -> anyhow::Result<()> {
    let (seconds, megabytes) = (began.elapsed().as_secs_f64(), count as f64 / 1e6);
    report.add(subject, RATE, megabytes / seconds);
    report.add(subject, CPU, cost.so_far()?.as_secs_f64() * 1000.0 / megabytes);
    Ok(())
}

/// A service that does nothing but reply, on a thread of its own, which lives as long as this.
struct Replier {
    name: String,
    _end: oneshot::Sender<()>,
}

struct Reply;

#[interface(name = "org.st2.Bench")]
impl Reply {
    fn piece(&self) -> ByteBuf {
        ByteBuf::from(vec![0; PIECE as usize])
    }
}

impl Replier {
    async fn start() -> anyhow::Result<Self> {
        let (say, name) = oneshot::channel();
        let (end, ended) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::spawn(move || {
            runtime.block_on(async move {
                let bus = Connection::session().await?;
                bus.object_server().at("/bench", Reply).await?;
                let name = bus.unique_name().map(ToString::to_string);
                let _ = say.send(name);
                let _ = ended.await;
                anyhow::Ok(())
            })
        });
        Ok(Self { name: name.await?.context("the bus gave no name")?, _end: end })
    }

    /// Calls it as often as the retained output has pieces; gives the bytes.
    async fn call(&self, bus: &Connection) -> anyhow::Result<usize> {
        let mut count = 0;
        while count < usize::try_from(RING)? {
            let (name, interface) = (Some(self.name.as_str()), Some("org.st2.Bench"));
            let reply = bus.call_method(name, "/bench", interface, "Piece", &()).await?;
            count += reply.body().deserialize::<ByteBuf>()?.len();
        }
        Ok(count)
    }
}
