//! Ways out of the confinement. Each is tried twice: without the launcher, where it must succeed
//! (else it proves nothing), and as the tool, where it must fail with the errno that is documented
//! for it.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram, UnixListener},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use st2_tools::launch::spec::{LaunchSpec, Network};

use crate::session::{Place, Session, confined, unconfined};

pub const OK: &str = "ok";

pub fn errno(errno: i32) -> String {
    format!("errno {errno}")
}

/// One attempt, and what each side of it gives.
struct Attempt<'a> {
    place: &'a Place,
    words: &'a [&'a str],
    network: Network,
    /// Brings about what the attempt needs, before each side.
    prepare: &'a dyn Fn(),
}

impl<'a> Attempt<'a> {
    fn new(place: &'a Place, words: &'a [&'a str]) -> Self {
        Self { place, words, network: Network::None, prepare: &|| () }
    }

    fn arguments(&self) -> Vec<&str> {
        [&["try"], self.words].concat()
    }

    fn spec(&self) -> LaunchSpec {
        let mut spec = self.place.spec(&self.arguments());
        spec.confinement.network = self.network.clone();
        spec
    }

    /// Tries it without and with the launcher.
    fn both(&self) -> (String, String) {
        (self.prepare)();
        let outside = unconfined(&self.arguments()).trim().to_owned();
        (self.prepare)();
        (outside, confined(self.place, self.spec()).trim().to_owned())
    }

    fn gives(&self, outside: &str, inside: &str) {
        let got = self.both();
        let expected = (outside.to_owned(), inside.to_owned());
        assert_eq!(got, expected, "{:?} without and with the launcher", self.words);
    }
}

/// Succeeds outside, fails inside.
fn refused(place: &Place, words: &[&str], expected: i32) {
    Attempt::new(place, words).gives(OK, &errno(expected));
}

/// Succeeds on both sides: what a tool needs is not taken away.
fn allowed(place: &Place, words: &[&str]) {
    Attempt::new(place, words).gives(OK, OK);
}

/// A file with a line in it; its path as text.
fn file(directory: &Path, name: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, "secret\n").unwrap();
    path.to_str().unwrap().to_owned()
}

/// A process of this user that is none of the session's.
pub struct Outsider(Child);

impl Outsider {
    pub fn new() -> Self {
        Self(Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap())
    }

    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Outsider {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn text(path: PathBuf) -> String {
    path.into_os_string().into_string().unwrap()
}

#[test]
fn files_outside_are_not_read_written_or_listed() {
    let place = Place::new();
    let outside = text(place.outside().join("file"));
    let prepare = || drop(file(&place.outside(), "file"));
    for word in ["read", "append", "truncate", "remove"] {
        let words = [word, &outside];
        let attempt = Attempt { prepare: &prepare, ..Attempt::new(&place, &words) };
        attempt.gives(OK, &errno(libc::EACCES));
    }
    refused(&place, &["list", &text(place.outside())], libc::EACCES);
    refused(&place, &["write", &text(place.outside().join("new"))], libc::EACCES);
}

#[test]
fn files_inside_are() {
    let place = Place::new();
    for directory in [place.workspace(), place.tmpdir()] {
        let inside = file(&directory, "file");
        let new = text(directory.join("new"));
        for word in ["read", "append", "truncate", "write"] {
            allowed(&place, &[word, &inside]);
        }
        allowed(&place, &["list", &text(directory.clone())]);
        let prepare = || drop(file(&directory, "file"));
        for words in [&["remove", &inside][..], &["rename", &inside, &new]] {
            Attempt { prepare: &prepare, ..Attempt::new(&place, words) }.gives(OK, OK);
        }
    }
}

#[test]
fn no_other_name_leads_outside() {
    let place = Place::new();
    let secret = file(&place.outside(), "file");
    let link = text(place.workspace().join("link"));
    std::os::unix::fs::symlink(&secret, &link).unwrap();
    let dots = format!("{}/../outside/file", text(place.workspace()));
    let roots = format!("/proc/self/root{secret}");
    for name in [link, dots, roots] {
        refused(&place, &["read", &name], libc::EACCES);
        refused(&place, &["append", &name], libc::EACCES);
    }
}

#[test]
fn files_are_not_moved_or_linked_across_the_border() {
    let place = Place::new();
    let (inside, outside) =
        (text(place.workspace().join("file")), text(place.outside().join("file")));
    let moved = text(place.workspace().join("moved"));
    let prepare = || {
        let _ = fs::remove_file(&moved);
        let _ = file(&place.outside(), "file");
        let _ = file(&place.workspace(), "file");
    };
    for words in [
        ["rename", &inside, &outside],
        ["rename", &outside, &moved],
        ["hard-link", &outside, &moved],
    ] {
        let attempt = Attempt { prepare: &prepare, ..Attempt::new(&place, &words) };
        // EACCES where a right is missing, EXDEV where only the move is refused (landlock(7)).
        let (outside, inside) = attempt.both();
        assert_eq!(outside, OK, "{words:?}");
        assert!([errno(libc::EXDEV), errno(libc::EACCES)].contains(&inside), "{words:?} {inside}");
    }
}

#[test]
fn programs_outside_are_not_executed() {
    let place = Place::new();
    for directory in [place.outside(), place.workspace()] {
        let program = directory.join("true");
        fs::copy("/usr/bin/true", &program).unwrap();
        refused(&place, &["execute", &text(program)], libc::EACCES);
    }
    allowed(&place, &["execute", "/usr/bin/true"]);
}

#[test]
fn no_local_socket_is_reached_by_path_wherever_it_is() {
    let place = Place::new();
    for directory in [place.outside(), place.workspace()] {
        let path = directory.join("socket");
        let _listener = UnixListener::bind(&path).unwrap();
        refused(&place, &["connect-unix", &text(path)], libc::EACCES);
    }
}

#[test]
fn no_local_socket_is_reached_by_abstract_name() {
    let place = Place::new();
    let name = format!("st2-tools-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    refused(&place, &["connect-abstract", &name], libc::EACCES);
}

#[test]
fn no_local_socket_is_reached_from_a_pair() {
    let place = Place::new();
    let path = place.outside().join("socket");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_nonblocking(true).unwrap();
    let path = text(path);
    for word in ["datagram-pair", "raw-pair"] {
        refused(&place, &[word, &path], libc::EACCES);
        let mut byte = [0; 2];
        assert_eq!(socket.recv(&mut byte).unwrap(), 1, "from outside");
        assert!(socket.recv(&mut byte).is_err(), "nothing from inside");
    }
    allowed(&place, &["stream-pair"]);
}

#[test]
fn without_a_network_no_family_has_sockets() {
    let place = Place::new();
    let (stream, dgram, raw) = ("1", "2", "3");
    for (family, kind) in [
        (libc::AF_UNIX, stream),
        (libc::AF_INET, stream),
        (libc::AF_INET, dgram),
        (libc::AF_INET6, stream),
        (libc::AF_NETLINK, raw),
        (libc::AF_VSOCK, stream),
    ] {
        refused(&place, &["socket", &family.to_string(), kind, "0"], libc::EACCES);
    }
}

#[test]
fn granted_ports_are_reached_and_no_others() {
    let place = Place::new();
    let [granted, other] = [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let [granted, other] = [&granted, &other].map(|listener| listener.local_addr().unwrap().port());
    let [first, second] = [granted, other].map(|port| port.to_string());
    let mptcp = libc::IPPROTO_MPTCP.to_string();
    let refused = errno(libc::EACCES);
    for (words, inside) in [
        (&["connect-tcp", &first][..], OK),
        (&["connect-tcp", &second], &refused),
        (&["fast-open", &second], &refused),
        (&["listen-tcp", "0"], &refused),
        (&["listen-unbound"], &refused),
        (&["socket", "2", "1", &mptcp], &refused),
        (&["socket", "1", "1", "0"], &refused),
    ] {
        let network = Network::TcpConnect(vec![granted]);
        Attempt { network, ..Attempt::new(&place, words) }.gives(OK, inside);
    }
}

#[test]
fn any_network_is_the_internet_and_routes_only() {
    let place = Place::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let refused = errno(libc::EACCES);
    for (words, inside) in [
        (&["connect-tcp", &port][..], OK),
        (&["listen-tcp", "0"], OK),
        (&["socket", "10", "2", "0"], OK),
        (&["socket", "16", "3", "0"], OK),
        (&["socket", "16", "3", "15"], &refused),
        (&["socket", "1", "1", "0"], &refused),
    ] {
        Attempt { network: Network::All, ..Attempt::new(&place, words) }.gives(OK, inside);
    }
}

#[test]
fn nothing_is_typed_into_the_terminal() {
    let place = Place::new();
    refused(&place, &["tiocsti"], libc::EPERM);
    refused(&place, &["tiocsti-wide"], libc::EPERM);
}

#[test]
fn the_terminal_keeps_its_line_discipline() {
    let place = Place::new();
    refused(&place, &["set-line-discipline"], libc::EPERM);
}

#[test]
fn another_sessions_terminal_is_not_opened() {
    let place = Place::new();
    let other = Session::spawn();
    refused(&place, &["open-terminal", &other.terminal()], libc::EACCES);
    allowed(&place, &["open-terminal", "/dev/tty"]);
    drop(other);
}

#[test]
fn processes_outside_are_not_signalled_traced_or_read() {
    let place = Place::new();
    let outsider = Outsider::new();
    let pid = outsider.pid();
    let seize = "16902"; // PTRACE_SEIZE
    let call = |number: libc::c_long| number.to_string();
    let (kill, ptrace) = (call(libc::SYS_kill), call(libc::SYS_ptrace));
    refused(&place, &["call", &kill, &pid, "0"], libc::EPERM);
    refused(&place, &["call", &ptrace, seize, &pid], libc::EPERM);
    for file in ["environ", "mem"] {
        refused(&place, &["read-some", &format!("/proc/{pid}/{file}")], libc::EACCES);
    }
    refused(&place, &["list", &format!("/proc/{pid}/root/")], libc::EACCES);
    refused(&place, &["read-link", &format!("/proc/{pid}/fd/0")], libc::EACCES);
}

#[test]
fn processes_outside_are_not_changed_by_number() {
    let place = Place::new();
    let outsider = Outsider::new();
    let pid = outsider.pid();
    let [setpriority, ioprio, prlimit] =
        [libc::SYS_setpriority, libc::SYS_ioprio_set, libc::SYS_prlimit64]
            .map(|number| number.to_string());
    // The least priority, which everybody may give, however little the tests have themselves.
    refused(&place, &["call", &setpriority, "0", &pid, "19"], libc::EPERM);
    refused(&place, &["call", &ioprio, "1", &pid, "0"], libc::EPERM);
    refused(&place, &["call", &prlimit, &pid, "7", "0", "0"], libc::EPERM);
    refused(&place, &["affinity", &pid], libc::EPERM);
    allowed(&place, &["call", &setpriority, "0", "0", "19"]);
    allowed(&place, &["affinity", "0"]);
}

#[test]
fn no_namespace_is_made() {
    let place = Place::new();
    let user = libc::CLONE_NEWUSER;
    let [unshare, clone] = [libc::SYS_unshare, libc::SYS_clone].map(|number| number.to_string());
    refused(&place, &["call", &unshare, &user.to_string()], libc::EPERM);
    refused(&place, &["call", &clone, &(user | libc::SIGCHLD).to_string()], libc::EPERM);
    allowed(&place, &["call", &clone, &libc::SIGCHLD.to_string()]);
    allowed(&place, &["thread"]);
}

#[test]
fn kernel_surface_that_programs_do_without_is_not_there() {
    let place = Place::new();
    let (keyctl, session_keyring) = (libc::SYS_keyctl.to_string(), "-3");
    let userfaultfd = libc::SYS_userfaultfd.to_string();
    refused(&place, &["call", &keyctl, "0", session_keyring, "1"], libc::ENOSYS);
    refused(&place, &["call", &userfaultfd, "1"], libc::ENOSYS);
    for word in ["io-uring", "shared-memory", "queue"] {
        refused(&place, &[word], libc::ENOSYS);
    }
    let (personality, read_implies_exec) = (libc::SYS_personality.to_string(), "4194304");
    refused(&place, &["call", &personality, read_implies_exec], libc::EPERM);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_32_bit_entry_ends_the_tool() {
    let place = Place::new();
    Attempt::new(&place, &["int80"]).gives(OK, "died");
}
