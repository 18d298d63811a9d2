//! The client library against the real broker: streams, connectors, claims.

use std::{
    io::{ErrorKind, Read, Write},
    time::Duration,
};

use st2_tools::client::{
    AttachOptions, Client, Ending, Mode, OpenOptions, Refusal, Session, Start, Token,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use zbus::Connection;

use crate::{
    pane::Pane,
    support::{Broker, client::Killable, soon, workspace},
};

/// Opens `command` with this argv, in a workspace that is left to the session.
async fn open(connection: Connection, argv: &[&str]) -> (Session, Token) {
    let client = Client::over(connection).await.unwrap();
    let options = OpenOptions {
        argv: argv.iter().map(Into::into).collect(),
        workspace: Some(workspace().keep().to_str().unwrap().to_owned()),
        ..OpenOptions::default()
    };
    let opened = client.open("command", &options).await.unwrap();
    (opened.session, opened.token)
}

async fn read_until(screen: &mut DuplexStream, text: &str) -> String {
    let mut shown = Vec::new();
    let read = async {
        while !String::from_utf8_lossy(&shown).contains(text) {
            shown.push(screen.read_u8().await.unwrap());
        }
    };
    soon(text, read).await;
    String::from_utf8(shown).unwrap()
}

#[tokio::test]
async fn a_pane_that_is_killed_comes_back_to_its_shell() {
    let broker = Broker::private().await;
    let place = workspace();
    let doomed = Killable::on(&broker.bus).await;
    let connection = doomed.client.connection.clone();
    let pane = Pane::open(connection, place.path().to_str().unwrap()).await.unwrap();
    let token = pane.token.clone();

    let ((mut keys, typed), (shown, mut screen)) = (duplex(4096), duplex(4096));
    let carried = tokio::spawn(async move { pane.carry(typed, shown).await });
    keys.write_all(b"kept=$((6 * 7))\recho kept $kept\r").await.unwrap();
    read_until(&mut screen, "kept 42\r").await;
    doomed.kill();
    carried.abort();

    let back = Pane::claim(broker.bus.connect().await, &token).await.unwrap().unwrap();
    assert_ne!(back.token, token, "the token that was shown is dead");
    let ((mut keys, typed), (shown, mut screen)) = (duplex(4096), duplex(4096));
    let carried = tokio::spawn(async move { back.carry(typed, shown).await });
    let before = read_until(&mut screen, "kept 42").await;
    assert!(before.contains("kept=$((6 * 7))"), "all that is on the screen: {before:?}");
    keys.write_all(b"echo again $kept; exit 7\r").await.unwrap();
    read_until(&mut screen, "again 42\r").await;
    let outcome = soon("the end", carried).await.unwrap().unwrap();
    assert_eq!((outcome.ending, outcome.reason.as_str()), (Ending::Exited(7), "exit"));
    assert!(outcome.bytes_out > 0 && !outcome.unseen);

    let late = Pane::claim(broker.bus.connect().await, &token).await;
    assert_eq!(late.err().unwrap().refusal(), Some(Refusal::BadToken));
}

#[tokio::test]
async fn an_attached_stream_has_the_size_and_the_start_that_were_asked_for() {
    let broker = Broker::private().await;
    let script = "read -r _; stty size; read -r _";
    let (session, _) = open(broker.bus.connect().await, &["bash", "-c", script]).await;
    let options = AttachOptions { size: Some((97, 31)), ..AttachOptions::default() };
    let mut attached = session.attach(&options).await.unwrap();
    assert_eq!((attached.size(), attached.begin()), (Some((97, 31)), None));
    attached.write_all(b"\n").await.unwrap();
    let (mut shown, end) = (Vec::new(), b"\r\n31 97\r\n");
    while !shown.ends_with(end) {
        shown.push(soon("the size", attached.read_u8()).await.unwrap());
    }
    assert!(shown.len() > end.len(), "the screen comes first");

    let mode = Mode::Observe;
    let late = AttachOptions { mode, start: Start::Cursor(2), ..AttachOptions::default() };
    let mut late = session.attach(&late).await.unwrap();
    assert_eq!(late.begin(), Some(2));
    let now = AttachOptions { mode, start: Start::Now, ..AttachOptions::default() };
    let mut now = session.attach(&now).await.unwrap();
    let mut shown = [0; 7];
    soon("what was shown", late.read_exact(&mut shown)).await.unwrap();
    assert_eq!(&shown, b"31 97\r\n");
    attached.write_all(b"\n").await.unwrap();
    let mut rest = Vec::new();
    soon("the end of the stream", now.read_to_end(&mut rest)).await.unwrap();
    assert_eq!(rest, b"\r\n");
    assert_eq!(soon("the end", session.ended()).await.unwrap().ending, Ending::Exited(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connector_attaches_again_and_again_from_a_thread_without_a_runtime() {
    let broker = Broker::private().await;
    let (session, _) = open(broker.bus.connect().await, &["cat"]).await;
    let options = AttachOptions { start: Start::Now, ..AttachOptions::default() };
    let connector = session.connector(options);
    let widget = std::thread::spawn(move || {
        for round in 0..3 {
            let mut stream = connector.connect().unwrap();
            let line = format!("round {round}\n");
            stream.write_all(line.as_bytes()).unwrap();
            // What is typed is shown, and then what cat(1) writes.
            let mut shown = vec![0; 2 * (line.len() + 1)];
            stream.read_exact(&mut shown).unwrap();
            let shown = String::from_utf8(shown).unwrap();
            assert_eq!(shown.matches(line.trim()).count(), 2, "{shown:?}");
        }
        connector
    });
    let widget = tokio::task::spawn_blocking(move || widget.join().unwrap());
    let connector = soon("three rounds", widget).await.unwrap();

    session.kill().await.unwrap();
    session.proxy().forget().await.unwrap();
    let refused = tokio::task::spawn_blocking(move || connector.connect()).await.unwrap();
    let refused = refused.unwrap_err();
    assert_eq!(refused.refusal(), Some(Refusal::NoSuchSession));
    assert_eq!(std::io::Error::from(refused).kind(), ErrorKind::NotFound);
}

#[test]
fn a_connector_does_not_wait_for_ever() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (broker, connector) = runtime.block_on(async {
        let broker = Broker::private().await;
        let (session, _) = open(broker.bus.connect().await, &["cat"]).await;
        (broker, session.connector(AttachOptions::default()))
    });
    broker.signal(nix::sys::signal::Signal::SIGSTOP);
    let hanging = connector.clone().within(Duration::from_millis(50)).connect();
    assert!(hanging.unwrap_err().to_string().contains("no answer within 50ms"));
    broker.signal(nix::sys::signal::Signal::SIGCONT);
    assert!(connector.connect().is_ok());
    drop(broker);
    drop(runtime);
    let ended = connector.connect().unwrap_err();
    assert_eq!(std::io::Error::from(ended).kind(), ErrorKind::ConnectionReset);
}
