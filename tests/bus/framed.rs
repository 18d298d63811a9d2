//! Control over a session by frames, as a client of the bus has it.

use st2_tools::client::{
    AttachOptions, Client, ClientError, Ending, Framing, Mode, ReadOptions, Session,
};

use super::readers::open;
use crate::support::{
    Broker,
    frames::{ATTACH, DATA, DETACH, EXIT, Frames, GEOMETRY, PEEK, RESIZE, SCREEN, size},
    soon,
};

/// Says its size at each line that it reads, and ends with `end`.
const TOOL: &str = "stty -echo; printf ready; while read -r word; do \
    [ \"$word\" = end ] && exit 3; echo \"$word $(stty size)\"; done";

async fn attach(session: &Session, mode: Mode) -> Result<Frames, ClientError> {
    let options = AttachOptions { mode, framing: Framing::Pty, ..AttachOptions::default() };
    session.attach(&options).await.map(Frames::over)
}

/// Attaches with control, from a terminal of this size.
async fn control(session: &Session, (columns, rows): (u16, u16)) -> Frames {
    let mut frames = attach(session, Mode::Control).await.unwrap();
    frames.send(ATTACH, &size(columns, rows)).await;
    assert_eq!(frames.expect(GEOMETRY).await, size(columns, rows));
    frames
}

/// Waits for the tool to be ready.
async fn ready(session: &Session) {
    let wait = ReadOptions { wait: Some(std::time::Duration::from_secs(10)), ..Default::default() };
    let mut shown = Vec::new();
    while shown != b"ready" {
        let piece = soon("output", session.read(shown.len() as u64, 5, &wait)).await.unwrap();
        shown.extend(piece.data);
    }
}

#[tokio::test]
async fn a_session_is_typed_to_resized_left_and_ended_in_frames() {
    let broker = Broker::private().await;
    let session = open(broker.bus.connect().await, TOOL, 4096).await;
    ready(&session).await;
    let mut first = control(&session, (101, 31)).await;
    assert!(String::from_utf8(first.expect(SCREEN).await).unwrap().contains("ready"));
    first.send(DATA, b"one\n").await;
    assert_eq!(first.until("\r\n").await, "one 31 101\r\n");
    first.send(RESIZE, &size(90, 30)).await;
    assert_eq!(first.expect(GEOMETRY).await, size(90, 30));
    first.send(DATA, b"two\n").await;
    assert_eq!(first.until("\r\n").await, "two 30 90\r\n");
    assert_eq!(session.proxy().columns().await.unwrap(), 90);

    first.send(DATA, b"three\n").await;
    first.send(DETACH, b"").await;
    drop(first);
    let mut watcher = attach(&session, Mode::Observe).await.unwrap();
    watcher.send(PEEK, &[2]).await;
    assert_eq!(watcher.expect(GEOMETRY).await, size(90, 30), "it stays");
    let mut shown = String::from_utf8(watcher.expect(SCREEN).await).unwrap();
    while !shown.ends_with("three 30 90\r\n") {
        shown.push_str(&String::from_utf8(watcher.expect(DATA).await).unwrap());
    }

    let mut second = control(&session, (70, 20)).await;
    second.expect(SCREEN).await;
    assert_eq!(watcher.expect(GEOMETRY).await, size(70, 20));
    second.send(DATA, b"end\n").await;
    for frames in [&mut watcher, &mut second] {
        assert_eq!(frames.expect(EXIT).await, 3_i32.to_be_bytes());
        assert_eq!(frames.next().await, None);
    }
    let outcome = soon("the end", session.ended()).await.unwrap();
    assert_eq!(outcome.ending, Ending::Exited(3));
    assert_eq!(session.proxy().bytes_in().await.unwrap(), 18);
}

#[tokio::test]
async fn text_is_sent_without_attaching() {
    let broker = Broker::private().await;
    let session = open(broker.bus.connect().await, TOOL, 4096).await;
    ready(&session).await;
    let mut sender = attach(&session, Mode::Control).await.unwrap();
    sender.send(DATA, b"en").await;
    sender.send(DATA, b"d\n").await;
    drop(sender);
    let outcome = soon("the end", session.ended()).await.unwrap();
    assert_eq!(outcome.ending, Ending::Exited(3));
}

#[tokio::test]
async fn a_claim_ends_the_frames_of_the_old_owner_and_nothing_else() {
    let broker = Broker::private().await;
    let old = Client::over(broker.bus.connect().await).await.unwrap();
    let options = st2_tools::client::OpenOptions {
        argv: ["sh", "-c", TOOL].map(Into::into).to_vec(),
        workspace: Some(crate::support::workspace().keep().to_str().unwrap().to_owned()),
        ..Default::default()
    };
    let opened = old.open("command", &options).await.unwrap();
    ready(&opened.session).await;
    let mut fenced = control(&opened.session, (101, 31)).await;
    fenced.expect(SCREEN).await;
    // It has not said yet what it is for, and may type all the same.
    let mut silent = attach(&opened.session, Mode::Control).await.unwrap();

    let heir = Client::over(broker.bus.connect().await).await.unwrap();
    let claimed = heir.claim(&opened.token).await.unwrap();
    let session = &claimed.sessions[0];
    for frames in [&mut fenced, &mut silent] {
        assert_eq!(frames.next().await, None, "without EXIT: the session goes on");
        assert!(frames.try_send(DATA, b"end\n").await.is_err());
    }
    let mut heirs = control(session, (80, 25)).await;
    heirs.expect(SCREEN).await;
    heirs.send(DATA, b"mine\n").await;
    assert_eq!(heirs.until("\r\n").await, "mine 25 80\r\n");
    assert_eq!(session.proxy().bytes_in().await.unwrap(), 5);
    heirs.send(DATA, b"end\n").await;
    assert_eq!(heirs.expect(EXIT).await, 3_i32.to_be_bytes());
}
