//! Back-pressure: whatever a client or a tool does not read holds up nobody else, and no memory of the broker's grows
//! beyond what is documented.

use std::{
    fs,
    io::{ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use st2_tools::client::{
    AttachOptions, Attached, ClientError, Ending, Framing, Mode, ReadOptions, Refusal, Session,
    Start,
};
use tokio::task::spawn_blocking;

use super::readers::open;
use crate::support::{Broker, soon};

const MIB: u64 = 1 << 20;
/// How far a stream may fall behind.
const LAG: u64 = 8 * MIB;
/// What else may come with much traffic: messages, stacks of threads, what the allocator keeps.
const SLACK: u64 = 6 * MIB;
/// Longest that what is to be prompt may take here, where several tests run at once.
const PROMPT: Duration = Duration::from_secs(5);

/// The most memory that a broker has had resident, bytes.
fn peak(broker: &Broker) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", broker.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Waits until the output holds this, from its first byte on.
async fn begins(session: &Session, text: &[u8]) {
    let wait = ReadOptions { wait: Some(Duration::from_secs(10)), ..Default::default() };
    let mut shown = Vec::new();
    while shown.len() < text.len() {
        let chunk = soon("output", session.read(shown.len() as u64, 99, &wait)).await.unwrap();
        shown.extend(chunk.data);
    }
    assert!(shown.starts_with(text), "{:?}", String::from_utf8_lossy(&shown));
}

async fn attach(session: &Session, mode: Mode, framing: Framing) -> UnixStream {
    // A framed one begins with the screen.
    let start = if framing == Framing::Raw { Start::Now } else { Start::Screen };
    let options = AttachOptions { mode, framing, start, ..AttachOptions::default() };
    let socket = session.attach(&options).await.map(Attached::into_inner).unwrap();
    let socket = socket.into_std().unwrap();
    socket.set_nonblocking(false).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    socket
}

/// Reads to the end; gives how many bytes there were, which must be `y` over and over.
fn count(socket: UnixStream) -> u64 {
    count_and(socket, |_| ())
}

/// As [`count`]; tells each time how many there were so far.
fn count_and(mut socket: UnixStream, mut told: impl FnMut(u64)) -> u64 {
    let (mut total, mut piece) = (0_u64, [0; 64 << 10]);
    let expected = b"y\r\n".repeat(piece.len() / 3 + 2);
    loop {
        let count = socket.read(&mut piece).unwrap();
        assert!(piece[..count] == expected[(total % 3) as usize..][..count]);
        total += count as u64;
        told(total);
        if count == 0 {
            return total;
        }
    }
}

/// The types of frames and all payloads of DATA, to the end.
fn frames(mut socket: UnixStream) -> Vec<(u8, usize)> {
    let mut frames: Vec<(u8, usize)> = Vec::new();
    let mut header = [0; 5];
    while socket.read_exact(&mut header).is_ok() {
        let length = u32::from_be_bytes(header[1..].try_into().unwrap()) as usize;
        socket.read_exact(&mut vec![0; length]).unwrap();
        match frames.last_mut() {
            Some((0, sum)) if header[0] == 0 => *sum += length,
            _ => frames.push((header[0], length)),
        }
    }
    frames
}

/// A checksum as cksum(1) prints it.
fn checksum(bytes: &[u8]) -> String {
    let mut child =
        Command::new("cksum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
}

/// Bytes without a pattern that a lost or repeated piece could hide in.
fn noise(length: u64) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_stream_is_told_and_costs_the_others_nothing_and_the_broker_its_bound() {
    let broker = Broker::private().await;
    let script = "stty -echo; printf ready; read -r _; yes | head -c 20M";
    let session = open(broker.bus.connect().await, script, 4 * MIB).await;
    begins(&session, b"ready").await;
    let mut framed = attach(&session, Mode::Observe, Framing::Pty).await;
    framed.write_all(&[6, 0, 0, 0, 1, 0]).unwrap();
    let raw = attach(&session, Mode::Observe, Framing::Raw).await;
    let quick = attach(&session, Mode::Control, Framing::Raw).await;
    let before = peak(&broker);
    session.write(b"\n").await.unwrap();
    // A client that is cut off has a minute for what it is still told: it looks once it must have been cut off.
    let (cut, is_cut) = std::sync::mpsc::channel();
    let frames = spawn_blocking(move || is_cut.recv().map(|()| frames(framed)).unwrap());
    let told = move |total| {
        if total > LAG + 2 * MIB {
            let _no_longer_waited_for = cut.send(());
        }
    };
    let quick = spawn_blocking(move || count_and(quick, told)).await.unwrap();
    let outcome = soon("the end", session.ended()).await.unwrap();
    assert_eq!((quick, outcome.bytes_out), (30 * MIB, 30 * MIB + 5));
    let grown = peak(&broker) - before;
    assert!(grown < 4 * MIB + LAG + SLACK, "{grown} bytes");
    let raw = spawn_blocking(move || count(raw)).await.unwrap();
    assert!(raw < MIB, "what its socket held: {raw}");
    let frames = frames.await.unwrap();
    let [(10, 4), (5, _), (0, data), (12, 1)] = frames[..] else { panic!("{frames:?}") };
    assert!(data < 1 << 20, "what its socket held: {data}");
    let retained = session.read(outcome.bytes_out - 3, 9, &ReadOptions::default()).await.unwrap();
    assert_eq!((&*retained.data, outcome.bytes_dropped), (&b"y\r\n"[..], 26 * MIB + 5));
}

/// A flood that nobody reads, for a time; everything adds up, and another session answers meanwhile.
async fn flood(seconds: u32) {
    let broker = Broker::private().await;
    let echo =
        open(broker.bus.connect().await, "stty raw -echo; printf ready; exec cat", 4096).await;
    begins(&echo, b"ready").await;
    let before = peak(&broker);
    let script = format!("timeout {seconds} yes");
    let session = open(broker.bus.connect().await, &script, MIB).await;
    let (mut rounds, mut slowest) = (0, Duration::ZERO);
    while session.proxy().phase().await.unwrap() != "closed" {
        let asked = Instant::now();
        echo.write(b"x").await.unwrap();
        let wait = ReadOptions { wait: Some(Duration::from_secs(10)), ..Default::default() };
        let answer = soon("an answer", echo.read(5 + rounds, 1, &wait)).await.unwrap();
        assert_eq!(&answer.data, b"x");
        slowest = slowest.max(asked.elapsed());
        rounds += 1;
    }
    let outcome = soon("the end", session.ended()).await.unwrap();
    assert_eq!(outcome.ending, Ending::Exited(124), "timeout(1) ended it");
    let (mut cursor, mut retained) = (0, 0);
    loop {
        let chunk = session.read(cursor, 256 << 10, &ReadOptions::default()).await.unwrap();
        let is_right =
            |(index, byte): (usize, &u8)| *byte == b"y\r\n"[(chunk.begin as usize + index) % 3];
        assert!(chunk.data.iter().enumerate().all(is_right), "at {}", chunk.begin);
        retained += chunk.data.len() as u64;
        cursor = chunk.next;
        if chunk.eof {
            break;
        }
    }
    assert_eq!(outcome.bytes_dropped + retained, outcome.bytes_out);
    assert_eq!(retained, MIB);
    let grown = peak(&broker) - before;
    println!(
        "{} bytes in {seconds} s, {rounds} answers, the slowest {slowest:?}, {grown} bytes grown",
        outcome.bytes_out
    );
    assert!(rounds > u64::from(seconds) && slowest < PROMPT, "{rounds}, {slowest:?}");
    assert!(grown < MIB + SLACK, "{grown} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_seconds_that_nobody_reads_adds_up() {
    flood(2).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute"]
async fn a_flood_of_a_minute_that_nobody_reads_adds_up() {
    flood(60).await;
}

/// Pastes through a stream into a tool that reads it as a script does, and prints its checksum.
async fn paste(length: u64, reads: &str) {
    let broker = Broker::private().await;
    let script = format!("stty raw -echo; printf ready; {reads} | cksum");
    let session = open(broker.bus.connect().await, &script, 4096).await;
    begins(&session, b"ready").await;
    let mut stream = attach(&session, Mode::Control, Framing::Raw).await;
    let before = peak(&broker);
    let pasted = noise(length);
    let wanted = checksum(&pasted);
    let shown = spawn_blocking(move || {
        stream.write_all(&pasted).unwrap();
        let mut shown = String::new();
        stream.read_to_string(&mut shown).unwrap();
        shown
    });
    assert_eq!(shown.await.unwrap().trim(), wanted);
    let grown = peak(&broker) - before;
    println!("{length} bytes pasted, {grown} bytes grown");
    assert!(grown < MIB + SLACK, "{grown} bytes");
    assert_eq!(session.proxy().bytes_in().await.unwrap(), length);
    assert_eq!(soon("the end", session.ended()).await.unwrap().ending, Ending::Exited(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_mebibytes_pasted_arrive_unchanged() {
    paste(64 * MIB, "head -c 67108864").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pasted_to_a_tool_that_reads_single_bytes_arrives_unchanged() {
    paste(3 * MIB, "dd bs=1 count=3145728 2>/dev/null").await;
}

/// Fills the input of a tool that never reads, from the bus and from a stream.
async fn stuff(session: &Session) {
    let mut accepted = 0;
    let full = loop {
        match session.write(&[b'x'; 64 << 10]).await {
            Ok(total) => accepted = total,
            Err(error) => break error,
        }
        assert!(accepted < 2 * MIB, "the queue is bounded");
    };
    assert_eq!(full.refusal(), Some(Refusal::InputFull), "{full:?}");
    assert!(accepted >= MIB - (64 << 10), "all but the last piece fits: {accepted}");
    let mut stream = attach(session, Mode::Control, Framing::Raw).await;
    stream.set_nonblocking(true).unwrap();
    let mut sent = 0;
    let refused = loop {
        match stream.write(&[b'x'; 64 << 10]) {
            Ok(count) => sent += count as u64,
            Err(error) => break error.kind(),
        }
        assert!(sent < 4 * MIB, "the stream is not read while the queue is full");
    };
    assert_eq!(refused, ErrorKind::WouldBlock);
    // The kernel may still take a few.
    let interrupted = soon("a full queue", async {
        loop {
            if let Err(error) = session.proxy().interrupt().await {
                return ClientError::from(error);
            }
        }
    });
    assert_eq!(
        interrupted.await.refusal(),
        Some(Refusal::InputFull),
        "no interrupt is lost unsaid"
    );
    let asked = Instant::now();
    session.resize(99, 33).await.unwrap();
    assert_eq!(session.proxy().columns().await.unwrap(), 99);
    assert!(asked.elapsed() < PROMPT, "a resize waits for no input");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_never_reads_is_closed_and_killed_promptly() {
    let broker = Broker::private().await;
    for is_killed in [false, true] {
        let script = "stty raw -echo; printf ready; exec sleep 1000";
        let session = open(broker.bus.connect().await, script, 4096).await;
        begins(&session, b"ready").await;
        stuff(&session).await;
        let asked = Instant::now();
        let ended: Result<_, ClientError> =
            if is_killed { session.kill().await } else { session.close(None).await };
        let took = asked.elapsed();
        assert!(took < PROMPT, "{took:?}");
        let reason = if is_killed { "killed-by-owner" } else { "closed-by-owner" };
        assert_eq!(ended.unwrap().text("reason"), Some(reason));
        let late = session.write(b"x").await.unwrap_err();
        assert_eq!(late.refusal(), Some(Refusal::Closed));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_that_keeps_the_terminal_delays_no_end() {
    let broker = Broker::private().await;
    let script = "stty -echo; printf ready; read -r _; (trap '' HUP TERM; exec sleep 1000) & printf last; exit 3";
    let session = open(broker.bus.connect().await, script, 4096).await;
    begins(&session, b"ready").await;
    let mut framed = attach(&session, Mode::Observe, Framing::Pty).await;
    framed.write_all(&[6, 0, 0, 0, 1, 0]).unwrap();
    let asked = Instant::now();
    session.write(b"\n").await.unwrap();
    let frames = soon("EXIT", spawn_blocking(move || frames(framed))).await.unwrap();
    assert!(asked.elapsed() < PROMPT, "{:?}", asked.elapsed());
    assert!(matches!(frames[..], [(10, 4), (5, _), (0, 4), (4, 4)]), "{frames:?}");
    let outcome = soon("the end", session.ended()).await.unwrap();
    assert_eq!((outcome.ending, outcome.survivors), (Ending::Exited(3), 0));
}
