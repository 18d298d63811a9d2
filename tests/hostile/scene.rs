//! Where attempts are made: two workspaces, a directory outside of them, and all that is worth attacking. Each side has a
//! scene of its own, in the same places.

use std::{
    cell::{Ref, RefCell},
    collections::BTreeMap,
    fs,
    io::{IoSlice, Write},
    os::{fd::AsRawFd, unix::net::UnixListener},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use nix::{
    pty::OpenptyResult,
    sys::{
        signal::Signal,
        socket::{ControlMessage, MsgFlags, sendmsg},
    },
};
use tempfile::TempDir;

use super::{
    from::From,
    sessions::OtherSession,
    shared::Shared,
    victims::{TREASURE, Victim},
};
use crate::support::{
    Broker, Client,
    bus::Bus,
    keys::{SshAgent, variable},
    listeners::Listener,
    manager::systemctl,
    repository::Linked,
    tools, wait_for,
};

/// A file that the broker of a scene was started with as an open descriptor.
pub const LEAK: &str = "leaked-by-the-broker";

/// A scene. What it lays out outside of its own directories is removed with it.
pub struct Scene {
    /// The number of the broker's process.
    pub broker: i32,
    /// Where the broker has the private directories of all sessions.
    pub tmpdirs: PathBuf,
    /// Other sessions, by what is done to them.
    pub sessions: BTreeMap<&'static str, OtherSession>,
    /// What is shared without files.
    pub shared: Shared,
    /// The probe, where tools may execute it.
    pub probe: PathBuf,
    /// The user's ssh-agent.
    pub agent: SshAgent,
    /// A repository whose first worktree is a workspace.
    pub linked: Linked,
    name: String,
    outside: TempDir,
    repository: TempDir,
    replaced: TempDir,
    plain: TempDir,
    places: [TempDir; 6],
    listeners: RefCell<BTreeMap<String, Listener>>,
    victims: RefCell<BTreeMap<String, Victim>>,
    buses: RefCell<Vec<Bus>>,
    terminals: RefCell<Vec<OpenptyResult>>,
    planted: RefCell<Vec<PathBuf>>,
}

impl Scene {
    /// Sets one up around a broker.
    pub async fn new(broker: &Broker, client: &Client, outside: TempDir, agent: SshAgent) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("hostile-{}-{number}", std::process::id());
        let mut sessions = BTreeMap::new();
        for done in ["attacked", "killed", "frozen", "ended"] {
            sessions.insert(done, OtherSession::open(broker, client).await);
        }
        let tmpdirs = sessions["attacked"].tmpdir.parent().unwrap().to_owned();
        fs::write(outside.path().join("seen"), TREASURE).unwrap();
        let linked = Linked::new();
        fs::write(linked.other().join("secret"), TREASURE).unwrap();
        fs::create_dir_all(linked.common().join("modules/any")).unwrap();
        Self {
            broker: broker.pid().as_raw(),
            tmpdirs,
            sessions,
            shared: Shared::new(&name),
            probe: tools::install(&crate::support::program("st2-tools-probe")),
            name,
            outside,
            repository: new_repository(),
            replaced: new_repository(),
            plain: in_home("plain"),
            places: std::array::from_fn(|_| in_home("place")),
            agent,
            linked,
            listeners: RefCell::default(),
            victims: RefCell::default(),
            buses: RefCell::default(),
            terminals: RefCell::default(),
            planted: RefCell::default(),
        }
    }

    /// A name that only this scene has.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The workspace that is a repository.
    pub fn repository(&self) -> &Path {
        self.repository.path()
    }

    /// The one that is replaced.
    pub fn replaced(&self) -> &Path {
        self.replaced.path()
    }

    /// The workspace that is none.
    pub fn plain(&self) -> &Path {
        self.plain.path()
    }

    /// The workspace of a session.
    pub fn place(&self, from: From) -> PathBuf {
        match from {
            From::Repository | From::Last => self.repository().to_owned(),
            From::Replaced => self.replaced().to_owned(),
            From::Plain => self.plain().to_owned(),
            From::Worktree => self.linked.path(),
            From::Keys => self.places[0].path().to_owned(),
            From::Loopback => self.places[1].path().to_owned(),
            From::Builder => self.places[2].path().to_owned(),
            From::Coder => self.places[3].path().to_owned(),
            From::Reader => self.places[4].path().to_owned(),
            From::Terminals => self.places[5].path().to_owned(),
        }
    }

    /// A path in the repository.
    pub fn inside(&self, name: &str) -> String {
        text(&self.repository().join(name))
    }

    /// A path outside, with nothing there.
    pub fn out(&self, name: &str) -> String {
        text(&self.outside.path().join(name))
    }

    /// A file outside with a treasure in it.
    pub fn file(&self, name: &str) -> String {
        let path = self.out(name);
        fs::write(&path, TREASURE).unwrap();
        path
    }

    /// A directory outside.
    pub fn directory(&self, name: &str) -> String {
        let path = self.out(name);
        fs::create_dir(&path).unwrap();
        path
    }

    /// Whether something is there outside.
    pub fn is_there(&self, name: &str) -> bool {
        Path::new(&self.out(name)).symlink_metadata().is_ok()
    }

    /// Whether a file outside has not its treasure any more.
    pub fn is_changed(&self, name: &str) -> bool {
        fs::read_to_string(self.out(name)).map_or(true, |text| text != TREASURE)
    }

    /// A path in a directory of the user's that a variable names, or that is fixed; what is planted there goes with the
    /// scene.
    pub fn plant(&self, directory: &str, name: &str) -> String {
        let (first, rest) = directory.split_once('/').unwrap_or((directory, ""));
        let directory = match first.strip_prefix('$') {
            Some(name) => variable(name).join(rest),
            None if first == "~" => variable("HOME").join(rest),
            None => PathBuf::from(directory),
        };
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join(name.replace('*', &self.name));
        self.planted.borrow_mut().push(path.clone());
        text(&path)
    }

    /// A file planted likewise, with a treasure in it.
    pub fn plant_treasure(&self, directory: &str, name: &str) -> String {
        let path = self.plant(directory, name);
        fs::write(&path, TREASURE).unwrap();
        path
    }

    /// Whether something was planted there.
    pub fn is_planted(&self, directory: &str, name: &str) -> bool {
        let path = self.plant(directory, name);
        fs::read_to_string(path).is_ok_and(|text| text != TREASURE)
    }

    /// Has somebody listen, known by a name.
    pub fn listen(&self, name: &str, listener: Listener) {
        self.listeners.borrow_mut().insert(name.to_owned(), listener);
    }

    /// Whether the attempt was heard there.
    pub fn heard(&self, name: &str) -> bool {
        self.listeners.borrow()[name].heard()
    }

    /// A process to attack, known by a name; made when it is first asked for.
    pub fn victim(&self, name: &str, new: impl FnOnce() -> Victim) -> Ref<'_, Victim> {
        self.victims.borrow_mut().entry(name.to_owned()).or_insert_with(new);
        self.known_victim(name)
    }

    /// A process that was made before.
    pub fn known_victim(&self, name: &str) -> Ref<'_, Victim> {
        Ref::map(self.victims.borrow(), |victims| &victims[name])
    }

    /// Passes the descriptor of a file to whoever connects.
    pub fn pass(&self, socket: &str, file: &str) {
        let listener = UnixListener::bind(socket).unwrap();
        let file = fs::File::options().append(true).open(file).unwrap();
        thread::spawn(move || {
            for peer in listener.incoming().map(Result::unwrap) {
                let descriptors = [file.as_raw_fd()];
                let passed = [ControlMessage::ScmRights(&descriptors)];
                let byte = [IoSlice::new(b"x")];
                // Whoever connects may be gone again.
                let _ = sendmsg::<()>(peer.as_raw_fd(), &byte, &passed, MsgFlags::empty(), None);
            }
        });
    }

    /// Keeps a bus until the scene ends.
    pub fn keep(&self, bus: Bus) {
        self.buses.borrow_mut().push(bus);
    }

    /// Keeps a terminal likewise.
    pub fn keep_terminal(&self, terminal: OpenptyResult) {
        self.terminals.borrow_mut().push(terminal);
    }

    /// A unit of the user manager that leaves a mark outside; gives its name.
    pub fn unit(&self, mark: &str) -> String {
        let unit = format!("{}.service", self.name);
        let file = self.plant("~/.config/systemd/user", &unit);
        let text = format!("[Service]\nType=oneshot\nExecStart=touch {}\n", self.out(mark));
        fs::File::create(file).unwrap().write_all(text.as_bytes()).unwrap();
        systemctl(&["daemon-reload"]);
        unit
    }

    /// Waits until all that was sent so far has arrived.
    pub fn settle(&self) {
        for listener in self.listeners.borrow().values() {
            listener.settle();
        }
        if self.victims.borrow().contains_key("alert") {
            self.known_victim("alert").signal(Signal::SIGUSR1);
            wait_for("a signal", || self.is_there("settled"));
        }
        // The manager does one thing after the other.
        systemctl(&["show", "--property=Version"]);
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for path in self.planted.get_mut() {
            let _ = fs::remove_file(path);
        }
    }
}

/// A directory in the test user's home, where nothing is granted.
pub fn in_home(name: &str) -> TempDir {
    tempfile::Builder::new().prefix(name).tempdir_in(variable("HOME")).unwrap()
}

fn new_repository() -> TempDir {
    let repository = in_home("repository");
    let git = Command::new("git").args(["init", "--quiet"]).current_dir(repository.path()).status();
    assert!(git.unwrap().success());
    fs::create_dir_all(repository.path().join(".git/hooks")).unwrap();
    repository
}

/// A path as text.
pub fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
