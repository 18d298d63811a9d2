//! Direct mode over the bus: who may hold a terminal, what others see of it, and that no session depends on its holder.

use std::{
    fs::File,
    io::{ErrorKind, Read, Write},
    os::fd::{AsFd, OwnedFd},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use st2_tools::client::{
    AttachOptions, Client, Dict, Ending, Held, Mode, OpenOptions, Opened, ReadOptions, Refusal,
    Session,
};
use tempfile::TempDir;
use zbus::Connection;

use crate::support::{
    Broker, PATIENCE, Start, client::Killable, error_of, owner_state, short, soon,
    tools::policy_with, workspace,
};

/// A shell's script on a terminal that may be held.
const PANE: &str =
    "title = \"pane\"\ncommand = [\"bash\", \"-c\"]\narguments = \"any\"\ndirect = true\n";
/// Says each line that it is given.
const SAY: &str =
    "stty -echo; printf ready; while read -r text; do printf %s \"$text\"; done; exit 3";

struct Scene {
    broker: Broker,
    place: TempDir,
    _policy: TempDir,
}

impl Scene {
    async fn new() -> Self {
        let policy = policy_with(&[("pane", PANE)]);
        let broker = Start::default().policy(policy.path()).private().await;
        Self { broker, place: workspace(), _policy: policy }
    }

    /// Opens a pane that runs this script, and waits for its first word.
    async fn open(&self, connection: Connection, script: &str) -> Opened {
        let options = OpenOptions {
            argv: vec![script.into()],
            workspace: Some(self.place.path().to_str().unwrap().to_owned()),
            ..OpenOptions::default()
        };
        let client = Client::over(connection).await.unwrap();
        let opened = client.open("pane", &options).await.unwrap();
        shows(&opened.session, 0, b"ready").await;
        opened
    }
}

/// Waits until the output from `cursor` on is this.
async fn shows(session: &Session, cursor: u64, text: &[u8]) {
    let read = async {
        loop {
            let options =
                ReadOptions { wait: Some(Duration::from_secs(10)), ..ReadOptions::default() };
            let chunk = session.read(cursor, 4096, &options).await.unwrap();
            assert!(text.starts_with(&chunk.data), "{:?}", String::from_utf8_lossy(&chunk.data));
            if chunk.data.len() == text.len() {
                return;
            }
            assert!(!chunk.eof);
        }
    };
    soon(&String::from_utf8_lossy(text), read).await;
}

/// Waits until the session is held, or not.
async fn is_held(session: &Session, held: bool) {
    soon("the hold", async { while session.proxy().direct().await.unwrap() != held {} }).await;
}

/// Reads what the tool writes, as a terminal does.
fn read(controller: &OwnedFd, count: usize) -> Vec<u8> {
    let mut file = File::from(controller.try_clone().unwrap());
    let mut bytes = Vec::new();
    while bytes.len() < count {
        let mut set = [PollFd::new(controller.as_fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut set, PollTimeout::try_from(PATIENCE).unwrap()).unwrap(), 1);
        let mut piece = vec![0; count - bytes.len()];
        match file.read(&mut piece) {
            Ok(read) => bytes.extend(&piece[..read]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    bytes
}

fn type_in(controller: &OwnedFd, text: &str) {
    File::from(controller.try_clone().unwrap()).write_all(text.as_bytes()).unwrap();
}

fn refusal<T: std::fmt::Debug>(refused: Result<T, st2_tools::client::ClientError>) -> Refusal {
    refused.unwrap_err().refusal().unwrap()
}

/// A process that has the controller end and the stream of a hold, and does nothing with them.
struct Idle(Child);

impl Idle {
    async fn take(session: &Session) -> Self {
        let options = Dict::new().with("framing", "direct");
        let (stream, info) = session.proxy().attach(&options).await.unwrap();
        let controller = info.descriptor("controller").unwrap().unwrap();
        let mut command = Command::new("sleep");
        command.arg("1000").stdin(Stdio::from(OwnedFd::from(stream))).stdout(controller);
        Self(command.spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().cast_signed()), signal).unwrap();
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn only_an_owner_holds_and_only_what_is_declared() {
    let scene = Scene::new().await;
    let owner = scene.broker.client().await;
    let plain = owner.run(scene.place.path(), &["cat"]).await;
    let direct = || Dict::new().with("framing", "direct");
    let (name, text) = error_of(plain.attach(&direct()).await);
    assert_eq!(short(&name), "NotPermitted", "{text}");
    assert!(text.contains("direct = true"), "{text}");

    let pane = scene.open(owner.connection.clone(), SAY).await.session;
    let other = Client::over(scene.broker.bus.connect().await).await.unwrap();
    let theirs = other.session(pane.id().clone()).await.unwrap();
    assert_eq!(refusal(theirs.hold().await), Refusal::NotOwner);
    for wrong in [
        direct().with("mode", "observe"),
        direct().with("cursor", 0_u64),
        direct().with("replay", "none"),
        direct().with("columns", 0_u16).with("rows", 1_u16),
    ] {
        let (name, _) = error_of(pane.proxy().attach(&wrong).await);
        assert_eq!(short(&name), "InvalidArgs", "{wrong:?}");
    }
    assert!(!pane.proxy().direct().await.unwrap(), "nothing was lent on the way");
    assert!(pane.proxy().unseen_at().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_is_alone_and_sets_the_size_and_the_broker_knows_what_it_does_not_know() {
    let scene = Scene::new().await;
    let opened = scene.open(scene.broker.bus.connect().await, SAY).await;
    let session = &opened.session;
    let mut held = session.hold().await.unwrap();
    assert_eq!((held.begin(), held.size()), (5, (80, 24)));
    is_held(session, true).await;
    assert_eq!(session.proxy().attached().await.unwrap(), 1);
    assert_eq!(refusal(session.hold().await), Refusal::LimitReached);
    for mode in [Mode::Control, Mode::Observe] {
        let options = AttachOptions { mode, ..AttachOptions::default() };
        assert_eq!(refusal(session.attach(&options).await), Refusal::LimitReached);
    }

    let (name, _) = error_of(session.proxy().screen(&Dict::new()).await);
    assert_eq!(short(&name), "LimitReached", "nobody else knows the screen");

    type_in(&held.controller, "mine\n");
    assert_eq!(read(&held.controller, 4), b"mine");
    session.write(b"bus\n").await.unwrap();
    assert_eq!(read(&held.controller, 3), b"bus");
    assert_eq!(session.proxy().bytes_out().await.unwrap(), 5);

    let mut stty = Command::new("stty");
    stty.args(["cols", "132", "rows", "50"]).stdin(held.controller.try_clone().unwrap());
    assert!(stty.status().unwrap().success());
    assert_eq!(session.proxy().columns().await.unwrap(), 132);
    let row = scene.broker.client().await.manager.list_sessions(&Dict::new()).await.unwrap();
    assert_eq!((row[0].number("RowsCount"), row[0].flag("Direct")), (Some(50), Some(true)));

    // Let go of while the session goes on: the stream's end is the hold's.
    let controller = held.controller.try_clone().unwrap();
    drop(held);
    is_held(session, false).await;
    assert_eq!(session.proxy().columns().await.unwrap(), 132);
    session.write(b"seen\n").await.unwrap();
    shows(session, 5, b"seen").await;
    let screen = session.proxy().screen(&Dict::new()).await.unwrap();
    assert_eq!(screen.texts("rows").concat(), "seen", "on a clear screen");
    assert_eq!((screen.number("columns"), screen.number("rows_count")), (Some(132), Some(50)));
    assert_eq!(session.proxy().unseen_at().await.unwrap(), [5]);
    drop(controller);

    held = session.hold().await.unwrap();
    assert_eq!((held.begin(), held.size()), (9, (132, 50)));
    type_in(&held.controller, "\u{4}");
    let outcome = soon("the end", session.ended()).await.unwrap();
    assert_eq!((outcome.ending, outcome.bytes_out, outcome.unseen), (Ending::Exited(3), 9, true));
    soon("the end of the hold", held.over()).await;
    assert_eq!(refusal(session.hold().await), Refusal::Closed);
}

#[tokio::test]
async fn a_killed_holder_gives_the_terminal_back_within_the_grace() {
    let scene = Scene::new().await;
    let owner = Killable::on(&scene.broker.bus).await;
    let opened = scene.open(owner.client.connection.clone(), SAY).await;
    let holder = Idle::take(&opened.session).await;
    opened.session.write(b"unread\n").await.unwrap();
    let watcher = scene.broker.client().await;
    let watched = watcher.session(opened.session.id().path().as_str()).await;
    holder.signal(Signal::SIGKILL);
    owner.kill();
    owner_state(&watched, "grace").await;

    let client = Client::over(scene.broker.bus.connect().await).await.unwrap();
    let claimed = client.claim(&opened.token).await.unwrap();
    let session = &claimed.sessions[0];
    shows(session, 5, b"unread").await;
    session.write(b"back\n").await.unwrap();
    shows(session, 11, b"back").await;
    assert_eq!(session.proxy().unseen_at().await.unwrap(), [5]);
    session.close(None).await.unwrap();
    let outcome = session.ended().await.unwrap();
    assert_eq!((outcome.reason.as_str(), outcome.unseen), ("closed-by-owner", true));
}

#[tokio::test]
async fn a_holder_that_is_stopped_or_never_reads_holds_up_no_end() {
    for signal in [None, Some(Signal::SIGSTOP)] {
        let scene = Scene::new().await;
        let owner = scene.broker.bus.connect().await;
        let session = scene.open(owner, "printf ready; read -rs _; exec yes").await.session;
        let holder = Idle::take(&session).await;
        if let Some(signal) = signal {
            holder.signal(signal);
        }
        session.write(b"\n").await.unwrap();
        let began = Instant::now();
        let outcome = soon("the end", session.close(None)).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        assert_eq!(outcome.text("reason"), Some("closed-by-owner"));
        assert_ne!(outcome.text("signal"), Some("SIGKILL"), "only when its stop timeout is over");
        assert_eq!(outcome.number("survivors"), Some(0));
        drop(holder);
    }
}

#[tokio::test]
async fn a_grace_that_is_over_ends_what_is_still_held() {
    let scene = Scene::new().await;
    let owner = Killable::on(&scene.broker.bus).await;
    let client = Client::over(owner.client.connection.clone()).await.unwrap();
    let options = OpenOptions {
        argv: vec![SAY.into()],
        workspace: Some(scene.place.path().to_str().unwrap().to_owned()),
        grace: Some(Duration::ZERO),
        ..OpenOptions::default()
    };
    let opened = client.open("pane", &options).await.unwrap();
    let mut held: Held = opened.session.hold().await.unwrap();
    let watcher = Client::over(scene.broker.bus.connect().await).await.unwrap();
    let session = watcher.session(opened.session.id().clone()).await.unwrap();
    owner.kill();
    let outcome = soon("the end", session.ended()).await.unwrap();
    assert_eq!(outcome.reason, "owner-vanished");
    soon("the end of the hold", held.over()).await;
    type_in(&held.controller, "to nobody\n");
}

#[tokio::test]
async fn a_claim_takes_the_terminal_from_who_held_it() {
    let scene = Scene::new().await;
    let opened = scene.open(scene.broker.bus.connect().await, SAY).await;
    let mut first = opened.session.hold().await.unwrap();

    let client = Client::over(scene.broker.bus.connect().await).await.unwrap();
    let session = client.session(opened.session.id().clone()).await.unwrap();
    client.claim(&opened.token).await.unwrap();
    soon("the end of the first hold", first.over()).await;
    let second = session.hold().await.unwrap();
    session.write(b"new\n").await.unwrap();
    assert_eq!(read(&second.controller, 3), b"new");
    assert_eq!(refusal(opened.session.hold().await), Refusal::NotOwner, "fenced");
}
