//! Whose size is in force beside framed and raw streams, and what a framed one is told when it asks.

use std::os::{fd::OwnedFd, unix::net::UnixStream};

use st2_tools::client::{AttachOptions, Dict, Framing, ReadOptions, Session};

use super::readers::open;
use crate::support::{
    Broker,
    frames::{ATTACH, DATA, Frames, GEOMETRY, RESIZE, SCREEN, STATUS, size},
    lives, soon,
};

/// Connects with frames, from a terminal of this size where one is told.
async fn connect(session: &Session, size: Option<(u16, u16)>) -> Frames {
    let options = AttachOptions { framing: Framing::Pty, size, ..AttachOptions::default() };
    Frames::over(session.attach(&options).await.unwrap())
}

/// Attaches with frames from a terminal of this size.
async fn framed(session: &Session, columns: u16, rows: u16) -> Frames {
    let mut frames = connect(session, None).await;
    frames.send(ATTACH, &size(columns, rows)).await;
    frames
}

/// What the next frame of this kind says.
async fn next(frames: &mut Frames, kind: u8) -> Vec<u8> {
    loop {
        let (got, payload) = frames.next().await.unwrap();
        if got == kind {
            return payload;
        }
    }
}

/// What the session tells of itself when it is asked.
async fn status(frames: &mut Frames) -> serde_json::Value {
    frames.send(STATUS, b"").await;
    serde_json::from_slice(&next(frames, STATUS).await).unwrap()
}

/// Waits until this is the size in force.
async fn sized(session: &Session, columns: u16, rows: u16) {
    let session = session.proxy();
    let now = async || {
        (session.columns().await.unwrap(), session.rows_count().await.unwrap()) == (columns, rows)
    };
    soon(&format!("{columns} × {rows}"), async { while !now().await {} }).await;
}

/// A raw controlling stream from a terminal of this size.
async fn raw(session: &Session, columns: u16, rows: u16) -> UnixStream {
    let session = session.proxy();
    let options = Dict::new().with("columns", columns).with("rows", rows);
    let (stream, info) = session.attach(&options).await.unwrap();
    let size = (session.columns().await.unwrap(), session.rows_count().await.unwrap());
    let told = ["columns", "rows"].map(|key| u16::try_from(info.number(key).unwrap()).unwrap());
    assert_eq!((told[0], told[1]), size);
    OwnedFd::from(stream).into()
}

async fn cat(broker: &Broker) -> Session {
    open(broker.bus.connect().await, "exec cat", 4096).await
}

#[tokio::test]
async fn a_status_tells_of_the_session_as_it_is_in_that_moment() {
    let broker = Broker::private().await;
    let script = "stty -echo; printf ready; read -r _; printf more; exec cat";
    let session = open(broker.bus.connect().await, script, 4096).await;
    let wait = ReadOptions { wait: Some(std::time::Duration::from_secs(10)), ..Default::default() };
    while soon("output", session.read(0, 9, &wait)).await.unwrap().next < 5 {}
    let mut frames = framed(&session, 101, 31).await;
    frames.send(STATUS, b"").await;
    assert_eq!(frames.expect(GEOMETRY).await, size(101, 31));
    frames.expect(SCREEN).await;
    let told: serde_json::Value = serde_json::from_slice(&frames.expect(STATUS).await).unwrap();
    let pid = told["pid"].as_u64().unwrap();
    let wanted = serde_json::json!({
        "id": session.id().to_string(),
        "phase": "running",
        "pid": pid,
        "columns": 101,
        "rows": 31,
        "bytes_out": 5,
        "bytes_in": 0,
        "bytes_dropped": 0,
    });
    assert_eq!(told, wanted);
    assert!(lives(i32::try_from(pid).unwrap()));

    frames.send(DATA, b"x\n").await;
    assert_eq!(frames.until("more").await, "more");
    frames.send(RESIZE, &size(90, 20)).await;
    let told = status(&mut frames).await;
    let told = ["columns", "rows", "bytes_out", "bytes_in"].map(|key| told[key].as_u64());
    assert_eq!(told, [Some(90), Some(20), Some(9), Some(2)]);
}

#[tokio::test]
async fn the_size_of_a_raw_stream_is_its_wish_for_as_long_as_it_is_attached() {
    let broker = Broker::private().await;
    let session = cat(&broker).await;
    let mut frames = framed(&session, 80, 30).await;
    next(&mut frames, GEOMETRY).await;
    sized(&session, 80, 30).await;

    let wide = raw(&session, 200, 60).await;
    sized(&session, 80, 30).await;
    let high = raw(&session, 70, 60).await;
    sized(&session, 70, 30).await;
    drop(high);
    sized(&session, 80, 30).await;
    frames.send(RESIZE, &size(300, 90)).await;
    sized(&session, 200, 60).await;
    drop(wide);
    sized(&session, 300, 90).await;
    drop(frames);
    soon("nobody", async { while session.proxy().attached().await.unwrap() > 0 {} }).await;
    sized(&session, 300, 90).await;
}

#[tokio::test]
async fn a_resize_is_in_force_at_once_and_what_its_caller_s_raw_streams_wish_from_then_on() {
    let broker = Broker::private().await;
    let session = cat(&broker).await;
    let _raw = raw(&session, 80, 30).await;
    let mut frames = framed(&session, 90, 40).await;
    next(&mut frames, GEOMETRY).await;
    sized(&session, 80, 30).await;
    session.resize(120, 50).await.unwrap();
    sized(&session, 120, 50).await;
    frames.send(RESIZE, &size(100, 60)).await;
    sized(&session, 100, 50).await;
    drop(frames);
    sized(&session, 120, 50).await;
}

#[tokio::test]
async fn a_framed_stream_that_tells_no_size_has_that_of_its_options() {
    let broker = Broker::private().await;
    let session = cat(&broker).await;
    let _raw = raw(&session, 80, 30).await;
    let mut frames = connect(&session, Some((70, 90))).await;
    sized(&session, 80, 30).await;
    frames.send(ATTACH, b"").await;
    assert_eq!(next(&mut frames, GEOMETRY).await, size(70, 30));
    let mut other = connect(&session, Some((70, 90))).await;
    other.send(ATTACH, &size(60, 20)).await;
    assert_eq!(next(&mut other, GEOMETRY).await, size(60, 20), "what it says itself goes first");
}
