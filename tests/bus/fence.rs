//! A claim takes a session from its former owner, also where it comes while a stream is being given to that one.

use std::{
    io::{ErrorKind, Read},
    os::{fd::OwnedFd, unix::net::UnixStream},
    time::Duration,
};

use futures_util::FutureExt;
use nix::sys::signal::Signal;
use st2_tools::client::{Dict, session::SessionProxy};
use zbus::{Connection, fdo::DBusProxy};

use crate::support::{
    Start, error_of, output_until, short, soon, tools::policy_with, within, workspace,
};

/// A shell's script on a terminal that may be held.
const PANE: &str =
    "title = \"pane\"\ncommand = [\"bash\", \"-c\"]\narguments = \"any\"\ndirect = true\n";

/// Makes a call, and waits until the bus has it, whether its receiver reads or not.
async fn send<T: Send + 'static>(
    connection: &Connection,
    call: impl Future<Output = T> + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    let mut call = Box::pin(call);
    assert!(call.as_mut().now_or_never().is_none(), "answered by a broker that is stopped");
    // The bus answers a client's messages in their order.
    DBusProxy::new(connection).await.unwrap().get_id().await.unwrap();
    tokio::spawn(call)
}

/// Has an owner attach and another claim from it, so that the broker finds both calls at once.
async fn claimed_while_attaching(direct: bool, private: bool, options: impl Fn() -> Dict) {
    let policy = policy_with(&[("pane", PANE)]);
    let broker = Start::default().policy(policy.path()).private().await;
    let place = workspace();
    for _ in 0..10 {
        let (owner, heir) = (broker.client().await, broker.client().await);
        let argv = vec!["stty -echo; printf ready; exec cat".to_owned()];
        let open = within(place.path()).with("argv", argv).with("private", private);
        let (session, info) = owner.open("pane", open).await.unwrap();
        output_until(&session, "ready").await;
        let token = info.text("token").unwrap().to_owned();
        let path = session.inner().path().to_string();
        let theirs = heir.session(&path).await;
        // Who called before is not looked up again: both calls take the same way.
        assert_eq!(theirs.phase().await.unwrap(), "running");

        broker.signal(Signal::SIGSTOP);
        let (session, options) = (session.clone(), options());
        let attach = async move { session.attach(&options).await };
        let attach = send(&owner.connection, attach).await;
        let manager = heir.manager.clone();
        let claim = async move { manager.claim_lease(&token).await };
        let claim = send(&heir.connection, claim).await;
        broker.signal(Signal::SIGCONT);

        soon("the claim", claim).await.unwrap().unwrap();
        match soon("the stream", attach).await.unwrap() {
            Ok((stream, _)) => ends(OwnedFd::from(stream).into()),
            refused => assert_eq!(short(&error_of(refused).0), "NotOwner"),
        }
        assert_eq!(theirs.bytes_in().await.unwrap(), 0);
        nobody_is_attached(&theirs).await;
        if direct {
            assert!(!theirs.direct().await.unwrap());
        }
        soon("the end", theirs.kill()).await.unwrap();
    }
}

/// Reads a stream to its end, which must come.
fn ends(mut stream: UnixStream) {
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut shown = Vec::new();
    let ended = stream.read_to_end(&mut shown);
    assert!(
        !matches!(&ended, Err(error) if error.kind() == ErrorKind::WouldBlock),
        "it goes on after the claim"
    );
}

async fn nobody_is_attached(session: &SessionProxy<'_>) {
    soon("the end of the stream", async { while session.attached().await.unwrap() > 0 {} }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_attaches_while_it_is_claimed_from_controls_nothing() {
    claimed_while_attaching(false, false, Dict::new).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_attaches_while_a_private_session_is_claimed_from_it_sees_nothing() {
    claimed_while_attaching(false, true, || Dict::new().with("mode", "observe")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_takes_a_hold_while_it_is_claimed_from_holds_nothing() {
    claimed_while_attaching(true, false, || Dict::new().with("framing", "direct")).await;
}
