//! What a tool asks of terminals: one party answers, the client's terminal or else the broker.

use st2_tools::{
    host::pty::Size,
    terminal::{Framing, Mode, Replay, Terminal},
};

use crate::{
    frames::*,
    streams::rest,
    tool::{Tool, soon},
};

/// Asks for the cursor's position twice and, with the answer, for what the terminal is; shows the answers, and waits.
const ASKS: &str = "printf 'ab\\033[6n'; IFS= read -r -d R cursor; printf '\\033[c'; IFS= read -r -d c what; \
                    printf '%s|%s' \"${cursor#?}\" \"${what#?}\"; read -r _";

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
