//! The end of a session: its last bytes, its deadline, and what looks like an end and is none.

use std::{
    fs::{read_to_string, write},
    io::Read,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    sys::{
        signal::{Signal, kill},
        stat::Mode as Permissions,
    },
    unistd::{Pid, mkfifo},
};
use st2_tools::terminal::{Framing, Mode, Replay, Terminal};

use crate::{
    streams::rest,
    tool::{PATIENCE, Tool, client, raw_pty, soon, spawn},
};

/// The drain deadline of the broker.
const DEADLINE: Duration = Duration::from_millis(250);

#[tokio::test(flavor = "multi_thread")]
async fn the_last_bytes_before_an_exit_are_read_a_thousand_times() {
    for round in 0..1000 {
        // Every tenth fills all of a pty's buffers that it can without waiting for a reader.
        let count = if round % 10 == 0 { 900 } else { 1 };
        let script = format!("printf '%08d' $(seq {round} $(({round} + {count} - 1)))");
        let mut tool = Tool::start(&script, 16 << 10);
        let stream =
            tool.terminal.attach("", Mode::Observe, Framing::Raw(Replay::Retained)).unwrap();
        tool.finished().await;
        let expected: String = (round..round + count).map(|n| format!("{n:08}")).collect();
        let chunk = tool.terminal.read(0, usize::MAX).unwrap();
        assert_eq!(String::from_utf8(chunk.bytes).unwrap(), expected, "round {round}");
        assert!(chunk.eof);
        assert_eq!(rest(stream.socket).await, expected.as_bytes(), "round {round}");
        assert_eq!(tool.terminal.stats().bytes_out, expected.len() as u64);
    }
}

/// Two named pipes, by which a tool without a terminal can be followed.
struct Pipes(tempfile::TempDir);

impl Pipes {
    fn new() -> Self {
        let pipes = Self(tempfile::tempdir().unwrap());
        for name in ["closed", "go"] {
            mkfifo(&pipes.0.path().join(name), Permissions::S_IRWXU).unwrap();
        }
        pipes
    }

    /// Closes its terminal, tells so, waits, opens it again, says so there, and waits for a line.
    fn script(&self) -> String {
        let directory = self.0.path().display();
        format!(
            "exec <&- >&- 2>&-; echo closed > {directory}/closed; read -r _ < {directory}/go
             exec </dev/tty >/dev/tty; printf back; read -r word; printf \"$word\""
        )
    }

    async fn closed(&self) {
        let path = self.0.path().join("closed");
        assert_eq!(client(move || read_to_string(path).unwrap()).await, "closed\n");
    }

    async fn go(&self) {
        let path = self.0.path().join("go");
        client(move || write(path, "go\n").unwrap()).await;
    }
}

#[tokio::test]
async fn a_tool_that_closes_its_terminal_and_opens_it_again_has_not_ended() {
    let pipes = Pipes::new();
    let mut tool = Tool::start(&pipes.script(), Terminal::MIN_RING);
    let stream = tool.terminal.attach("", Mode::Observe, Framing::Raw(Replay::Retained)).unwrap();
    pipes.closed().await;
    let quiet = tool.terminal.read_wait(0, 1, DEADLINE).await.unwrap();
    assert!(quiet.bytes.is_empty() && !quiet.eof);
    tool.terminal.write(b"word\n").unwrap();
    pipes.go().await;
    tool.finished().await;
    assert_eq!(tool.terminal.read(0, 99).unwrap().bytes, b"backword");
    assert_eq!(rest(stream.socket).await, b"backword");
}

/// Why the terminal holds a user end: without one, the same tool looks as if it had ended.
#[tokio::test]
async fn without_a_user_end_held_a_closed_terminal_reads_as_an_error() {
    let pipes = Pipes::new();
    let (controller, user) = raw_pty();
    let mut child = spawn(&pipes.script(), &user);
    drop(user);
    pipes.closed().await;
    assert_eq!(nix::unistd::read(&controller, &mut [0; 9]), Err(Errno::EIO));
    pipes.go().await;
    let mut controller = std::fs::File::from(controller);
    let shown = client(move || {
        let mut shown = [0; 4];
        while let Err(error) = controller.read_exact(&mut shown) {
            assert_eq!(error.raw_os_error(), Some(Errno::EIO as i32));
        }
        shown
    });
    assert_eq!(shown.await, *b"back");
    client(move || child.wait().unwrap()).await;
}

#[tokio::test]
async fn nothing_left_open_ends_the_drain_before_its_deadline() {
    let mut tool = Tool::start("printf bye", Terminal::MIN_RING);
    tool.exited().await;
    soon(tool.terminal.drain(PATIENCE * 2, 0)).await;
    assert!(tool.terminal.controller(|_| ()).is_none(), "closed");
    assert_eq!(tool.terminal.read(0, 9).unwrap().bytes, b"bye");
    soon(tool.terminal.drain(Duration::ZERO, 0)).await;
}

#[tokio::test]
async fn a_quiet_grandchild_cannot_delay_the_end_beyond_the_deadline() {
    let script = "trap '' HUP; sleep 1000 & printf '%s\n' $!";
    let mut tool = Tool::start(script, Terminal::MIN_RING);
    tool.exited().await;
    let begun = Instant::now();
    soon(tool.terminal.drain(DEADLINE, 0)).await;
    let took = begun.elapsed();
    let last = tool.terminal.read(0, 99).unwrap();
    end(&String::from_utf8(last.bytes).unwrap());
    assert!(last.eof);
    assert!(took >= DEADLINE, "the grandchild had it open: {took:?}");
    assert!(took < DEADLINE + Duration::from_secs(10), "{took:?}");
    assert!(tool.terminal.controller(|_| ()).is_none(), "closed");
}

#[tokio::test]
async fn a_flooding_grandchild_cannot_delay_the_end_beyond_the_deadline() {
    // It ends by itself when the terminal is closed: writing to that is an error.
    let mut tool = Tool::start("trap '' HUP; yes & printf x", Terminal::MIN_RING);
    let stream = tool.terminal.attach("", Mode::Observe, Framing::Raw(Replay::Retained)).unwrap();
    let shown = tokio::spawn(rest(stream.socket));
    tool.exited().await;
    let begun = Instant::now();
    soon(tool.terminal.drain(DEADLINE, 0)).await;
    assert!(begun.elapsed() < DEADLINE + Duration::from_secs(10), "{:?}", begun.elapsed());
    let stats = tool.terminal.stats();
    let shown = soon(shown).await.unwrap();
    assert_eq!(shown.len() as u64, stats.bytes_out);
    assert_eq!(stats.bytes_dropped, stats.bytes_out.saturating_sub(Terminal::MIN_RING as u64));
}

/// Ends a process of the tool's own that outlives it.
fn end(pid: &str) {
    kill(Pid::from_raw(pid.trim().parse().unwrap()), Signal::SIGKILL).unwrap();
}
