//! Attached clients: how a stream begins, what its client may do, how it ends.

use std::{
    io::{ErrorKind, Read, Write},
    net::Shutdown,
    os::unix::{net::UnixStream, process::ExitStatusExt},
};

use nix::sys::signal::Signal;
use st2_tools::terminal::{
    AttachError, Bounds, Framing, Mode, ReadError, Replay, RingPool, Terminal,
};

use crate::tool::{PATIENCE, Tool, client, raw_pty, soon, spawn};

/// Everything up to the end of a stream.
pub async fn rest(mut socket: UnixStream) -> Vec<u8> {
    client(move || {
        let mut bytes = Vec::new();
        socket.read_to_end(&mut bytes).unwrap();
        bytes
    })
    .await
}

#[tokio::test]
async fn a_stream_begins_where_it_is_told_to() {
    let mut tool = Tool::start("printf 0123456789; read -r _; printf abc", Terminal::MIN_RING);
    tool.first(10).await;
    let attach = |replay| tool.terminal.attach("", Mode::Observe, Framing::Raw(replay));
    let all = attach(Replay::Retained).unwrap();
    let some = attach(Replay::From(7)).unwrap();
    let next = attach(Replay::Nothing).unwrap();
    assert_eq!((all.begin, some.begin, next.begin), (Some(0), Some(7), Some(10)));
    let beyond = attach(Replay::From(11)).unwrap_err();
    let expected = ReadError::BadCursor { cursor: 11, end: 10 };
    assert!(matches!(beyond, AttachError::Cursor(error) if error == expected), "{beyond}");
    tool.attached(3).await;
    tool.terminal.write(b"\n").unwrap();
    tool.finished().await;
    assert_eq!(rest(all.socket).await, b"0123456789abc");
    assert_eq!(rest(some.socket).await, b"789abc");
    assert_eq!(rest(next.socket).await, b"abc");
    tool.attached(0).await;
}

#[tokio::test]
async fn a_stream_attached_after_the_end_shows_what_is_retained() {
    let mut tool = Tool::start("seq 10000; printf end", Terminal::MIN_RING);
    tool.finished().await;
    let stream = tool.terminal.attach("", Mode::Control, Framing::Raw(Replay::Retained)).unwrap();
    let stats = tool.terminal.stats();
    assert_eq!(stream.begin, Some(stats.bytes_dropped));
    let shown = rest(stream.socket).await;
    assert_eq!(shown.len() as u64, stats.bytes_out - stats.bytes_dropped);
    assert!(shown.ends_with(b"\n9999\n10000\nend"));
    tool.attached(0).await;
}

#[tokio::test]
async fn a_session_has_four_streams_at_most() {
    let tool = Tool::start("exec cat", Terminal::MIN_RING);
    let attach = || tool.terminal.attach("", Mode::Observe, Framing::Raw(Replay::Retained));
    let mut streams: Vec<_> = (0..4).map(|_| attach().unwrap()).collect();
    let refused = attach().unwrap_err();
    assert!(matches!(refused, AttachError::TooManyStreams { limit: 4 }));
    assert_eq!(refused.to_string(), "the session already has 4 attached streams");
    streams.pop();
    tool.attached(3).await;
    attach().unwrap();
}

#[tokio::test]
async fn what_is_fenced_off_ends_and_types_nothing_more() {
    let tool = Tool::start("stty -echo; read line; echo \"got $line\"; read line", 4096);
    let attach =
        |who, mode| tool.terminal.attach(who, mode, Framing::Raw(Replay::Nothing)).unwrap().socket;
    let (old, watcher) = (attach("old", Mode::Control), attach("other", Mode::Observe));
    let mut new = attach("new", Mode::Control);
    tool.attached(3).await;
    tool.terminal.fence("new", false);
    assert_eq!(rest(old.try_clone().unwrap()).await, b"");
    let refused = (&old).write_all(b"mine\n").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::BrokenPipe);
    tool.attached(2).await;
    new.write_all(b"yours\n").unwrap();
    assert_eq!(tool.first(9).await, b"got yours");
    tool.terminal.fence("new", true);
    tool.attached(1).await;
    assert!(rest(watcher).await.starts_with(b"got yours"));
}

#[tokio::test]
async fn an_observer_cannot_write_and_its_leaving_is_seen_at_once() {
    let tool = Tool::start("exec cat", Terminal::MIN_RING);
    let mut observer =
        tool.terminal.attach("", Mode::Observe, Framing::Raw(Replay::Retained)).unwrap().socket;
    tool.attached(1).await;
    assert_eq!(observer.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    tool.terminal.write(b"shown").unwrap();
    client(move || observer.read_exact(&mut [0; 5]).unwrap()).await;
    tool.attached(0).await;
    assert_eq!(tool.terminal.stats().bytes_in, 5);
}

#[tokio::test]
async fn a_client_that_sends_no_more_still_sees_output_until_it_leaves() {
    let tool = Tool::start("exec cat", Terminal::MIN_RING);
    let mut socket =
        tool.terminal.attach("", Mode::Control, Framing::Raw(Replay::Retained)).unwrap().socket;
    socket.write_all(b"from client").unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    soon(tool.first(11)).await;
    tool.terminal.write(b" and bus").unwrap();
    let socket = client(move || {
        let mut shown = [0; 19];
        socket.read_exact(&mut shown).unwrap();
        assert_eq!(shown, *b"from client and bus");
        socket
    })
    .await;
    tool.attached(1).await;
    drop(socket);
    tool.attached(0).await;
    tool.terminal.write(b"!").unwrap();
    soon(tool.first(20)).await;
}

#[tokio::test]
async fn what_a_client_sent_before_it_left_is_input() {
    let tool = Tool::start("while printf .; do :; done & exec cat >/dev/null", Terminal::MIN_RING);
    for round in 1..=100 {
        let mut socket =
            tool.terminal.attach("", Mode::Control, Framing::Raw(Replay::Nothing)).unwrap().socket;
        socket.write_all(&[b'x'; 9000]).unwrap();
        drop(socket);
        tool.attached(0).await;
        assert_eq!(tool.terminal.stats().bytes_in, round * 9000);
    }
}

#[tokio::test]
async fn a_client_with_unread_input_sees_the_end_and_not_an_error() {
    let mut tool = Tool::start("printf bye; read -r _", Terminal::MIN_RING);
    tool.first(3).await;
    let mut socket =
        tool.terminal.attach("", Mode::Control, Framing::Raw(Replay::Retained)).unwrap().socket;
    let typing = std::thread::spawn({
        let mut socket = socket.try_clone().unwrap();
        // Ends with the first write that the broker's end refuses.
        move || while socket.write_all(&[b'\n'; 4096]).is_ok() {}
    });
    tool.finished().await;
    let shown = client(move || {
        let mut shown = Vec::new();
        socket.read_to_end(&mut shown).map(|_| shown)
    });
    assert_eq!(shown.await.unwrap(), b"bye");
    client(|| typing.join().unwrap()).await;
}

#[tokio::test]
async fn dropping_the_last_clone_ends_streams_and_hangs_up_the_tool() {
    let (controller, user) = raw_pty();
    let mut child = spawn("exec cat", &user);
    let pool = RingPool::default();
    let terminal = Terminal::start(controller, user, Bounds::default(), &pool).unwrap();
    let clone = terminal.clone();
    drop(terminal);
    let stream = clone.attach("", Mode::Control, Framing::Raw(Replay::Retained)).unwrap();
    clone.write(b"alive").unwrap();
    soon(clone.read_wait(0, 1, PATIENCE)).await.unwrap();
    drop(clone);
    assert!(b"alive".starts_with(&rest(stream.socket).await));
    let status = client(move || child.wait().unwrap()).await;
    assert!(status.code() == Some(1) || status.signal() == Some(Signal::SIGHUP as i32), "{status}");
    assert_eq!(pool.used(), 0);
}
