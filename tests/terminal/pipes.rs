//! A tool without a terminal: two outputs, their order, an input that ends.

use std::{
    process::{Child, Command},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use st2_tools::{
    host::pipes,
    terminal::{Bounds, Pipes, RingPool, Source, StdinEnd, WriteError},
};

use crate::tool::{PATIENCE, client, soon};

/// The drain deadline of the broker.
const DEADLINE: Duration = Duration::from_millis(250);

/// A running tool and its pipes. Both are gone when it is dropped.
struct Tool {
    pipes: Pipes,
    child: Child,
}

impl Tool {
    /// Starts `sh -c script`, with an input, and rings of half of `ring_bytes` each.
    fn start(script: &str, ring_bytes: usize) -> Self {
        let pipes::Pipes { broker, tool } = pipes::Pipes::open(true).unwrap();
        let child = Command::new("setsid")
            .args(["sh", "-c", script])
            .stdin(tool.stdin)
            .stdout(tool.output)
            .stderr(tool.stderr)
            .spawn()
            .unwrap();
        let bounds = Bounds { ring_bytes, ..Bounds::default() };
        let pipes = Pipes::start(broker, bounds, &RingPool::default()).unwrap();
        Self { pipes, child }
    }

    /// Waits until so many bytes have been written, and gives them.
    async fn first(&self, source: Option<Source>, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < count {
            let (cursor, max) = (bytes.len() as u64, count - bytes.len());
            let chunk = self.pipes.read_wait(source, cursor, max, PATIENCE).await.unwrap();
            assert!(!chunk.bytes.is_empty(), "only {:?}", String::from_utf8_lossy(&bytes));
            bytes.extend(chunk.bytes);
        }
        bytes
    }

    /// Waits for the leader's end and reads the rest.
    async fn finished(&mut self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        client(move || {
            use nix::sys::wait::{Id, WaitPidFlag, waitid};
            waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
        })
        .await;
        soon(self.pipes.drain(DEADLINE)).await;
    }

    fn all(&self, source: Option<Source>) -> String {
        String::from_utf8(self.pipes.read(source, 0, usize::MAX).unwrap().bytes).unwrap()
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn what_is_written_to_both_is_read_in_that_order_and_apart() {
    let script = "for n in 1 2 3; do echo out $n; read -r _; echo err $n >&2; read -r _; done";
    let mut tool = Tool::start(script, 1 << 16);
    let (mut expected, mut outputs) = (String::new(), [String::new(), String::new()]);
    for n in 1..=3 {
        for (which, word) in ["out", "err"].into_iter().enumerate() {
            let line = format!("{word} {n}\n");
            expected.push_str(&line);
            outputs[which].push_str(&line);
            assert_eq!(tool.first(None, expected.len()).await, expected.as_bytes());
            tool.pipes.write(b"\n").unwrap();
        }
    }
    tool.finished().await;
    assert_eq!(tool.all(None), expected);
    let apart = [Source::Output, Source::Stderr].map(|source| tool.all(Some(source)));
    assert_eq!(apart, outputs);
    let stats = tool.pipes.stats();
    assert_eq!((stats.bytes_out, stats.bytes_in, stats.bytes_dropped), (36, 6, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_bytes_of_both_before_an_exit_are_read_two_hundred_times() {
    for round in 0..200 {
        let script = format!("printf out-{round}; printf err-{round} >&2");
        let mut tool = Tool::start(&script, 1 << 16);
        tool.finished().await;
        let out = tool.pipes.read(Some(Source::Output), 0, 99).unwrap();
        let err = tool.pipes.read(Some(Source::Stderr), 0, 99).unwrap();
        assert_eq!((out.bytes, out.eof), (format!("out-{round}").into_bytes(), true));
        assert_eq!((err.bytes, err.eof), (format!("err-{round}").into_bytes(), true));
        assert!(tool.pipes.read(None, 0, 99).unwrap().eof);
    }
}

#[tokio::test]
async fn each_output_ends_when_it_is_closed_though_the_tool_goes_on() {
    let mut tool = Tool::start("printf out; exec >&-; read -r word; printf $word >&2", 1 << 16);
    assert_eq!(tool.first(Some(Source::Output), 3).await, b"out");
    let wait = |source, cursor| tool.pipes.read_wait(source, cursor, 99, PATIENCE);
    let end = soon(async {
        loop {
            let chunk = wait(Some(Source::Output), 3).await.unwrap();
            if chunk.eof {
                return chunk;
            }
        }
    });
    assert!(end.await.bytes.is_empty());
    let both = tool.pipes.read(None, 0, 99).unwrap();
    assert_eq!((both.bytes.as_slice(), both.eof), (&b"out"[..], false), "standard error goes on");
    tool.pipes.write(b"word\n").unwrap();
    assert_eq!(soon(wait(Some(Source::Stderr), 0)).await.unwrap().bytes, b"word");
    tool.finished().await;
    assert_eq!(tool.pipes.write(b"x"), Err(WriteError::Closed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_one_holds_up_and_drops_nothing_of_the_other() {
    for (flood, line, quiet) in
        [("yes >&2", "echo heard", Source::Output), ("yes", "echo heard >&2", Source::Stderr)]
    {
        let tool = Tool::start(&format!("{flood} & read -r _; {line}; read -r _"), 8192);
        let (loud, flood) = match quiet {
            Source::Output => (Source::Stderr, 1 << 20),
            Source::Stderr => (Source::Output, 1 << 20),
        };
        soon(async {
            let mut cursor = 0;
            while cursor < flood {
                cursor = tool.pipes.read_wait(Some(loud), cursor, 1, PATIENCE).await.unwrap().next;
            }
        })
        .await;
        tool.pipes.write(b"\n").unwrap();
        assert_eq!(tool.first(Some(quiet), 6).await, b"heard\n");
        let stats = tool.pipes.stats();
        assert!(stats.bytes_dropped > 0 && stats.bytes_dropped <= stats.bytes_out - 4096 - 6);
        kill_group(&tool);
    }
}

/// The flood is a process of its own.
fn kill_group(tool: &Tool) {
    let group = Pid::from_raw(-i32::try_from(tool.child.id()).unwrap());
    kill(group, Signal::SIGKILL).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_megabytes_through_cat_come_back_whole_and_end() {
    const TOTAL: usize = 8 << 20;
    let mut tool = Tool::start("cat", 4 << 20);
    let input: Vec<u8> = (0..TOTAL).map(|n| (n % 251) as u8).collect();
    let mut echoed = Vec::new();
    soon(async {
        let mut pieces = input.chunks(65_536);
        loop {
            let cursor = echoed.len() as u64;
            // No more is on its way than ring and queue hold: the pump does not wait for this reader.
            while tool.pipes.stats().bytes_in < cursor + (512 << 10) {
                match pieces.next().map(|piece| tool.pipes.write(piece)) {
                    Some(written) => drop(written.unwrap()),
                    None => {
                        let _closed_before = tool.pipes.end_input();
                        break;
                    }
                }
            }
            let chunk = tool.pipes.read_wait(None, cursor, 1 << 20, PATIENCE).await.unwrap();
            assert_eq!(chunk.begin, cursor, "no gap");
            echoed.extend(chunk.bytes);
            if chunk.eof {
                break;
            }
        }
    })
    .await;
    assert!(echoed == input, "{} bytes came back", echoed.len());
    tool.finished().await;
    assert_eq!(tool.pipes.stats().bytes_in, TOTAL as u64);
}

#[tokio::test]
async fn the_end_of_the_input_comes_after_all_that_was_written() {
    let mut tool = Tool::start("cat; echo over", 1 << 16);
    tool.pipes.write(b"last words\n").unwrap();
    assert_eq!(tool.pipes.end_input(), Ok(11));
    let written = Err(WriteError::NoStdin(StdinEnd::Written));
    assert_eq!((tool.pipes.write(b"x"), tool.pipes.end_input()), (written, written));
    tool.finished().await;
    assert_eq!(tool.all(None), "last words\nover\n");
}

#[tokio::test]
async fn an_input_that_the_tool_has_closed_is_refused_and_not_lost_in_silence() {
    let tool = Tool::start("exec <&-; printf closed; exec sleep 1000", 1 << 16);
    assert_eq!(tool.first(None, 6).await, b"closed");
    let refused = soon(async {
        loop {
            match tool.pipes.write(b"x") {
                Ok(_) => tokio::task::yield_now().await,
                Err(error) => return error,
            }
        }
    });
    let refused = refused.await;
    assert_eq!(refused, WriteError::NoStdin(StdinEnd::Unread));
    assert_eq!(refused.to_string(), "stdin is closed: the tool does not read it any more");
    let end = tool.pipes.read(None, 6, 1).unwrap();
    assert!(!end.eof, "the session goes on");
}

#[tokio::test]
async fn a_tool_without_an_input_reads_its_end_and_cannot_be_written_to() {
    let pipes::Pipes { broker, tool } = pipes::Pipes::open(false).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "cat; printf over"]).stdin(tool.stdin).stdout(tool.output);
    let child = command.stderr(tool.stderr).spawn().unwrap();
    drop(command);
    let pipes = Pipes::start(broker, Bounds::default(), &RingPool::default()).unwrap();
    let mut tool = Tool { pipes, child };
    let refused = tool.pipes.write(b"x").unwrap_err();
    assert_eq!(refused.to_string(), "stdin is closed: the session was opened without");
    tool.finished().await;
    assert_eq!(tool.all(None), "over");
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipes_cannot_delay_the_end_beyond_the_deadline() {
    for held in ["sleep 1000 &", "yes &", "yes >&2 &"] {
        let mut tool = Tool::start(&format!("{held} printf started"), 1 << 16);
        let begun = {
            let pid = Pid::from_raw(i32::try_from(tool.child.id()).unwrap());
            client(move || {
                use nix::sys::wait::{Id, WaitPidFlag, waitid};
                waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
            })
            .await;
            Instant::now()
        };
        soon(tool.pipes.drain(DEADLINE)).await;
        let took = begun.elapsed();
        kill_group(&tool);
        assert!(took >= DEADLINE && took < DEADLINE + Duration::from_secs(10), "{held}: {took:?}");
        let end = tool.pipes.stats().bytes_out;
        assert!(tool.pipes.read(None, end, 1).unwrap().eof);
        tool.finished().await;
    }
}

#[tokio::test]
async fn dropping_the_last_clone_closes_the_pipes() {
    let mut tool = Tool::start("cat", 1 << 16);
    let (pipes, _) = (tool.pipes.clone(), tool.first(None, 0).await);
    let other = Tool::start("cat", 1 << 16);
    drop(std::mem::replace(&mut tool.pipes, other.pipes.clone()));
    pipes.write(b"still\n").unwrap();
    soon(pipes.read_wait(None, 0, 9, PATIENCE)).await.unwrap();
    drop(pipes);
    let status = client(move || tool.child.wait().map(|status| (status, tool))).await;
    assert!(status.unwrap().0.success(), "its input has ended");
}
