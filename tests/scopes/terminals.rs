//! A machine that has no pseudoterminal left. The bed of this layer has few (`tests/bed/enter --ptys`).

use nix::{
    errno::Errno,
    fcntl::OFlag,
    pty::{PtyMaster, posix_openpt},
};
use serde_bytes::Bytes;
use st2_tools::client::Dict;

use crate::support::{
    Broker, error_of, manager, outcome, output_until, short, until, within, workspace,
};

/// More than the bed has, and no more: they are the machine's.
const MOST: usize = 200;

/// Takes every free pseudoterminal.
fn take_all() -> Vec<PtyMaster> {
    let mut taken = Vec::new();
    loop {
        match posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC) {
            Ok(pty) => taken.push(pty),
            Err(errno) => {
                assert_eq!(errno, Errno::ENOSPC);
                return taken;
            }
        }
        assert!(taken.len() < MOST, "the bed has no bound on pseudoterminals: use tests/run");
    }
}

#[tokio::test]
async fn without_a_free_pty_nothing_opens_and_nothing_is_left() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    outcome(&client.run(place.path(), &["true"]).await).await;
    let descriptors = broker.descriptors();
    let taken = take_all();
    let options = || within(place.path()).with("argv", vec!["true".to_owned()]);
    for _ in 0..3 {
        let refused = client.manager.open("command", &options()).await;
        let (name, text) = error_of(refused);
        assert_eq!(short(&name), "LaunchFailed");
        assert!(text.contains("pty") && text.contains("No space left"), "{text}");
    }
    assert!(broker.tmpdirs().is_empty());
    until("closed descriptors", || broker.descriptors() <= descriptors).await;
    until("no unit", || manager::session_units().is_empty()).await;
    let closed = client.manager.list_sessions(&Dict::new()).await.unwrap();
    assert_eq!(closed.len(), 1, "only the first is remembered: {closed:?}");
    drop(taken);
    let (session, _) = client.open("command", options()).await.unwrap();
    assert_eq!(outcome(&session).await.text("reason"), Some("exit"));
}

#[tokio::test]
async fn without_a_free_pty_a_request_that_allows_pipes_gets_them_and_is_told() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let argv = |script: &str| ["sh", "-c", script].map(str::to_owned).to_vec();
    let options = || {
        let script = "test -t 0 || echo $TERM; read -r word; echo $word >&2";
        within(place.path()).with("argv", argv(script)).with("io_fallback", true)
    };
    let (pty, info) = client.open("command", options()).await.unwrap();
    assert_eq!((info.text("io"), info.flag("io_fallback")), (Some("pty"), None));
    pty.kill().await.unwrap();

    let taken = take_all();
    let (session, info) = client.open("command", options()).await.unwrap();
    assert_eq!((info.text("io"), info.flag("io_fallback")), (Some("pipe"), Some(true)));
    assert_eq!((info.number("columns"), info.number("rows")), (Some(0), Some(0)));
    assert_eq!(session.io().await.unwrap(), "pipe");
    // Whoever asked for a terminal means to type.
    session.write(Bytes::new(b"typed\n"), &Dict::new()).await.unwrap();
    let ended = outcome(&session).await;
    assert_eq!((ended.text("reason"), ended.signed("code")), (Some("exit"), Some(0)));
    let read = async |stream: &str| {
        let options = Dict::new().with("stream", stream.to_owned());
        session.read(0, 99, &options).await.unwrap().0.into_vec()
    };
    assert_eq!(
        (read("output").await, read("stderr").await),
        (b"dumb\n".to_vec(), b"typed\n".to_vec())
    );

    let none = options().with("stdin", "closed").with("argv", argv("cat; echo over"));
    let (session, _) = client.open("command", none).await.unwrap();
    outcome(&session).await;
    assert_eq!(session.read(0, 99, &Dict::new()).await.unwrap().0.as_slice(), b"over\n");
    drop(taken);
}

#[tokio::test]
async fn a_scope_of_pipes_is_signalled_and_ended_as_any() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let script = "trap 'echo got USR1' USR1; sh -c 'echo child; exec sleep 1000'; \
                  sleep 1000 & exec sleep 1000";
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    let options = || within(place.path()).with("argv", argv.clone()).with("io", "pipe");
    let (session, _) = client.open("command", options()).await.unwrap();
    output_until(&session, "child").await;
    let before = broker.descriptors();
    session.signal("USR1").await.unwrap();
    output_until(&session, "got USR1").await;
    let ended = session.close(&Dict::new()).await.unwrap();
    assert_eq!(ended.text("reason"), Some("closed-by-owner"));
    assert_eq!(ended.number("survivors"), Some(0));
    assert!(broker.descriptors() < before, "its pipes are closed");
    let (_, _, _, eof) = session.read(0, 99, &Dict::new()).await.unwrap();
    assert!(eof, "and its output stays");
}
