//! The controller end in another's hands: read by one, and by the broker again as soon as that one is gone.

use std::{
    fs::File,
    io::{ErrorKind, Read, Write},
    os::fd::{AsFd, AsRawFd, OwnedFd},
    process::Command,
    time::{Duration, Instant},
};

use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    libc::{EIO, TIOCPKT},
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
use st2_tools::{
    host::pty::{self, Size},
    terminal::{
        AttachError, Bounds, Framing, Mode, Replay, RingPool, ScreenError, Terminal, screen::Screen,
    },
};

use crate::{
    frames::{Client, GEOMETRY, SCREEN, geometry},
    streams::rest,
    tool::{PATIENCE, Tool, client, soon},
};

/// Gives so much of the output as each line on its input says, and never reads ahead.
const ON_DEMAND: &str = "while read -r text; do printf %s \"$text\"; done";

fn lent(script: &str) -> Tool {
    let bounds = Bounds { direct: true, ..Bounds::default() };
    Tool::start_with(script, bounds, &RingPool::default())
}

/// Reads from a non-blocking controller until so many bytes have come.
fn read_exactly(controller: &OwnedFd, count: usize) -> Vec<u8> {
    let mut file = File::from(controller.try_clone().unwrap());
    let mut bytes = Vec::new();
    while bytes.len() < count {
        let mut set = [PollFd::new(controller.as_fd(), PollFlags::POLLIN)];
        let patience = PollTimeout::try_from(PATIENCE).unwrap();
        assert_eq!(poll(&mut set, patience).unwrap(), 1, "only {bytes:?}");
        let mut piece = vec![0; count - bytes.len()];
        match file.read(&mut piece) {
            Ok(read) => bytes.extend(&piece[..read]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    bytes
}

async fn held(tool: &Tool, held: bool) {
    soon(tool.terminal.holds().wait_for(|holds| holds.is_held() == held)).await.unwrap();
}

#[tokio::test]
async fn what_is_not_declared_is_not_lent() {
    let tool = Tool::start("exec cat", Terminal::MIN_RING);
    assert!(matches!(tool.terminal.hold(""), Err(AttachError::NotDirect)));
    assert!(tool.terminal.holds().borrow().unseen_at().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_reads_alone_and_the_broker_reads_on_when_it_is_gone() {
    let tool = lent(ON_DEMAND);
    let stream = tool.terminal.attach("", Mode::Observe, Framing::Raw(Replay::Retained)).unwrap();
    tool.terminal.write(b"before\n").unwrap();
    assert_eq!(tool.first(6).await, b"before");

    let hold = tool.terminal.hold("").unwrap();
    assert_eq!(hold.begin, 6);
    let mut ended = Vec::new();
    let mut socket = stream.socket;
    client(move || socket.read_to_end(&mut ended).map(|_| assert_eq!(ended, b"before")))
        .await
        .unwrap();
    assert!(matches!(tool.terminal.hold(""), Err(AttachError::Held)), "exclusive");
    let refused = tool.terminal.attach("", Mode::Control, Framing::Raw(Replay::Retained));
    assert!(matches!(refused, Err(AttachError::Held)));
    tool.attached(1).await;

    // Input from the bus and from the holder, output to the holder alone.
    tool.terminal.write(b"bus\n").unwrap();
    let controller = hold.controller.try_clone().unwrap();
    assert_eq!(client(move || read_exactly(&controller, 3)).await, b"bus");
    File::from(hold.controller.try_clone().unwrap()).write_all(b"holder\n").unwrap();
    let controller = hold.controller.try_clone().unwrap();
    assert_eq!(client(move || read_exactly(&controller, 4)).await, b"hold");
    let waited = tool.terminal.read_wait(6, 1, Duration::from_millis(20)).await.unwrap();
    assert_eq!((waited.next, tool.terminal.stats().bytes_out), (6, 6));

    // It vanishes: what it has not read is the broker's.
    tool.terminal.write(b"after\n").unwrap();
    drop(hold);
    held(&tool, false).await;
    assert_eq!(tool.first(13).await, b"beforeerafter");
    assert_eq!(tool.terminal.holds().borrow().unseen_at(), [6]);
    tool.attached(0).await;
    assert_eq!(tool.terminal.hold("").unwrap().begin, 13, "there may be another");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_in_packet_mode_leaves_no_trace_of_it() {
    let tool = lent(ON_DEMAND);
    let hold = tool.terminal.hold("").unwrap();
    let set = format!("import fcntl; fcntl.ioctl(0, {TIOCPKT}, b'\\1\\0\\0\\0')");
    let controller = hold.controller.try_clone().unwrap();
    let status = Command::new("python3").args(["-c", &set]).stdin(controller).status();
    assert!(status.unwrap().success());
    tool.terminal.write(b"packet\n").unwrap();
    let controller = hold.controller.try_clone().unwrap();
    let first = client(move || read_exactly(&controller, 7)).await;
    assert_eq!(first, b"\0packet", "as VTE reads it");
    // A dead holder's copies are gone with it; one that only lets go keeps some, and changes nothing by it.
    let kept = hold.controller;
    drop(hold.socket);
    held(&tool, false).await;
    tool.terminal.write(b"plain\n").unwrap();
    assert_eq!(tool.first(5).await, b"plain");
    drop(kept);
}

#[tokio::test]
async fn a_holder_that_makes_it_block_blocks_nobody() {
    let tool = lent("printf ready; exec sleep 1000");
    tool.first(5).await;
    let hold = tool.terminal.hold("").unwrap();
    fcntl(&hold.controller, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    // More than a pty takes, on the one thread of this runtime.
    for _ in 0..8 {
        tool.terminal.write(&[b'x'; 64 << 10]).unwrap();
        tokio::task::yield_now().await;
    }
    drop(hold.socket);
    held(&tool, false).await;
    let waited = tool.terminal.read_wait(5, 1, Duration::from_millis(20)).await.unwrap();
    assert_eq!(waited.next, 5, "a read that finds nothing does not wait either");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_reads_gets_the_last_byte_and_then_the_end() {
    let mut tool = lent("read -r _; printf last");
    let mut hold = tool.terminal.hold("").unwrap();
    tool.terminal.write(b"\n").unwrap();
    tool.exited().await;
    let draining = tool.terminal.clone();
    let drained = tokio::spawn(async move { draining.drain(PATIENCE, 0).await });
    let controller = hold.controller.try_clone().unwrap();
    assert_eq!(client(move || read_exactly(&controller, 4)).await, b"last");
    soon(drained).await.unwrap();
    assert_eq!(tool.terminal.stats().bytes_out, 0, "the holder had all of it");
    let mut nothing = [0];
    assert_eq!(client(move || hold.socket.read(&mut nothing)).await.unwrap(), 0);
    assert!(matches!(tool.terminal.hold(""), Err(AttachError::Ended)));
    let mut file = File::from(hold.controller);
    let end = client(move || file.read(&mut [0]).unwrap_err()).await;
    assert_eq!(end.raw_os_error(), Some(EIO));
}

#[tokio::test]
async fn a_holder_that_does_nothing_delays_no_end_and_loses_no_byte() {
    let mut tool = lent("printf shown; read -r _; head -c 3000 /dev/zero | tr '\\0' x");
    tool.first(5).await;
    let hold = tool.terminal.hold("").unwrap();
    tool.terminal.write(b"\n").unwrap();
    tool.exited().await;
    let began = Instant::now();
    tool.terminal.drain(Duration::from_millis(250), 0).await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let stats = tool.terminal.stats();
    assert_eq!((stats.bytes_out, stats.bytes_dropped), (3005, 0));
    assert!(tool.terminal.read(5, 9).unwrap().bytes.starts_with(b"xxxx"));
    assert!(hold.controller.as_raw_fd() >= 0, "held all the while");
}

#[tokio::test]
async fn a_tool_that_waits_for_a_holder_can_be_ended() {
    let mut tool = lent("exec yes");
    let hold = tool.terminal.hold("").unwrap();
    let controller = hold.controller.as_fd();
    // Until the pty is full: then it stays readable and the tool waits.
    let mut set = [PollFd::new(controller, PollFlags::POLLIN)];
    assert_eq!(poll(&mut set, PollTimeout::try_from(PATIENCE).unwrap()).unwrap(), 1);
    tool.kill();
    soon(tool.exited()).await;
    let began = Instant::now();
    tool.terminal.drain(Duration::from_millis(250), 0).await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(tool.terminal.stats().bytes_out > 0, "what nobody read is the broker's");
}

#[tokio::test]
async fn what_is_taken_back_is_read_here_and_the_holder_is_told() {
    let tool = lent(ON_DEMAND);
    let first = tool.terminal.hold("").unwrap();
    tool.terminal.fence("another", false);
    tool.terminal.write(b"ours\n").unwrap();
    assert_eq!(tool.first(4).await, b"ours");
    let mut socket = first.socket;
    assert_eq!(client(move || socket.read(&mut [0])).await.unwrap(), 0);
    // The end of the first hold is not that of the second.
    let second = tool.terminal.hold("").unwrap();
    drop(first.controller);
    tool.attached(1).await;
    assert!(tool.terminal.holds().borrow().is_held());
    drop(second);
    held(&tool, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_hold_a_painted_stream_shows_what_was_drawn_since_on_a_clear_screen() {
    let mut tool = lent(ON_DEMAND);
    let mut framed = Client::attach(&tool, 80, 24);
    assert_eq!(framed.expect(GEOMETRY).await, geometry(80, 24).1);
    framed.expect(SCREEN).await;
    let mut silent = Client::connect(&tool, Mode::Control);
    tool.terminal.write(b"before\n").unwrap();
    assert_eq!(tool.first(6).await, b"before");
    assert_eq!(tool.terminal.screen().await.unwrap().rows[0], "before");

    let hold = tool.terminal.hold("").unwrap();
    assert_eq!(tool.terminal.screen().await, Err(ScreenError::Held));
    assert_eq!(tool.terminal.baseline(), Err(ScreenError::Held));
    let shown: Vec<u8> = framed.rest().await.into_iter().flat_map(|(_, bytes)| bytes).collect();
    assert_eq!(shown, b"before", "and then the stream ends, without an exit");
    assert!(silent.rest().await.is_empty());
    let size = Size::new(100, 30);
    assert!(pty::set_size(hold.controller.as_fd(), size).unwrap());
    assert_eq!(tool.terminal.size(), size);
    tool.terminal.write(b"unseen\n").unwrap();
    let controller = hold.controller.try_clone().unwrap();
    assert_eq!(client(move || read_exactly(&controller, 6)).await, b"unseen");
    drop(hold);
    held(&tool, false).await;
    assert_eq!(tool.terminal.appearance().borrow().size, size);
    assert!(tool.terminal.screen().await.unwrap().rows.iter().all(String::is_empty));

    tool.terminal.write(b"after\n").unwrap();
    assert_eq!(tool.first(11).await, b"beforeafter");
    let stream = tool.terminal.attach("", Mode::Observe, Framing::Raw(Replay::Screen)).unwrap();
    let painted = tokio::spawn(rest(stream.socket));
    tool.kill();
    tool.finished().await;
    let painted = soon(painted).await.unwrap();
    let mut newcomer = Screen::new(size);
    assert_eq!(newcomer.draw(&painted, true, Instant::now() + PATIENCE), painted.len());
    assert_eq!(newcomer.view(), tool.terminal.screen().await.unwrap());
    assert_eq!(newcomer.view().rows.concat(), "after");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_answers_what_it_is_shown_and_the_broker_what_was_asked_before() {
    const ASKS: &str = "printf '\\033[6n'; IFS= read -r -d R one; read -r _; printf '%s\\033[6n' \"${one#?}\"; \
                        IFS= read -r -d R two; printf %s \"${two#?}\"; read -r _";
    let tool = lent(&format!("exec bash -c '{}'", ASKS.replace('\'', "'\\''")));
    assert_eq!(tool.first(4).await, b"\x1b[6n");
    let hold = tool.terminal.hold("").unwrap();
    soon(async {
        while tool.terminal.stats().bytes_in < 6 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    tool.terminal.write(b"\n").unwrap();
    let controller = hold.controller.try_clone().unwrap();
    assert_eq!(client(move || read_exactly(&controller, 8)).await, b"[1;1\x1b[6n");
    let before = tool.terminal.stats().bytes_in;
    File::from(hold.controller.try_clone().unwrap()).write_all(b"\x1b[9;9R").unwrap();
    let controller = hold.controller.try_clone().unwrap();
    assert_eq!(client(move || read_exactly(&controller, 4)).await, b"[9;9");
    drop(hold);
    held(&tool, false).await;
    assert_eq!(tool.terminal.stats().bytes_in, before, "nobody else answers, also not later");
}
