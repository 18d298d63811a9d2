//! What a tool asks of terminals: one party answers, the client's terminal or else the broker.

use std::{io::Read, time::Duration};

use st2_tools::{
    host::pty::Size,
    terminal::{Framing, Mode, Replay, Terminal},
};

use crate::{
    frames::*,
    streams::rest,
    tool::{PATIENCE, Tool, soon},
};

/// Asks for the cursor's position twice and, with the answer, for what the terminal is; shows the answers, and waits.
const ASKS: &str = "printf 'ab\\033[6n'; IFS= read -r -d R cursor; printf '\\033[c'; IFS= read -r -d c what; \
                    printf '%s|%s' \"${cursor#?}\" \"${what#?}\"; read -r _";

/// Longer than the broker waits before it answers.
const ANSWERED_WITHIN: Duration = Duration::from_millis(50);

fn asks() -> Tool {
    let tool =
        Tool::start(&format!("exec bash -c '{}'", ASKS.replace('\'', "'\\''")), Terminal::MIN_RING);
    tool.terminal.resize(Size::new(80, 24)).unwrap();
    tool
}

#[tokio::test]
async fn a_tool_that_waits_for_an_answer_before_its_viewer_comes_goes_on() {
    let tool = asks();
    let shown = soon(tool.first("ab\x1b[6n\x1b[c[1;3|[?62;22".len())).await;
    assert_eq!(String::from_utf8(shown).unwrap(), "ab\x1b[6n\x1b[c[1;3|[?62;22");
    let bytes = tool.terminal.stats().bytes_in;
    let mut client = Client::attach(&tool, 80, 24);
    client.expect(GEOMETRY).await;
    let screen = String::from_utf8(client.expect(SCREEN).await).unwrap();
    assert!(
        !screen.contains("\x1b[6n") && screen.contains("[1;3"),
        "nothing to answer again: {screen:?}"
    );
    assert_eq!(tool.terminal.stats().bytes_in, bytes);
}

#[tokio::test]
async fn an_observer_leaves_the_answer_to_the_broker() {
    let tool = asks();
    let observer = tool.terminal.attach("", Mode::Observe, Framing::Raw(Replay::Retained)).unwrap();
    soon(tool.first("ab\x1b[6n\x1b[c[1;3|[?62;22".len())).await;
    drop(observer);
}

#[tokio::test]
async fn with_a_client_its_terminal_answers_alone() {
    let mut tool = asks();
    let stream = tool.terminal.attach("", Mode::Control, Framing::Raw(Replay::Retained)).unwrap();
    soon(tool.first("ab\x1b[6n".len())).await;
    tool.terminal.write(b"\x1b[9;9R").unwrap();
    soon(tool.first("ab\x1b[6n\x1b[c".len())).await;
    tool.terminal.write(b"\x1b[?1;2c\n").unwrap();
    tool.finished().await;
    assert_eq!(rest(stream.socket).await, b"ab\x1b[6n\x1b[c[9;9|[?1;2");
    assert_eq!(tool.terminal.stats().bytes_in, 6 + 8, "nobody else said anything");
}

/// Writes more than a socket holds and then asks; shows the answer.
const ASKS_LATE: &str = "printf ready; read -r _; head -c 900000 /dev/zero; printf '\\033[6n'; \
                         IFS= read -r -d R cursor; printf '%s' \"${cursor#?}\"; read -r _";

fn asks_late() -> Tool {
    let script = format!("exec bash -c '{}'", ASKS_LATE.replace('\'', "'\\''"));
    let tool = Tool::start(&script, Terminal::MAX_RING);
    tool.terminal.resize(Size::new(80, 24)).unwrap();
    tool
}

const ASKED: usize = "ready".len() + 900_000 + "\x1b[6n".len();

/// Waits until the screen is drawn that far: the question was found.
async fn asked(tool: &Tool) {
    soon(tool.first(ASKED)).await;
    tool.terminal.screen().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_that_leaves_was_not_shown_is_answered_by_the_broker() {
    let tool = asks_late();
    soon(tool.first(5)).await;
    let slow = tool.terminal.attach("", Mode::Control, Framing::Raw(Replay::Retained)).unwrap();
    tool.terminal.write(b"\n").unwrap();
    asked(&tool).await;
    assert_eq!(tool.terminal.stats().bytes_in, 1, "it is the client's to answer while it is there");
    drop(slow);
    let shown = soon(tool.first(ASKED + 4)).await;
    assert_eq!(&shown[ASKED..], b"[1;6");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_client_was_not_shown_another_answers_that_is() {
    let tool = asks_late();
    soon(tool.first(5)).await;
    let attach = || tool.terminal.attach("", Mode::Control, Framing::Raw(Replay::Retained));
    let (slow, mut quick) = (attach().unwrap(), attach().unwrap());
    tool.terminal.write(b"\n").unwrap();
    asked(&tool).await;
    drop(slow);
    tool.attached(1).await;
    let shown = tokio::task::spawn_blocking(move || {
        let mut shown = vec![0; ASKED];
        quick.socket.read_exact(&mut shown).map(|()| (shown, quick))
    });
    let (shown, quick) = soon(shown).await.unwrap().unwrap();
    assert!(shown.ends_with(b"\x1b[6n"));
    drop(quick);
    tool.attached(0).await;
    let waited = tool.terminal.read_wait(ASKED as u64, 1, 4 * ANSWERED_WITHIN).await.unwrap();
    assert!(waited.bytes.is_empty(), "who is shown a question has it to answer");
    assert_eq!(tool.terminal.stats().bytes_in, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_cut_leaves_its_questions_to_the_broker() {
    let script = ASKS_LATE.replace("; IFS=", "; head -c 9000000 /dev/zero; IFS=");
    let script = format!("exec bash -c '{}'", script.replace('\'', "'\\''"));
    let tool = Tool::start(&script, Terminal::MAX_RING);
    tool.terminal.resize(Size::new(80, 24)).unwrap();
    soon(tool.first(5)).await;
    let _slow = tool.terminal.attach("", Mode::Control, Framing::Raw(Replay::Retained)).unwrap();
    tool.terminal.write(b"\n").unwrap();
    tool.attached(0).await;
    let end = ASKED as u64 + 9_000_000;
    soon(async {
        while tool.terminal.stats().bytes_out < end {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let answer = tool.terminal.read_wait(end, 1, PATIENCE).await.unwrap();
    assert_eq!(answer.bytes, b"[");
}
