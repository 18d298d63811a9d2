//! Framed streams: what is sent in which order, who controls, what size is in force, and how a stream ends.

use std::time::Duration;

use st2_tools::{
    host::pty::Size,
    terminal::{Framing, Mode, Replay, Terminal},
};
use tokio::time::timeout;

use crate::{
    frames::*,
    judge::Judge,
    streams::rest,
    tool::{Tool, soon},
};

fn sized(script: &str, ring_bytes: usize) -> Tool {
    let tool = Tool::start(script, ring_bytes);
    tool.terminal.resize(Size::new(80, 24)).unwrap();
    tool
}

fn size_of(tool: &Tool) -> (u16, u16) {
    let size = tool.terminal.appearance().borrow().size;
    (size.columns, size.rows)
}

#[tokio::test]
async fn a_stream_is_size_screen_output_and_exit() {
    let mut tool = sized("printf 'before\\r\\n'; read -r _; printf after", Terminal::MIN_RING);
    tool.first(8).await;
    let mut client = Client::attach(&tool, 60, 20);
    assert_eq!(client.next().await, Some(geometry(60, 20)));
    let screen = client.expect(SCREEN).await;
    assert!(String::from_utf8(screen).unwrap().contains("before"));
    client.send(DATA, b"\n");
    tool.finished().await;
    let wanted = vec![(DATA, b"after".to_vec()), (EXIT, vec![0, 0, 0, 7])];
    assert_eq!(client.rest().await, wanted);
    tool.attached(0).await;

    let mut late = Client::attach(&tool, 10, 5);
    assert_eq!(late.next().await, Some(geometry(60, 20)), "no size is set after the end");
    let frames = late.rest().await;
    assert_eq!(frames.last(), Some(&(EXIT, vec![0, 0, 0, 7])));
    let shown: Vec<u8> =
        frames.into_iter().filter(|(kind, _)| *kind != EXIT).flat_map(|(_, b)| b).collect();
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("before") && shown.contains("after"), "{shown:?}");
}

#[tokio::test]
async fn the_least_of_each_axis_is_in_force_and_stays() {
    let tool = sized("exec cat", Terminal::MIN_RING);
    let mut wide = Client::attach(&tool, 100, 20);
    assert_eq!(wide.next().await, Some(geometry(100, 20)));
    wide.expect(SCREEN).await;
    let mut high = Client::attach(&tool, 70, 60);
    assert_eq!(high.next().await, Some(geometry(70, 20)));
    high.expect(SCREEN).await;
    assert_eq!(wide.next().await, Some(geometry(70, 20)));
    high.send(RESIZE, &size(90, 10));
    assert_eq!(wide.next().await, Some(geometry(90, 10)));
    assert_eq!(high.next().await, Some(geometry(90, 10)));
    high.send(RESIZE, &size(0, u16::MAX));
    assert_eq!(high.next().await, Some(geometry(1, 20)), "brought within 1..=1000");
    high.send(DETACH, b"");
    assert_eq!(wide.next().await, Some(geometry(1, 20)));
    assert_eq!(wide.next().await, Some(geometry(100, 20)));
    drop(wide);
    tool.attached(0).await;
    assert_eq!(size_of(&tool), (100, 20));
}

#[tokio::test]
async fn an_unchanged_size_is_no_signal() {
    // It sets its trap once it has its size.
    let script = "stty -echo; read -r _; trap 'printf W' WINCH; printf ready; \
                  while :; do read -r word && printf \"$word\"; done";
    let tool = sized(script, Terminal::MIN_RING);
    tool.terminal.write(b"\n").unwrap();
    let mut shown = Vec::new();
    while !shown.ends_with(b"ready") {
        let at = shown.len() as u64;
        shown.extend(tool.terminal.read_wait(at, 9, super::tool::PATIENCE).await.unwrap().bytes);
    }
    let mut client = Client::attach(&tool, 80, 24);
    client.expect(GEOMETRY).await;
    client.expect(SCREEN).await;
    client.send(RESIZE, &size(80, 24));
    assert!(!tool.terminal.resize(Size::new(80, 24)).unwrap());
    client.send(DATA, b"one\n");
    assert_eq!(client.until("one").await, b"one");
    client.send(RESIZE, &size(81, 24));
    assert_eq!(client.next().await, Some(geometry(81, 24)));
    client.send(DATA, b"two\n");
    assert_eq!(client.until("two").await, b"Wtwo");
}

#[tokio::test]
async fn who_peeks_sees_and_does_nothing() {
    let tool = sized("printf '\\033[31mred\\033[m'; exec cat", Terminal::MIN_RING);
    tool.first(11).await;
    let mut plain = Client::connect(&tool, Mode::Control);
    plain.send(RESIZE, &size(5, 5));
    plain.send(PEEK, &[1]);
    assert_eq!(plain.next().await, Some(geometry(80, 24)));
    assert_eq!(plain.expect(SCREEN).await, b"red");
    let mut retained = Client::connect(&tool, Mode::Observe);
    retained.send(PEEK, &[2]);
    retained.expect(GEOMETRY).await;
    assert!(retained.expect(SCREEN).await.ends_with(b"\x1b[31mred\x1b[m"));
    let mut observer = Client::connect(&tool, Mode::Observe);
    observer.send(ATTACH, &size(5, 5));
    assert_eq!(observer.next().await, Some(geometry(80, 24)), "the bus lets it look only");
    observer.expect(SCREEN).await;
    for client in [&mut plain, &mut retained, &mut observer] {
        client.send(DATA, b"x");
        client.send(RESIZE, &size(9, 9));
        client.send(RESET_INPUT_MODES, b"");
        client.send(ATTACH, &size(9, 9));
        client.send(STATUS, b"");
        assert_eq!(client.expect(STATUS).await, b"{\"phase\":\"running\"}");
    }
    assert_eq!((size_of(&tool), tool.terminal.stats().bytes_in), ((80, 24), 0));
    tool.terminal.write(b"y").unwrap();
    for client in [&mut plain, &mut retained, &mut observer] {
        assert_eq!(client.next().await, Some((DATA, b"y".to_vec())));
    }
}

#[tokio::test]
async fn who_peeks_at_all_that_is_retained_may_have_it_as_text() {
    let script = "printf '\\033]2;title\\007\\033[1;31mred\\033[m\\t\\303\\251\\377\\016\\n'; seq 100; printf end";
    let mut tool = sized(script, Terminal::MIN_RING);
    tool.finished().await;
    let mut client = Client::connect(&tool, Mode::Observe);
    client.send(PEEK, &[3]);
    client.expect(GEOMETRY).await;
    let numbers: String = (1..=100).map(|number| format!("{number}\n")).collect();
    let shown = String::from_utf8(client.expect(SCREEN).await).unwrap();
    assert_eq!(shown, format!("red\té\u{fffd}\n{numbers}end"));
    assert_eq!(client.rest().await, [(EXIT, vec![0, 0, 0, 7])]);
}

#[tokio::test]
async fn what_nobody_knows_is_passed_over_and_too_much_ends_one_stream_only() {
    let tool = sized("exec cat", Terminal::MIN_RING);
    let [mut good, mut bad] = [Client::attach(&tool, 80, 24), Client::attach(&tool, 80, 24)];
    for client in [&mut good, &mut bad] {
        client.expect(GEOMETRY).await;
        client.expect(SCREEN).await;
    }
    for kind in [8, 9, 13, 77, 255, EXIT, SCREEN, GEOMETRY, CONNECTION_ERROR] {
        good.send(kind, &[7; 5000]);
    }
    good.send(STATUS, b"");
    assert_eq!(good.expect(STATUS).await, b"{\"phase\":\"running\"}", "the first answer of all");
    bad.send_raw(&[DATA, 2, 0, 0, 1]);
    assert_eq!(bad.next().await, None);
    good.send(DATA, b"still");
    assert_eq!(good.until("still").await, b"still");
}

#[tokio::test]
async fn leaving_in_whatever_way_ends_no_session() {
    let tool = sized("exec cat", Terminal::MIN_RING);
    let mut client = Client::attach(&tool, 80, 24);
    client.send(DETACH, b"");
    assert_eq!(
        client.rest().await.last().map(|(kind, _)| *kind).filter(|kind| *kind == EXIT),
        None
    );
    drop(Client::attach(&tool, 80, 24));
    tool.attached(0).await;
    tool.terminal.write(b"alive").unwrap();
    soon(tool.first(5)).await;
}

#[tokio::test]
async fn modes_that_a_crashed_program_left_are_turned_off_for_all() {
    let tool = sized("printf '\\033[?1003h\\033[?2004h\\033[?1h'; exec cat", Terminal::MIN_RING);
    tool.first(21).await;
    let mut client = Client::attach(&tool, 80, 24);
    client.expect(GEOMETRY).await;
    let screen = String::from_utf8(client.expect(SCREEN).await).unwrap();
    assert!(screen.contains("\x1b[?1003h") && screen.contains("\x1b[?2004h"));
    client.send(RESET_INPUT_MODES, b"");
    assert!(client.until("\x1b[?2004l").await.starts_with(b"\x1b[?9l\x1b[?1000l"));
    tool.terminal.screen().await.unwrap();
    let baseline = String::from_utf8(tool.terminal.baseline().unwrap()).unwrap();
    assert!(
        !baseline.contains("1003") && !baseline.contains("2004") && baseline.contains("\x1b[?1h")
    );
}

#[tokio::test]
async fn modes_are_turned_off_in_no_session_that_is_over() {
    let mut tool = sized("printf hello", Terminal::MIN_RING);
    tool.finished().await;
    let before = tool.terminal.stats();
    let mut client = Client::connect(&tool, Mode::Control);
    let attach = [&[ATTACH, 0, 0, 0, 4][..], &size(80, 24)].concat();
    client.send_raw(&[attach, [RESET_INPUT_MODES, 0, 0, 0, 0].repeat(800)].concat());
    assert_eq!(client.rest().await.last(), Some(&(EXIT, vec![0, 0, 0, 7])));
    assert_eq!(tool.terminal.stats(), before);
    let chunk = tool.terminal.read(0, usize::MAX).unwrap();
    assert_eq!((&*chunk.bytes, chunk.eof), (&b"hello"[..], true));
}

/// A client that looked away until it was cut off.
async fn cut_off(tool: &mut Tool) -> Client {
    let mut slow = Client::attach(tool, 80, 24);
    slow.expect(GEOMETRY).await;
    slow.expect(SCREEN).await;
    slow.send(DATA, b"\n");
    tool.finished().await;
    slow
}

const FLOOD: &str = "stty opost onlcr; read -r _; yes | head -c 20M";

#[tokio::test]
async fn a_client_that_looks_away_for_longer_is_still_told() {
    let mut tools = [sized(FLOOD, Terminal::MIN_RING), sized("read -r _; exit", 4096)];
    let [flood, quiet] = &mut tools;
    let (mut slow, mut late) = (cut_off(flood).await, cut_off(quiet).await);
    let (flooded, ended) = (flood.terminal.attached(), quiet.terminal.attached());
    let away = Duration::from_secs(6);
    for mut attached in [flooded, ended] {
        timeout(away / 2, attached.wait_for(|count| *count == 0)).await.ok();
    }
    assert_eq!(slow.rest().await.last(), Some(&(CONNECTION_ERROR, vec![0])));
    assert_eq!(late.rest().await, [(EXIT, vec![0, 0, 0, 7])]);
}

#[tokio::test]
async fn what_a_client_types_once_it_is_cut_off_is_not_typed_when_it_looks_again() {
    let mut tool = sized(&format!("{FLOOD}; printf done; exec cat"), Terminal::MIN_RING);
    let mut slow = Client::attach(&tool, 80, 24);
    slow.expect(GEOMETRY).await;
    slow.expect(SCREEN).await;
    slow.send(DATA, b"\n");
    soon(async {
        while tool.terminal.stats().bytes_out < (30 << 20) + 4 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    slow.send(DATA, b"late");
    assert_eq!(slow.rest().await.last(), Some(&(CONNECTION_ERROR, vec![0])));
    tool.attached(0).await;
    assert_eq!(tool.terminal.stats().bytes_in, 1);
    tool.kill();
}

#[tokio::test]
#[ignore = "takes a minute"]
async fn a_client_that_never_looks_costs_a_place_for_a_minute() {
    let mut tool = sized(FLOOD, Terminal::MIN_RING);
    let slow = cut_off(&mut tool).await;
    let mut attached = tool.terminal.attached();
    let gone = timeout(Duration::from_secs(90), attached.wait_for(|count| *count == 0)).await;
    gone.expect("its place is free").unwrap();
    let shown = rest(slow.into_inner()).await.len();
    assert!(shown < 1 << 20, "only what its socket held: {shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_client_is_told_and_nobody_else_notices() {
    let mut tool = sized("stty opost onlcr; read -r _; yes | head -c 20M", Terminal::MIN_RING);
    let mut slow = Client::attach(&tool, 80, 24);
    let quick = tool.terminal.attach("", Mode::Control, Framing::Raw(Replay::Nothing)).unwrap();
    let quick = tokio::spawn(rest(quick.socket));
    slow.expect(GEOMETRY).await;
    slow.expect(SCREEN).await;
    slow.send(DATA, b"\n");
    soon(async {
        while tool.terminal.stats().bytes_out < 12 << 20 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let frames = slow.rest().await;
    tool.finished().await;
    assert_eq!(soon(quick).await.unwrap().len(), 30 << 20);
    assert_eq!(frames.len(), 2, "output, and why it ends");
    assert!(frames[0].1.len() < 1 << 20 && frames[0].1.starts_with(b"y\r\ny\r\n"));
    assert_eq!(frames[1], (CONNECTION_ERROR, vec![0]));
}

/// Cuts in the middle of a flood: what is painted and what follows are one.
#[tokio::test(flavor = "multi_thread")]
async fn a_cut_in_a_flood_loses_and_repeats_nothing() {
    let script = "stty opost onlcr; for n in $(seq 3000); do printf '\\033[3%dm%08d \\033[7m漢\\033[m' $((n % 8)) $n; \
                  [ $((n % 5)) = 0 ] && echo; done";
    for _ in 0..5 {
        let mut tool = sized(script, Terminal::MAX_RING);
        let mut streams = Vec::new();
        for kilobyte in [1, 10, 20, 50] {
            soon(tool.first(kilobyte << 10)).await;
            let framing = Framing::Raw(Replay::Screen);
            let stream = tool.terminal.attach("", Mode::Observe, framing).unwrap();
            streams.push(tokio::spawn(rest(stream.socket)));
        }
        tool.finished().await;
        let mut wanted = Judge::new(80, 24, true);
        wanted.feed(&tool.terminal.read(0, usize::MAX).unwrap().bytes);
        for stream in streams {
            let mut got = Judge::new(80, 24, true);
            got.feed(&soon(stream).await.unwrap());
            assert_eq!(got.verdict(), wanted.verdict());
        }
    }
}
