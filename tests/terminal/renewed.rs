//! A screen that there was no room for is known again when there is.

use st2_tools::{
    host::pty::Size,
    terminal::{Bounds, RingPool, ScreenError, Terminal, screen::Screen},
};

use crate::tool::{Tool, soon};

const SMALL: Size = Size { columns: 80, rows: 24, pixel_width: 0, pixel_height: 0 };
/// More characters than a screen with a model has.
const LARGE: Size = Size { columns: 1000, rows: 1000, pixel_width: 0, pixel_height: 0 };

async fn rows(tool: &Tool) -> Vec<String> {
    let view = tool.terminal.screen().await.unwrap();
    view.rows.into_iter().filter(|row| !row.is_empty()).collect()
}

/// Waits until it has written so much.
async fn written(tool: &Tool, count: u64) {
    soon(async {
        while tool.terminal.stats().bytes_out < count {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Makes it too large, and lets it write so much.
async fn blind(tool: &Tool, count: usize) {
    tool.terminal.resize(LARGE).unwrap();
    assert!(matches!(tool.terminal.screen().await, Err(ScreenError::NoModel)));
    tool.terminal.write(b"\n").unwrap();
    soon(tool.first(count)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_screen_that_was_too_large_is_drawn_from_what_is_retained() {
    let tool = Tool::start("printf 'one\r\n'; read -r _; printf 'two\r\n'; exec cat", 64 << 10);
    tool.terminal.resize(SMALL).unwrap();
    tool.first(5).await;
    assert_eq!(rows(&tool).await, ["one"]);
    blind(&tool, 10).await;
    tool.terminal.resize(SMALL).unwrap();
    assert_eq!(rows(&tool).await, ["one", "two"]);
    tool.terminal.write(b"three").unwrap();
    soon(tool.first(15)).await;
    assert_eq!(rows(&tool).await, ["one", "two", "three"]);
    let painted = String::from_utf8(tool.terminal.baseline().unwrap()).unwrap();
    assert!(painted.contains("two") && painted.contains("three"));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_output_was_dropped_it_is_blank_until_the_tool_draws_again() {
    let script = "printf 'one\r\n'; read -r _; head -c 100000 /dev/zero; printf two; exec cat";
    let tool = Tool::start(script, Terminal::MIN_RING);
    tool.terminal.resize(SMALL).unwrap();
    tool.first(5).await;
    tool.terminal.resize(LARGE).unwrap();
    tool.terminal.write(b"\n").unwrap();
    written(&tool, 5 + 100_000 + 3).await;
    tool.terminal.resize(SMALL).unwrap();
    assert_eq!(rows(&tool).await, Vec::<String>::new());
    tool.terminal.write(b"three").unwrap();
    written(&tool, 5 + 100_000 + 3 + 5).await;
    assert_eq!(rows(&tool).await, ["three"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_moment_without_memory_the_screen_is_there_for_who_asks() {
    let cost = Screen::cost(SMALL).unwrap();
    let pool = RingPool::new(cost + cost / 2);
    let bounds = Bounds { ring_bytes: Terminal::MIN_RING, ..Bounds::default() };
    let start = |word: &str| {
        let tool = Tool::start_with(&format!("printf {word}; exec cat"), bounds, &pool);
        tool.terminal.resize(SMALL).unwrap();
        tool
    };
    let first = start("first");
    first.first(5).await;
    assert_eq!(rows(&first).await, ["first"]);
    let second = start("second");
    second.first(6).await;
    assert!(matches!(second.terminal.screen().await, Err(ScreenError::NoModel)));
    drop(first);
    soon(async {
        while pool.screens_used() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(rows(&second).await, ["second"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_of_before_are_not_answered_again() {
    let script = "printf '\\033[6n'; read -r _; printf '\\033[6nwaits'; read -r _; printf '\\033[6n'; exec cat";
    let tool = Tool::start(script, 64 << 10);
    tool.terminal.resize(SMALL).unwrap();
    let accepted = async |count: u64| {
        soon(async {
            while tool.terminal.stats().bytes_in < count {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(tool.terminal.stats().bytes_in, count);
    };
    let answer = "\x1b[1;1R".len() as u64;
    accepted(answer).await;
    blind(&tool, 4 + 4 + 5).await;
    tool.terminal.resize(SMALL).unwrap();
    assert_eq!(rows(&tool).await, ["waits"]);
    tool.terminal.write(b"\n").unwrap();
    soon(tool.first(4 + 4 + 5 + 4)).await;
    accepted(answer + 1 + 1 + answer).await;
}
