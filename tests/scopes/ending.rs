//! How sessions end, and that nothing of them stays however they were made.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use serde_bytes::Bytes;
use st2_tools::client::{Dict, session::SessionProxy};

use crate::support::{
    Broker, Client, Start, all_output,
    client::Killable,
    error_of, lives,
    manager::{self, Foreign},
    outcome, output_until, owner_state, program, short, soon,
    tools::{install, policy_with},
    until, within, workspace,
};

/// As hard to end as an unprivileged program can be: in sessions of their own, orphaned, deaf, stopped, forking
/// without end, below a leader that is deaf itself.
pub const NASTY: &str = "trap '' HUP TERM INT; st2-tools-probe escape; st2-tools-probe comet; \
                         exec st2-tools-probe hold";

/// How many processes of it announce themselves.
const ANNOUNCED: usize = 6;

/// A session of a tree that does not want to end.
#[derive(Debug)]
pub struct Nasty {
    pub session: SessionProxy<'static>,
    pub group: PathBuf,
    pub unit: String,
    pids: Vec<i32>,
}

impl Nasty {
    /// Opens one, and waits until all of it is in place.
    pub async fn open(client: &Client, place: &Path, options: Dict) -> Self {
        install(&program("st2-tools-probe"));
        let argv = ["sh", "-c", NASTY].map(str::to_owned).to_vec();
        let all = within(place).with("argv", argv);
        let options = options.into_iter().fold(all, |all, (key, value)| all.with(&key, value));
        let (session, _) = client.open("command", options).await.unwrap();
        let (mut pids, mut output, mut cursor) = (Vec::new(), Vec::new(), 0);
        soon("the whole tree", async {
            while pids.len() < ANNOUNCED {
                let wait = Dict::new().with("wait_ms", 5000u64);
                let (bytes, _, next, _) = session.read(cursor, 65536, &wait).await.unwrap();
                (cursor, output) = (next, [output, bytes.to_vec()].concat());
                let text = String::from_utf8_lossy(&output);
                let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
                let numbers = whole.filter_map(|line| line.strip_prefix("pid "));
                pids = numbers.filter_map(|pid| pid.trim().parse().ok()).collect();
            }
        })
        .await;
        let unit = session.unit().await.unwrap();
        let group = manager::group(&unit);
        // The comet announces itself once and then has another number all the time: it is in the group.
        until("the comet", || manager::members(&group).iter().any(|pid| !pids.contains(pid))).await;
        Self { session, group, unit, pids }
    }

    /// Whether all of it is there that has a lasting number.
    pub fn is_whole(&self) -> bool {
        self.pids.iter().filter(|pid| lives(**pid)).count() >= ANNOUNCED - 1
            && !manager::is_empty(&self.group)
    }

    /// Waits until none of it is left.
    pub async fn is_gone(&self) {
        self.is_dead().await;
        until("a forgotten unit", || manager::units(&self.unit).is_empty()).await;
    }

    /// Waits until no process of it lives.
    pub async fn is_dead(&self) {
        until("an empty control group", || manager::is_empty(&self.group)).await;
        // The kernel empties the group a moment before its last process is gone.
        until("no process", || !self.pids.iter().any(|pid| lives(*pid))).await;
    }

    /// Checks that none of it is left, without a wait.
    pub fn is_gone_now(&self) {
        assert!(manager::is_empty(&self.group));
        let left: Vec<_> = self.pids.iter().filter(|pid| lives(**pid)).collect();
        assert!(left.is_empty(), "{left:?} of {:?} live", self.pids);
    }
}

#[tokio::test]
async fn owner_gone_and_grace_over_leaves_no_process() {
    let (broker, place) = (Broker::unit().await, workspace());
    let (owner, watcher) = (broker.client().await, broker.client().await);
    let options = Dict::new().with("grace_ms", 300u64);
    let nasty = Nasty::open(&owner, place.path(), options).await;
    let watched = watcher.session(nasty.session.inner().path().as_str()).await;
    assert!(nasty.is_whole());
    owner.vanish().await;
    let outcome = outcome(&watched).await;
    nasty.is_gone_now();
    assert_eq!(outcome.text("reason"), Some("owner-vanished"));
    assert_eq!(outcome.number("survivors"), Some(0));
    assert_eq!((outcome.text("kind"), outcome.text("signal")), (Some("signaled"), Some("SIGKILL")));
    assert!(broker.tmpdirs().is_empty(), "{:?}", broker.tmpdirs());
    nasty.is_gone().await;
}

#[tokio::test]
async fn a_killed_client_ends_nothing_before_its_grace_and_everything_after() {
    let (broker, place) = (Broker::unit().await, workspace());
    let (crashing, watcher) = (Killable::on(&broker.bus).await, broker.client().await);
    let owner = crashing.client.name();
    let options = Dict::new().with("grace_ms", 5000u64);
    let nasty = Nasty::open(&crashing.client, place.path(), options).await;
    let watched = watcher.session(nasty.session.inner().path().as_str()).await;
    assert_eq!(watched.owner().await.unwrap(), owner);
    crashing.kill();
    owner_state(&watched, "grace").await;
    assert!(nasty.is_whole());
    assert_eq!(watched.phase().await.unwrap(), "running");
    let deadline = watched.grace_deadline_usec().await.unwrap();
    assert!(deadline > 0);
    let outcome = outcome(&watched).await;
    nasty.is_gone_now();
    assert_eq!(outcome.text("reason"), Some("owner-vanished"));
    assert!(outcome.number("ended_usec").unwrap() >= deadline, "it ended before its grace did");
    assert_eq!(watched.owner_state().await.unwrap(), "gone");
    nasty.is_gone().await;
}

#[tokio::test]
async fn a_claim_inside_the_grace_keeps_the_process() {
    let (broker, place) = (Broker::unit().await, workspace());
    let (crashing, heir) = (Killable::on(&broker.bus).await, broker.client().await);
    let options = within(place.path()).with("argv", vec!["cat".to_owned()]);
    let (session, info) = crashing.client.open("command", options).await.unwrap();
    session.write(Bytes::new(b"before\n"), &Dict::new()).await.unwrap();
    output_until(&session, "before\r\nbefore").await;
    let (path, unit) = (session.inner().path().to_string(), session.unit().await.unwrap());
    let pid = i32::try_from(info.number("pid").unwrap()).unwrap();
    crashing.kill();
    let inherited = heir.session(&path).await;
    owner_state(&inherited, "grace").await;
    let (_, sessions) = heir.manager.claim_lease(info.text("token").unwrap()).await.unwrap();
    assert_eq!(sessions.iter().map(|path| path.as_str()).collect::<Vec<_>>(), [path.as_str()]);
    assert_eq!(inherited.owner_state().await.unwrap(), "present");
    assert_eq!(inherited.owner().await.unwrap(), heir.name());
    assert_eq!(manager::members(&manager::group(&unit)), [pid]);
    inherited.write(Bytes::new(b"after\n"), &Dict::new()).await.unwrap();
    let output = output_until(&inherited, "after\r\nafter").await;
    assert!(output.starts_with("before\r\nbefore"), "{output}");
    let outcome = inherited.close(&Dict::new()).await.unwrap();
    assert_eq!(outcome.text("reason"), Some("closed-by-owner"));
}

/// A shell that is given longer than by default to end by itself.
const PATIENT: (&str, &str) = (
    "patient",
    "title = \"patient\"\ncommand = [\"sh\", \"-c\"]\narguments = \"any\"\nstop_timeout_ms = 10000\n",
);

/// Gently at first: HUP as from a terminal that hangs up, then TERM; KILL when the time is over, which is the shorter one
/// of the tool's and the caller's.
#[tokio::test]
async fn a_close_goes_from_hup_to_term_to_kill() {
    let policy = policy_with(&[PATIENT]);
    let (broker, place) = (Start::default().policy(policy.path()).unit().await, workspace());
    let client = broker.client().await;
    let script = "trap 'echo got-HUP' HUP; trap 'echo got-TERM' TERM; echo ready; while :; do sleep 0.05; done";
    let argv = ["sh", "-c", script].map(str::to_owned);
    for (tool, argv, timeout_ms, at_least, at_most) in
        [("patient", &argv[2..], 1500u64, 1500, 8000), ("command", &argv[..], 60_000, 2000, 15_000)]
    {
        let options = within(place.path()).with("argv", argv.to_vec());
        let (session, _) = client.open(tool, options).await.unwrap();
        output_until(&session, "ready").await;
        let began = Instant::now();
        let options = Dict::new().with("timeout_ms", timeout_ms);
        let outcome = soon("Close", session.close(&options)).await.unwrap();
        let took = began.elapsed().as_millis();
        assert!((at_least..at_most).contains(&took), "{took} ms for {timeout_ms}");
        assert_eq!(outcome.text("signal"), Some("SIGKILL"));
        assert_eq!(outcome.text("reason"), Some("closed-by-owner"));
        let output = all_output(&session).await;
        let at = |what: &str| output.find(what).unwrap_or_else(|| panic!("no {what}: {output}"));
        assert!(at("got-HUP") < at("got-TERM"), "{output}");
    }
}

#[tokio::test]
async fn a_person_can_stop_any_session() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let gentle = client
        .run(
            place.path(),
            &["sh", "-c", "trap 'exit 5' TERM HUP; echo ready; while :; do read x; done"],
        )
        .await;
    output_until(&gentle, "ready").await;
    manager::systemctl(&["stop", &gentle.unit().await.unwrap()]);
    let outcome = outcome(&gentle).await;
    assert_eq!(outcome.text("reason"), Some("stopped-by-manager"));
    assert_eq!((outcome.text("kind"), outcome.signed("code")), (Some("exited"), Some(5)));
    assert_eq!(outcome.text("requester"), Some(""));

    let nasty = Nasty::open(&client, place.path(), Dict::new()).await;
    manager::systemctl(&["stop", &nasty.unit]);
    let outcome = crate::support::outcome(&nasty.session).await;
    nasty.is_gone_now();
    assert_eq!(outcome.text("reason"), Some("stopped-by-manager"));
    assert_eq!(outcome.text("signal"), Some("SIGKILL"));
    nasty.is_gone().await;
}

#[tokio::test]
async fn a_session_ends_with_the_unit_it_is_bound_to() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let agent = Foreign::start("agent-of-test.service", &[], "exec sleep 1000");
    let bound = |unit: &str| {
        within(place.path()).with("argv", vec!["cat".to_owned()]).with("bind_unit", unit.to_owned())
    };
    let (session, _) = client.open("command", bound(&agent.unit)).await.unwrap();
    let other = client.run(place.path(), &["cat"]).await;
    let binds = manager::property(&session.unit().await.unwrap(), "BindsTo");
    assert!(binds.split(' ').any(|unit| unit == agent.unit), "{binds}");
    manager::systemctl(&["stop", &agent.unit]);
    assert_eq!(outcome(&session).await.text("reason"), Some("bound-unit-stopped"));
    assert_eq!(other.phase().await.unwrap(), "running");
}

#[tokio::test]
async fn a_unit_that_is_not_active_is_not_bound_to_and_not_started() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let idle = "basic-of-test.target";
    let directory = Path::new(&std::env::var("XDG_RUNTIME_DIR").unwrap()).join("systemd/user");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(idle), "[Unit]\nDescription=idle\n").unwrap();
    manager::systemctl(&["daemon-reload"]);
    for unit in [idle, "no-such-unit-of-test.service", "no unit name"] {
        let options = within(place.path())
            .with("argv", vec!["cat".to_owned()])
            .with("bind_unit", unit.to_owned());
        let (name, text) = error_of(client.open("command", options).await);
        assert!(["LaunchFailed", "InvalidArgs"].contains(&short(&name)), "{name}: {text}");
        assert!(text.contains(unit), "{unit}: {text}");
        assert_ne!(manager::property(unit, "ActiveState"), "active");
    }
    std::fs::remove_file(directory.join(idle)).unwrap();
    assert!(broker.tmpdirs().is_empty());
    until("no unit", || manager::session_units().is_empty()).await;
}

/// The broker keeps the time, and where it cannot the manager does.
#[tokio::test]
async fn a_timeout_holds_even_while_the_broker_hangs() {
    use nix::sys::signal::Signal::{SIGCONT, SIGSTOP};
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let open = async |timeout_ms: u64| {
        let options = Dict::new().with("timeout_ms", timeout_ms);
        Nasty::open(&client, place.path(), options).await
    };
    let nasty = open(5000).await;
    broker.signal(SIGSTOP);
    let hung = Hung(&broker);
    nasty.is_dead().await;
    broker.signal(SIGCONT);
    drop(hung);
    let ended = outcome(&nasty.session).await;
    assert_eq!(ended.text("reason"), Some("timeout"));
    nasty.is_gone().await;
}

/// A broker that is stopped, until this is dropped.
struct Hung<'a>(&'a Broker);

impl Drop for Hung<'_> {
    fn drop(&mut self) {
        self.0.signal(nix::sys::signal::Signal::SIGCONT);
    }
}

#[tokio::test]
async fn what_is_paused_stands_still_and_can_be_closed() {
    let policy = policy_with(&[PATIENT]);
    let (broker, place) = (Start::default().policy(policy.path()).unit().await, workspace());
    let client = broker.client().await;
    let script = "trap 'exit 5' TERM HUP; while :; do echo tick; sleep 0.01; done";
    let options = within(place.path()).with("argv", vec![script.to_owned()]);
    let (session, _) = client.open("patient", options).await.unwrap();
    output_until(&session, "tick").await;
    let group = manager::group(&session.unit().await.unwrap());
    let events = || std::fs::read_to_string(group.join("cgroup.events")).unwrap();
    for _ in 0..2 {
        session.pause().await.unwrap();
        assert!(events().contains("frozen 1"), "{}", events());
        assert!(session.paused().await.unwrap());
        session.resume().await.unwrap();
        assert!(events().contains("frozen 0"), "{}", events());
        assert!(!session.paused().await.unwrap());
        let so_far = session.bytes_out().await.unwrap();
        soon("more output", async { while session.bytes_out().await.unwrap() == so_far {} }).await;
    }
    // Closed while it is frozen, it still gets to end gently, far sooner than it would be killed.
    session.pause().await.unwrap();
    let outcome = soon("Close", session.close(&Dict::new())).await.unwrap();
    assert_eq!(outcome.text("reason"), Some("closed-by-owner"));
    assert_eq!((outcome.text("kind"), outcome.signed("code")), (Some("exited"), Some(5)));

    let nasty = Nasty::open(&client, place.path(), Dict::new()).await;
    nasty.session.pause().await.unwrap();
    let killed = soon("Kill", nasty.session.kill()).await.unwrap();
    nasty.is_gone_now();
    assert_eq!(killed.text("reason"), Some("killed-by-owner"));
    nasty.is_gone().await;
}
