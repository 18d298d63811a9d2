//! A broker that plays what a test asks for: the first word of argv names the play (see `play.rs`).

use std::{
    collections::HashMap,
    sync::{Arc, Condvar, Mutex},
    time::Instant,
};

use tokio::runtime::Runtime;
use zbus::{
    DBusError, ObjectServer, OwnedObjectPath, OwnedVariant, Variant, connection::Builder, interface,
};

use crate::{play::Session, program::DEADLINE};

pub type Options = HashMap<String, OwnedVariant>;

/// The token that every session of the fake has.
pub const TOKEN: &str = "ab12-secret";
/// A token whose lease is always about to run out.
pub const BRIEF: &str = "ab12-brief";
/// The unit that every session of the fake has.
pub const UNIT: &str = r"app-st2tools-git\x2dadd-x.scope";

/// A fake broker on a bus.
pub struct Fake {
    _runtime: Runtime,
    log: Arc<Log>,
}

/// What reached the fake, in order.
#[derive(Default)]
pub struct Log {
    calls: Mutex<Vec<String>>,
    added: Condvar,
}

impl Log {
    pub fn add(&self, call: String) {
        self.calls.lock().unwrap().push(call);
        self.added.notify_all();
    }

    /// How many calls there were that begin so.
    pub fn count(&self, begin: &str) -> usize {
        self.calls.lock().unwrap().iter().filter(|call| call.starts_with(begin)).count()
    }
}

impl Fake {
    /// Serves on this bus and owns the name.
    pub fn serve(address: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let log = Arc::new(Log::default());
        let manager = Manager { log: Arc::clone(&log), opened: Mutex::new(0) };
        let builder =
            Builder::address(address).serve_at("/org/st2/Tools", manager).name("org.st2.Tools");
        let connection = runtime.block_on(builder.build()).unwrap();
        runtime.spawn(async move { connection.closed().await });
        Self { _runtime: runtime, log }
    }

    /// The calls so far.
    pub fn calls(&self) -> Vec<String> {
        self.log.calls.lock().unwrap().clone()
    }

    /// Waits for a call that satisfies the test.
    pub fn wait_for(&self, wanted: impl Fn(&str) -> bool) -> String {
        self.wait_for_nth(1, wanted)
    }

    /// Waits for so many of them, and gives the last.
    pub fn wait_for_nth(&self, nth: usize, wanted: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + DEADLINE;
        let mut calls = self.log.calls.lock().unwrap();
        loop {
            if let Some(call) = calls.iter().filter(|call| wanted(call)).nth(nth - 1) {
                return call.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no such call among {calls:?}");
            calls = self.log.added.wait_timeout(calls, left).unwrap().0;
        }
    }
}

/// The contract's errors, as far as the fake needs them.
#[derive(Debug, DBusError)]
#[zbus(prefix = "org.st2.Tools.Error")]
pub enum Refused {
    NoSuchTool(String),
    NotOwner(String),
    BadToken(String),
    InvalidWorkspace(String),
    LaunchFailed(String, String, i32),
    Closed(String),
    BadCursor(String),
    InputFull(String),
    NotPermitted(String),
    NotATerminal(String),
}

struct Manager {
    log: Arc<Log>,
    opened: Mutex<u32>,
}

pub fn text(options: &Options) -> String {
    let mut words: Vec<_> =
        options.iter().map(|(key, value)| format!("{key}={}", plain(value))).collect();
    words.sort();
    words.join(" ")
}

fn plain(value: &Variant<'_>) -> String {
    match value {
        Variant::Str(text) => text.to_string(),
        Variant::Array(array) => {
            let words: Vec<_> = array.inner().iter().map(plain).collect();
            format!("[{}]", words.join(","))
        }
        Variant::Dict(dict) => {
            let words: Vec<_> = dict
                .iter()
                .map(|(key, value)| format!("{}:{}", plain(key), plain(value)))
                .collect();
            format!("{{{}}}", words.join(","))
        }
        Variant::U8(n) => n.to_string(),
        Variant::U16(n) => n.to_string(),
        Variant::U64(n) => n.to_string(),
        Variant::Bool(flag) => flag.to_string(),
        other => panic!("unexpected type {}", other.value_signature()),
    }
}

pub fn variant(value: impl Into<Variant<'static>>) -> OwnedVariant {
    OwnedVariant::try_from(value.into()).unwrap()
}

fn argv(options: &Options) -> Vec<String> {
    let Some(argv) = options.get("argv") else { return Vec::new() };
    argv.try_clone().unwrap().try_into().unwrap()
}

#[interface(name = "org.st2.Tools.Manager1")]
impl Manager {
    async fn open(
        &self,
        tool: &str,
        options: Options,
        #[zbus(object_server)] server: &ObjectServer,
    ) -> Result<(OwnedObjectPath, Options), Refused> {
        self.log.add(format!("Open {tool} {}", text(&options)));
        let argv = argv(&options);
        let play = argv.first().map_or("", String::as_str).to_owned();
        refuse(tool, &play)?;
        let id = {
            let mut opened = self.opened.lock().unwrap();
            *opened += 1;
            format!("s{opened}")
        };
        let path = OwnedObjectPath::try_from(format!("/org/st2/Tools/session/{id}")).unwrap();
        let session = Session::new(Arc::clone(&self.log), &id, argv);
        server.at(&path, session).await.unwrap();
        let io = if options.contains_key("io") { "pipe" } else { "pty" };
        let info = HashMap::from([
            ("io".to_owned(), variant(io)),
            ("id".to_owned(), variant(id)),
            ("unit".to_owned(), variant(UNIT)),
            ("pid".to_owned(), variant(4242_u32)),
            ("token".to_owned(), variant(TOKEN)),
            ("reused".to_owned(), variant(false)),
        ]);
        Ok((path, info))
    }

    fn list_sessions(&self, filter: Options) -> Vec<Options> {
        self.log.add(format!("ListSessions {}", text(&filter)));
        let opened = *self.opened.lock().unwrap();
        (1..=opened).map(|n| properties(&format!("s{n}"), &["cat".into()])).collect()
    }

    /// Of three events the first is gone; the fourth happens after it was asked for once.
    fn list_events(&self, after: u64, limit: u32) -> Result<(Vec<Options>, u64), Refused> {
        self.log.add(format!("ListEvents {after} {limit}"));
        if after > 4 {
            return Err(Refused::BadCursor(format!("no event {after} was yet")));
        }
        let last = if self.log.count("ListEvents 3 ") > 1 { 4 } else { 3 };
        let seq = (after + 1).max(2);
        Ok(if seq > last { (Vec::new(), last) } else { (vec![event(seq)], seq) })
    }

    fn list_tools(&self) -> Vec<Options> {
        let row = |name: &'static str, error: &'static str| {
            HashMap::from([
                ("name".to_owned(), variant(name)),
                ("title".to_owned(), variant("A tool")),
                ("command".to_owned(), variant(vec!["git".to_owned(), "add".to_owned()])),
                ("profile".to_owned(), variant("workspace")),
                ("error".to_owned(), variant(error)),
            ])
        };
        vec![row("git-add", ""), row("broken", "broken.toml: line 3: unknown key \"x\"")]
    }

    fn explain(&self, tool: &str, options: Options) -> Options {
        self.log.add(format!("Explain {tool} {}", text(&options)));
        HashMap::from([
            ("argv".to_owned(), variant(vec!["git".to_owned(), "add".to_owned(), "-p".to_owned()])),
            ("memory_max".to_owned(), variant(1_u64 << 30)),
        ])
    }

    #[zbus(property)]
    fn limits(&self) -> HashMap<String, u64> {
        HashMap::from([("ring_max_bytes".to_owned(), 65_536)])
    }

    fn renew_lease(&self, token: &str) -> Result<u64, Refused> {
        self.log.add(format!("RenewLease {token}"));
        match token {
            TOKEN => Ok(u64::MAX),
            // Runs out at once, so that whoever holds it must renew it soon.
            BRIEF => Ok(1),
            _ => Err(Refused::BadToken("the token is unknown or expired".into())),
        }
    }
}

fn event(seq: u64) -> Options {
    let labels = HashMap::from([("task".to_owned(), "t1".to_owned())]);
    HashMap::from([
        ("seq".to_owned(), variant(seq)),
        ("at_usec".to_owned(), variant(1_u64)),
        ("kind".to_owned(), variant("session-idle")),
        ("session".to_owned(), variant("s1")),
        ("tool".to_owned(), variant("command")),
        ("labels".to_owned(), variant(labels)),
    ])
}

fn refuse(tool: &str, play: &str) -> Result<(), Refused> {
    let exec = |message: &str, errno| {
        Err(Refused::LaunchFailed(message.to_owned(), "exec".to_owned(), errno))
    };
    match (tool, play) {
        ("nothing", _) => Err(Refused::NoSuchTool("no tool is named \"nothing\"".into())),
        (_, "nowhere") => Err(Refused::InvalidWorkspace("\"/\" is the root directory".into())),
        (_, "missing") => exec("exec: missing: no such file or directory", 2),
        (_, "denied") => exec("exec: denied: permission denied", 13),
        (_, "unplaced") => Err(Refused::LaunchFailed("scope: refused".into(), "scope".into(), 0)),
        _ => Ok(()),
    }
}

pub fn properties(id: &str, argv: &[String]) -> Options {
    HashMap::from([
        ("Id".to_owned(), variant(id.to_owned())),
        ("Tool".to_owned(), variant("command")),
        ("Phase".to_owned(), variant("running")),
        ("Unit".to_owned(), variant(UNIT)),
        ("OwnerState".to_owned(), variant("token")),
        ("CreatedUsec".to_owned(), variant(1_u64)),
        ("BytesOut".to_owned(), variant(u64::MAX)),
        ("Workspace".to_owned(), variant("/w")),
        ("Command".to_owned(), variant(argv.to_vec())),
    ])
}
