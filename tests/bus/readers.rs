//! Readers with cursors of their own over one session, through the client library.

use std::time::Duration;

use futures_util::future::join_all;
use st2_tools::client::{Chunk, Client, ClientError, OpenOptions, ReadOptions, Refusal, Session};
use zbus::Connection;

use crate::support::{Broker, soon, workspace};

/// Opens a script, in a workspace that is left to the session.
pub async fn open(connection: Connection, script: &str, ring_bytes: u64) -> Session {
    let client = Client::over(connection).await.unwrap();
    let options = OpenOptions {
        argv: ["sh", "-c", script].map(Into::into).to_vec(),
        workspace: Some(workspace().keep().to_str().unwrap().to_owned()),
        ring_bytes: Some(ring_bytes),
        ..OpenOptions::default()
    };
    client.open("command", &options).await.unwrap().session
}

/// Lines that a reader can check at any offset.
fn numbers(last: u32) -> Vec<u8> {
    (1..=last).flat_map(|number| format!("{number}\r\n").into_bytes()).collect()
}

/// What a reader saw.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    bytes: u64,
    missed: u64,
    gaps: usize,
    next: u64,
}

impl Seen {
    /// Notes a piece, which is what the tool wrote there.
    fn note(&mut self, chunk: &Chunk, all: &[u8]) {
        let [begin, next] = [chunk.begin, chunk.next].map(|at| usize::try_from(at).unwrap());
        assert!(chunk.data == all[begin..next], "at {begin}");
        self.bytes += chunk.data.len() as u64;
        self.missed += chunk.begin - self.next;
        self.gaps += usize::from(chunk.begin > self.next);
        self.next = chunk.next;
    }
}

/// Reads to the end in pieces of a size; only each time that another has read so much more, where there is another.
async fn read_all(
    session: Session,
    max: u32,
    all: &[u8],
    mut pace: tokio::sync::watch::Receiver<u64>,
    stride: u64,
) -> Seen {
    let wait = ReadOptions { wait: Some(Duration::from_secs(10)), ..Default::default() };
    let mut seen = Seen::default();
    loop {
        let chunk = soon("output", session.read(seen.next, max, &wait)).await.unwrap();
        seen.note(&chunk, all);
        if chunk.eof {
            return seen;
        }
        let after = *pace.borrow() + stride;
        // The pace ends with the one who sets it.
        let _ = pace.wait_for(|read| *read >= after).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_every_speed_have_each_byte_or_its_count() {
    const LAST: u32 = 300_000;
    let broker = Broker::private().await;
    let script = format!("stty -echo; printf ready; read -r _; seq {LAST}");
    let session = open(broker.bus.connect().await, &script, 64 << 10).await;
    let all = [b"ready", &numbers(LAST)[..]].concat();
    let (pace, paced) = tokio::sync::watch::channel(0);
    let reader = |max, stride| {
        let (broker, id, paced, all) = (&broker, session.id().clone(), paced.clone(), &all);
        async move {
            let client = Client::over(broker.bus.connect().await).await.unwrap();
            read_all(client.session(id).await.unwrap(), max, all, paced, stride).await
        }
    };
    let readers =
        [reader(256 << 10, 0), reader(1 << 10, 0), reader(4 << 10, 100_000), reader(7, 500_000)];
    let leader = async {
        let wait = ReadOptions { wait: Some(Duration::from_secs(10)), ..Default::default() };
        while session.read(0, 9, &wait).await.unwrap().next < 5 {}
        session.write(b"\n").await.unwrap();
        let mut seen = Seen::default();
        loop {
            let chunk = soon("output", session.read(seen.next, 16 << 10, &wait)).await.unwrap();
            seen.note(&chunk, &all);
            pace.send_replace(seen.bytes + seen.missed);
            if chunk.eof {
                break;
            }
        }
        // The slow ones go on by themselves.
        drop(pace);
        seen
    };
    let (leader, seen) = tokio::join!(leader, join_all(readers));
    let outcome = session.ended().await.unwrap();
    assert_eq!(outcome.bytes_out, all.len() as u64);
    for seen in seen.iter().chain([&leader]) {
        assert_eq!(seen.bytes + seen.missed, outcome.bytes_out, "{seen:?}");
        assert!(seen.missed <= outcome.bytes_dropped, "{seen:?}");
    }
    assert!(
        seen[3].gaps > 0 && seen[3].missed > seen[3].bytes,
        "too slow for the ring: {:?}",
        seen[3]
    );

    // Who comes after the end has what is retained, and may read it twice.
    let late = Client::over(broker.bus.connect().await).await.unwrap();
    let late = late.session(session.id().clone()).await.unwrap();
    let (_, paced) = tokio::sync::watch::channel(0);
    for _ in 0..2 {
        let seen = read_all(late.clone(), 10_000, &all, paced.clone(), 0).await;
        let wanted = (outcome.bytes_dropped, outcome.bytes_out - outcome.bytes_dropped, 1);
        assert_eq!((seen.missed, seen.bytes, seen.gaps), wanted);
    }
    let beyond = late.read(outcome.bytes_out + 1, 1, &ReadOptions::default()).await;
    assert_eq!(beyond.as_ref().map_err(ClientError::refusal), Err(Some(Refusal::BadCursor)));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_who_wait_wake_with_output_and_with_the_end() {
    let broker = Broker::private().await;
    let script = "stty -echo; printf ready; read -r _; printf more; read -r _";
    let session = &open(broker.bus.connect().await, script, 4096).await;
    let wait = ReadOptions { wait: Some(Duration::from_secs(60)), ..Default::default() };
    let mut ready = 0;
    while ready < 5 {
        ready = soon("ready", session.read(ready, 9, &wait)).await.unwrap().next;
    }
    let read = |cursor| async move { session.read(cursor, 9, &wait).await.unwrap() };
    let waiting = |cursor| join_all((0..8).map(|_| read(cursor)));
    // Polled first, all of them wait before there is anything to be read.
    let typed = async { session.write(b"\n").await.unwrap() };
    let (woken, _) = soon("output", async { tokio::join!(waiting(5), typed) }).await;
    for chunk in woken {
        assert!(b"more".starts_with(&chunk.data) && !chunk.data.is_empty() && !chunk.eof);
    }
    let mut cursor = 5;
    while cursor < 9 {
        cursor = soon("more", session.read(cursor, 9, &wait)).await.unwrap().next;
    }
    let typed = async { session.write(b"\n").await.unwrap() };
    let (woken, _) = soon("the end", async { tokio::join!(waiting(9), typed) }).await;
    for chunk in woken {
        assert_eq!(chunk, Chunk { data: Vec::new(), begin: 9, next: 9, eof: true });
    }
    let late = soon("at once", session.read(9, 9, &wait)).await.unwrap();
    assert!(late.eof && late.data.is_empty());
}
