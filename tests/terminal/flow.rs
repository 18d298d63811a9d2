//! Bytes through reads, streams and input: exact, in order, and never held up by a reader.

use std::{
    io::{ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

use proptest::{
    prelude::any,
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use st2_tools::{
    host::pty::Size,
    terminal::{Framing, Mode, ReadError, Replay, Terminal, WriteError},
};

use crate::{
    judge::Judge,
    tool::{PATIENCE, Tool, client, soon},
};

/// Writes as many lines as it is told to, and so is never ahead of its reader by more than a batch. Its lines end as
/// those of other tools do: with a carriage return too.
const COUNTER: &str = "stty opost onlcr; while read -r from to; do seq $from $to; done";
/// Lines of a batch: 4 MB, below what a stream may fall behind and what a ring retains.
const BATCH: usize = 450_000;
/// 73 MB in all.
const BATCHES: usize = 18;

fn request(batch: usize) -> String {
    format!("{} {}\n", 1_000_000 + batch * BATCH, 1_000_000 + (batch + 1) * BATCH - 1)
}

fn lines(batch: usize) -> Vec<u8> {
    let first = 1_000_000 + batch * BATCH;
    let mut text = Vec::new();
    for number in first..first + BATCH {
        write!(text, "{number}\r\n").unwrap();
    }
    text
}

/// Endless sizes for reads: mostly small ones.
fn sizes() -> impl Iterator<Item = usize> {
    let mut runner = TestRunner::default();
    std::iter::from_fn(move || {
        let bits = any::<u32>().new_tree(&mut runner).unwrap().current();
        Some(1 + (bits as usize >> (bits % 16 + 14)))
    })
}

fn read_batches(mut socket: UnixStream) {
    for batch in 0..BATCHES {
        let expected = lines(batch);
        socket.write_all(request(batch).as_bytes()).unwrap();
        let mut got = vec![0; expected.len()];
        socket.read_exact(&mut got).unwrap();
        assert!(got == expected, "batch {batch} differs");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_output_reaches_a_stream_byte_for_byte() {
    let tool = Tool::start(COUNTER, Terminal::MIN_RING);
    let stream = tool.terminal.attach("", Mode::Control, Framing::Raw(Replay::Retained)).unwrap();
    client(move || read_batches(stream.socket)).await;
    let stats = tool.terminal.stats();
    let expected = (BATCHES * BATCH * 9) as u64;
    assert_eq!(stats.bytes_out, expected);
    assert_eq!(stats.bytes_dropped, expected - Terminal::MIN_RING as u64);
    let sent: u64 = (0..BATCHES).map(|batch| request(batch).len() as u64).sum();
    assert_eq!(stats.bytes_in, sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_output_reaches_reads_of_any_size_byte_for_byte() {
    let tool = Tool::start(COUNTER, Terminal::MAX_RING);
    let (mut sizes, mut cursor) = (sizes(), 0);
    for batch in 0..BATCHES {
        let expected = lines(batch);
        tool.terminal.write(request(batch).as_bytes()).unwrap();
        let mut got = Vec::with_capacity(expected.len());
        while got.len() < expected.len() {
            let max = sizes.next().unwrap();
            let chunk = soon(tool.terminal.read_wait(cursor, max, PATIENCE)).await.unwrap();
            assert_eq!(chunk.begin, cursor, "nothing is dropped");
            assert!(chunk.bytes.len() <= max && !chunk.eof);
            cursor = chunk.next;
            got.extend(chunk.bytes);
        }
        assert!(got == expected, "batch {batch} differs");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_stream_is_disconnected_and_nobody_else_notices() {
    let tool = Tool::start(COUNTER, Terminal::MIN_RING);
    let mut slow =
        tool.terminal.attach("", Mode::Observe, Framing::Raw(Replay::Retained)).unwrap().socket;
    let quick =
        tool.terminal.attach("", Mode::Control, Framing::Raw(Replay::Retained)).unwrap().socket;
    tool.attached(2).await;
    let quick = tokio::task::spawn_blocking(move || read_batches(quick));
    soon(tool.terminal.attached().wait_for(|count| *count < 2)).await.unwrap();
    let got = client(move || {
        let mut got = Vec::new();
        slow.read_to_end(&mut got).unwrap();
        got
    })
    .await;
    let first: Vec<u8> = (0..3).flat_map(lines).collect();
    assert!(got.len() < 1 << 20, "only what its socket held: {}", got.len());
    assert!(first.starts_with(&got), "without a gap up to its end");
    soon(quick).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_does_not_read_holds_up_nobody() {
    let mut tool = Tool::start("printf ready; exec sleep 1000", Terminal::MIN_RING);
    tool.first(5).await;
    let block = [b'x'; 64 << 10];
    let mut accepted = 0;
    let full = loop {
        match tool.terminal.write(&block) {
            Ok(total) => accepted = total,
            Err(full) => break full,
        }
        assert!(accepted < 2 << 20, "the queue is bounded");
        tokio::task::yield_now().await;
    };
    assert!(matches!(full, WriteError::InputFull { limit: 0x10_0000, .. }), "{full:?}");
    assert!(accepted >= (1 << 20) - (64 << 10));
    assert_eq!(tool.terminal.stats().bytes_in, accepted);

    let stream = tool.terminal.attach("", Mode::Control, Framing::Raw(Replay::Retained)).unwrap();
    let mut socket = stream.socket;
    socket.set_nonblocking(true).unwrap();
    let mut sent = 0;
    let refused = loop {
        match socket.write(&block) {
            Ok(count) => sent += count,
            Err(error) => break error.kind(),
        }
        assert!(sent < 4 << 20, "the stream is not read while the queue is full");
    };
    assert_eq!(refused, ErrorKind::WouldBlock);
    drop(socket);
    tool.attached(0).await;
    tool.kill();
    tool.finished().await;
    assert_eq!(tool.terminal.write(b"x"), Err(WriteError::Closed));
}

#[tokio::test(flavor = "multi_thread")]
async fn input_of_many_writers_arrives_whole_and_in_order() {
    let tool = Tool::start("head -c 3000", Terminal::MAX_RING);
    let mut streams: Vec<_> = (0..2)
        .map(|_| {
            tool.terminal.attach("", Mode::Control, Framing::Raw(Replay::Nothing)).unwrap().socket
        })
        .collect();
    for _ in 0..1000 {
        tool.terminal.write(b"a").unwrap();
    }
    streams[0].write_all(&[b'b'; 1000]).unwrap();
    streams[1].write_all(&[b'c'; 1000]).unwrap();
    let got = soon(tool.first(3000)).await;
    for letter in *b"abc" {
        assert_eq!(got.iter().filter(|byte| **byte == letter).count(), 1000);
    }
    assert!(got.starts_with(&[b'a'; 1000]), "accepted before the others were sent");
}

#[tokio::test]
async fn a_flood_leaves_other_sessions_their_turn() {
    let flood = Tool::start("exec yes", Terminal::MIN_RING);
    let echo = Tool::start("exec cat", Terminal::MIN_RING);
    flood.first(1).await;
    for round in 1..=100 {
        echo.terminal.write(b"x").unwrap();
        soon(echo.first(round)).await;
    }
    let before = flood.terminal.stats().bytes_out;
    soon(flood.terminal.read_wait(before, 1, PATIENCE)).await.unwrap();
}

/// How many numbers [`PAINTER`] paints: 1.9 MB, none of which scrolls out of sight undrawn.
const PAINTED: usize = 70_000;
/// Paints coloured numbers all over the screen.
const PAINTER: &str = "printf ready; read -r _; exec awk 'BEGIN { for (n = 0; n < 70000; n++) printf \
    \"\\033[%d;%dH\\033[3%d;4%dm%06d\", n % 24 + 1, n * 7 % 75 + 1, n % 8, (n + 3) % 8, n }'";

fn painted() -> Vec<u8> {
    let number = |n: usize| {
        let (row, column) = (n % 24 + 1, n * 7 % 75 + 1);
        format!("\x1b[{row};{column}H\x1b[3{};4{}m{n:06}", n % 8, (n + 3) % 8)
    };
    [b"ready".to_vec(), (0..PAINTED).flat_map(|n| number(n).into_bytes()).collect()].concat()
}

#[tokio::test]
async fn a_flood_that_must_be_drawn_is_drawn_to_its_end_and_leaves_others_their_turn() {
    for ring_bytes in [Terminal::MIN_RING, Terminal::MAX_RING] {
        let mut flood = Tool::start(PAINTER, ring_bytes);
        let echo = Tool::start("exec cat", Terminal::MIN_RING);
        flood.terminal.resize(Size::new(80, 24)).unwrap();
        flood.first(5).await;
        flood.terminal.write(b"\n").unwrap();
        for round in 1..=50 {
            echo.terminal.write(b"x").unwrap();
            soon(echo.first(round)).await;
        }
        flood.finished().await;
        let painted = painted();
        assert_eq!(flood.terminal.stats().bytes_out, painted.len() as u64);
        let mut wanted = Judge::new(80, 24, true);
        wanted.feed(&painted);
        let view = soon(flood.terminal.screen()).await.unwrap();
        assert!(view.rows.iter().any(|row| row.contains("069999")), "{:?}", view.rows);
        let mut got = Judge::new(80, 24, true);
        got.feed(&flood.terminal.baseline().unwrap());
        assert_eq!(got.verdict(), wanted.verdict());
    }
}

#[tokio::test]
async fn a_long_poll_ends_with_output_with_the_end_or_in_time() {
    let mut tool = Tool::start("read -r _; printf out; read -r _", Terminal::MIN_RING);
    let nothing = tool.terminal.read_wait(0, 9, Duration::from_millis(20)).await.unwrap();
    assert_eq!((nothing.bytes.len(), nothing.next, nothing.eof), (0, 0, false));
    tool.terminal.write(b"\n").unwrap();
    let mut got = Vec::new();
    while got.len() < 3 {
        let chunk = soon(tool.terminal.read_wait(got.len() as u64, 9, PATIENCE)).await.unwrap();
        got.extend(chunk.bytes);
    }
    assert_eq!(got, b"out");
    let beyond = tool.terminal.read_wait(4, 9, PATIENCE).await;
    assert_eq!(beyond, Err(ReadError::BadCursor { cursor: 4, end: 3 }), "at once");
    let terminal = tool.terminal.clone();
    let waiting = tokio::spawn(async move { terminal.read_wait(3, 9, PATIENCE).await });
    tool.terminal.write(b"\n").unwrap();
    tool.finished().await;
    let last = soon(waiting).await.unwrap().unwrap();
    assert_eq!((last.bytes.len(), last.eof), (0, true));
}
