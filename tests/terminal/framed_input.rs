//! What clients type in frames: all that was sent is input, in order, whenever the client leaves and however slowly the
//! tool reads.

use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
    time::Duration,
};

use futures_util::future::join_all;
use st2_tools::terminal::{Bounds, Mode, RingPool, Terminal};

use crate::{
    frames::*,
    seed::Random,
    tool::{Tool, client, soon},
};

/// The shortest queue of input that may be set, and so one that is full all the time.
const SHORTEST: usize = 4096;

fn with_queue(script: &str, input_queue_bytes: usize) -> Tool {
    let bounds = Bounds { input_queue_bytes, ring_bytes: Terminal::MAX_RING, ..Bounds::default() };
    Tool::start_with(script, bounds, &RingPool::default())
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&[kind][..], &length, payload].concat()
}

#[tokio::test]
async fn what_a_framed_client_sent_before_it_left_is_input() {
    let tool = Tool::start("while printf .; do :; done & exec cat >/dev/null", Terminal::MIN_RING);
    let mut wanted = 0;
    for round in 0..200 {
        let length = if round % 2 == 0 { 9000 } else { 1 };
        let typed = frame(DATA, &vec![b'x'; length]);
        let attach = if round % 4 < 2 { frame(ATTACH, &size(80, 24)) } else { Vec::new() };
        let goodbye = if round % 8 < 4 { frame(DETACH, b"") } else { Vec::new() };
        let mut client = Client::connect(&tool, Mode::Control);
        client.send_raw(&[attach, typed, goodbye].concat());
        drop(client);
        tool.attached(0).await;
        wanted += length as u64;
        assert_eq!(tool.terminal.stats().bytes_in, wanted, "round {round}");
    }
}

#[tokio::test]
async fn nothing_after_a_goodbye_is_input() {
    let tool = Tool::start("while printf .; do :; done & exec cat >/dev/null", Terminal::MIN_RING);
    for _ in 0..50 {
        let mut client = Client::attach(&tool, 80, 24);
        client.send_raw(&[frame(DETACH, b""), frame(DATA, &[b'x'; 9000])].concat());
        drop(client);
        tool.attached(0).await;
        assert_eq!(tool.terminal.stats().bytes_in, 0);
    }
}

#[tokio::test]
async fn what_is_sent_without_attaching_is_input_where_the_mode_is_control() {
    let tool = Tool::start("exec cat", Terminal::MIN_RING);
    let mut observer = Client::connect(&tool, Mode::Observe);
    observer.send(DATA, b"never");
    observer.send(STATUS, b"");
    assert_eq!(observer.expect(STATUS).await, b"{\"phase\":\"running\"}");
    let mut client = Client::connect(&tool, Mode::Control);
    client.send(DATA, b"sent");
    client.send_no_more();
    assert_eq!(client.next().await, None, "it was not shown anything");
    assert_eq!(soon(tool.first(4)).await, b"sent");
    assert_eq!(tool.terminal.stats().bytes_in, 4);
}

/// Sends noise in frames of random sizes, and gives it.
fn send_noise(client: &mut Client, length: usize) -> Vec<u8> {
    let mut random = Random::seeded();
    let noise: Vec<u8> = (0..length).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
    let mut rest = &noise[..];
    while !rest.is_empty() {
        let most = [1, 10, 5000, 70_000][random.below(4)];
        let (now, later) = rest.split_at(random.below(most + 1).min(rest.len()));
        client.send(DATA, now);
        rest = later;
    }
    noise
}

/// A checksum as cksum(1) prints it.
fn checksum(bytes: &[u8]) -> Vec<u8> {
    let mut child =
        Command::new("cksum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    child.wait_with_output().unwrap().stdout
}

#[tokio::test(flavor = "multi_thread")]
async fn input_in_frames_of_any_size_arrives_unchanged_through_a_full_queue() {
    const LENGTH: usize = 1 << 20;
    for queue in [SHORTEST, LENGTH / 4] {
        for attaches in [true, false] {
            let mut tool = with_queue(&format!("head -c {LENGTH} | cksum"), queue);
            let mut sender = Client::connect(&tool, Mode::Control);
            if attaches {
                sender.send(ATTACH, &size(80, 24));
            }
            let sending = client(move || (send_noise(&mut sender, LENGTH), sender));
            let (noise, sender) = sending.await;
            if !attaches {
                // What is on its way is not lost by that.
                sender.send_no_more();
            }
            tool.finished().await;
            assert_eq!(tool.terminal.stats().bytes_in, LENGTH as u64);
            assert_eq!(tool.terminal.read(0, usize::MAX).unwrap().bytes, checksum(&noise));
        }
    }
}

/// Processor time of this thread.
fn spent() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

#[tokio::test]
async fn a_stream_that_waits_for_room_costs_nothing() {
    let queues = [SHORTEST, 5000, 2 * SHORTEST, 12_000, 20_000, 30_000];
    let tools = queues.map(|queue| with_queue("printf ready; exec sleep 1000", queue));
    let mut stalled = Vec::new();
    for tool in &tools {
        tool.first(5).await;
        let mut client = Client::attach(tool, 80, 24);
        client.send_raw(&frame(DATA, &[b'x'; 4091]).repeat(30));
        stalled.push(client);
    }
    let before = spent();
    let waits = tools.each_ref().map(|tool| tool.terminal.read_wait(5, 1, Duration::from_secs(1)));
    let silent = join_all(waits).await;
    let spent = spent() - before;
    assert!(silent.into_iter().all(|chunk| chunk.unwrap().bytes.is_empty()));
    assert!(spent < Duration::from_millis(100), "{spent:?} while next to nothing happened");
}
