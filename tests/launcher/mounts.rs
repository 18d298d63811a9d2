//! A root of the tool's own: what is not granted has no name, what is granted for reading stays as it
//! is, and ordinary programs work. Each way out is tried without the launcher first.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, symlink},
        net::{UnixDatagram, UnixListener},
    },
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use st2_tools::launch::{
    confine::SOCKETS_ABI,
    landlock_abi,
    report::{Gap, Report, Tier},
    spec::{Access, Grant, LaunchSpec, Target},
};

use crate::session::{Place, Session, confined, mounts, supervised, unconfined};

pub const OK: &str = "ok";
pub const READ: Access = Access { read: true, write: false, execute: false, device: false };
const DEVICE: Access = Access { read: true, write: true, execute: false, device: true };

pub fn errno(errno: i32) -> String {
    format!("errno {errno}")
}

pub fn text(path: impl AsRef<Path>) -> String {
    path.as_ref().to_str().unwrap().to_owned()
}

pub fn granted(mut spec: LaunchSpec, path: impl Into<PathBuf>, access: Access) -> LaunchSpec {
    let target = Target::Path(path.into().canonicalize().unwrap());
    let grant = Grant { target, access, optional: false };
    spec.confinement.grants.push(grant);
    spec
}

/// Tries one without the launcher, where it must succeed, and gives what it gives as the tool.
fn inside(place: &Place, words: &[&str]) -> String {
    inside_of(place, |spec| spec, words)
}

fn inside_of(
    place: &Place,
    change: impl FnOnce(LaunchSpec) -> LaunchSpec,
    words: &[&str],
) -> String {
    let words = [&["try"], words].concat();
    assert_eq!(unconfined(&words).trim(), OK, "{words:?} without the launcher");
    confined(place, change(mounts(place.spec(&words)))).trim().to_owned()
}

/// What a shell script prints as the tool, in the workspace; its last line is `end` unless it failed.
pub fn script(place: &Place, script: &str) -> String {
    script_of(place, |spec| spec, script)
}

pub fn script_of(
    place: &Place,
    change: impl FnOnce(LaunchSpec) -> LaunchSpec,
    script: &str,
) -> String {
    let mut spec = change(mounts(place.spec(&[""])));
    spec.argv = ["bash", "-c", &format!("{script}\necho end")].map(Into::into).into();
    spec.environment.insert("TMPDIR".into(), place.tmpdir().into());
    spec.environment.insert("TERM".into(), "xterm".into());
    spec.environment.insert("HOME".into(), "/home/nobody".into());
    confined(place, spec).replace('\r', "")
}

/// The same without the launcher.
pub fn script_outside(place: &Place, script: &str) -> String {
    let output = Command::new("bash")
        .args(["-c", &format!("{script}\necho end")])
        .current_dir(place.workspace())
        .env("TMPDIR", place.tmpdir())
        .env("HOME", place.outside())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

pub fn report(place: &Place, change: impl FnOnce(LaunchSpec) -> LaunchSpec) -> Report {
    let mut session = Session::open(place, change(mounts(place.spec(&["facts"]))));
    let report = session.start();
    assert!(session.wait().success());
    report
}

pub fn facts(text: &str) -> Value {
    serde_json::from_str(text.trim()).unwrap_or_else(|error| panic!("{error} in {text:?}"))
}

/// A repository with one commit.
pub fn repository(place: &Place) {
    let made = script_outside(
        place,
        "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m 1",
    );
    assert_eq!(made, "end\n");
    assert!(place.workspace().join(".git/config").exists());
}

#[test]
fn files_outside_have_no_name_and_no_metadata_to_change() {
    let place = Place::new();
    let outside = place.outside().join("file");
    fs::write(&outside, "secret\n").unwrap();
    let outside = text(outside);
    for word in ["read", "append", "truncate", "chmod", "set-times", "set-attribute"] {
        assert_eq!(inside(&place, &[word, &outside]), errno(libc::ENOENT), "{word}");
    }
    let link = text(place.workspace().join("link"));
    symlink(&outside, &link).unwrap();
    for name in [link, format!("/proc/self/root{outside}")] {
        assert_eq!(inside(&place, &["read", &name]), errno(libc::ENOENT), "{name}");
    }
}

#[test]
fn what_is_granted_for_reading_keeps_its_metadata() {
    let place = Place::new();
    let file = place.outside().join("file");
    fs::write(&file, "x").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let before = fs::metadata(&file).unwrap();
    let path = text(&file);
    let grant = |spec| granted(spec, place.outside(), READ);
    assert_eq!(inside_of(&place, grant, &["read", &path]), OK);
    assert_eq!(inside(&place, &["chmod", &path]), errno(libc::ENOENT), "without the grant");
    for word in ["chmod", "set-times", "set-attribute"] {
        assert_eq!(inside_of(&place, grant, &[word, &path]), errno(libc::EROFS), "{word}");
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().mode(), before.mode());
}

#[test]
fn sockets_outside_have_no_path_and_those_of_the_session_work() {
    let place = Place::new();
    let outside = place.outside().join("socket");
    let _listener = UnixListener::bind(&outside).unwrap();
    assert_eq!(inside(&place, &["connect-unix", &text(&outside)]), errno(libc::ENOENT));
    let datagrams = place.outside().join("datagrams");
    let socket = UnixDatagram::bind(&datagrams).unwrap();
    socket.set_nonblocking(true).unwrap();
    assert_eq!(inside(&place, &["datagram-pair", &text(&datagrams)]), errno(libc::ENOENT));
    assert_eq!(socket.recv(&mut [0; 2]).unwrap(), 1, "from outside");
    assert!(socket.recv(&mut [0; 2]).is_err(), "nothing from inside");

    for directory in [place.workspace(), place.tmpdir()] {
        assert_eq!(inside(&place, &["listen-unix", &text(directory.join("own"))]), OK);
    }
    let within = place.workspace().join("socket");
    let _within = UnixListener::bind(&within).unwrap();
    assert_eq!(inside(&place, &["connect-unix", &text(within)]), OK);
}

#[test]
fn abstract_sockets_outside_are_out_of_reach() {
    use std::os::{linux::net::SocketAddrExt, unix::net::SocketAddr};
    let place = Place::new();
    let name = format!("st2-tools-mounts-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    assert_eq!(inside(&place, &["connect-abstract", &name]), errno(libc::EPERM));
}

#[test]
fn a_grant_of_everything_leaves_no_local_socket_of_others() {
    let place = Place::new();
    // Not in a directory that the tool has one of its own of.
    let home = tempfile::tempdir_in(std::env::var_os("HOME").unwrap()).unwrap();
    let outside = home.path().join("socket");
    let _listener = UnixListener::bind(&outside).unwrap();
    let whole = |spec| granted(spec, "/", READ);
    let words = ["connect-unix", &text(&outside)];
    assert_eq!(inside_of(&place, whole, &words), errno(libc::EACCES));
    let by_landlock = landlock_abi() >= SOCKETS_ABI;
    let left = if by_landlock { "session" } else { "none" };
    assert_eq!(report(&place, whole).unix_sockets, left);
    assert_eq!(inside_of(&place, whole, &["list", "/"]), OK);
    assert_eq!(inside(&place, &["list", "/"]), errno(libc::EACCES), "without the grant");
}

#[test]
fn the_session_has_temporary_directories_of_its_own() {
    let place = Place::new();
    let name = format!("st2-tools-mounts-{}", std::process::id());
    for directory in ["/tmp", "/dev/shm"] {
        let path = Path::new(directory).join(&name);
        fs::write(&path, "outside").unwrap();
        let seen = script(
            &place,
            &format!(
                "ls {directory}/{name} 2>/dev/null; echo in >{directory}/{name} && cat {directory}/{name}"
            ),
        );
        let kept = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!((seen.as_str(), kept.as_str()), ("in\nend\n", "outside"), "{directory}");
    }
    assert_eq!(script(&place, "echo 1 >$TMPDIR/f && cat $TMPDIR/f"), "1\nend\n");
    assert_eq!(fs::read_to_string(place.tmpdir().join("f")).unwrap(), "1\n");
    let fills = "head -c 300M /dev/zero >/tmp/f 2>/dev/null || stat -c %s /tmp/f";
    assert_eq!(script(&place, fills), "268435456\nend\n");
    let runs = "cp /bin/true /tmp/t; chmod +x /tmp/t; /tmp/t 2>/dev/null && echo open";
    assert_eq!(script(&place, runs), "end\n");
}

#[test]
fn nothing_else_is_there() {
    let place = Place::new();
    let grants_run = |spec| granted(spec, "/usr", READ);
    let found = script_of(
        &place,
        grants_run,
        "for i in /* /run/* /dev/* /dev/pts/* /tmp/*; do [ -e $i ] && echo $i; done 2>/dev/null",
    );
    // Globs need the right to list, which a root of the tool's own does not give.
    assert_eq!(found, "end\n");
    for path in ["/new", "/home/nobody/new"] {
        let made = script(&place, &format!("mkdir {path} 2>&1"));
        assert!(made.contains("Permission denied") || made.contains("No such file"), "{made}");
    }
    for path in ["/var", "/root", "/home", "/run/user", "/boot", "/mnt"] {
        if Path::new(path).exists() {
            let there = script(&place, &format!("[ -e {path} ] && echo {path}"));
            assert_eq!(there, "end\n");
        }
    }
    let mounts = script(&place, "cut -d' ' -f5,6 /proc/self/mountinfo");
    let outside = text(place.outside());
    for line in mounts.lines().filter(|line| *line != "end") {
        let (path, options) = line.split_once(' ').unwrap();
        assert!(!outside.starts_with(path) || path == "/" || path == "/tmp", "{line}");
        assert!(options.contains("nosuid"), "{line}");
        // Landlock keeps the top, which holds names only.
        let own = ["/", "/tmp", "/dev/shm"].map(PathBuf::from);
        let own = own.into_iter().chain([place.workspace(), place.tmpdir()]);
        let writable = own.into_iter().any(|own| Path::new(path) == own);
        assert_eq!(options.starts_with("rw"), writable, "{line}");
        assert!(options.contains("nodev") || path.starts_with("/dev/"), "{line}");
    }
}

#[test]
fn no_descriptor_and_no_capability_is_left() {
    let place = Place::new();
    for change in [|spec| spec, supervised] {
        let spec = change(mounts(place.spec(&["facts"])));
        let mut session = Session::open(&place, spec);
        session.ready();
        session.release();
        assert_eq!(session.confined().tier, Tier::Mounts);
        let facts = facts(&session.all_output());
        let descriptors = facts["descriptors"].as_object().unwrap();
        assert_eq!(descriptors.keys().collect::<Vec<_>>(), ["0", "1", "2"]);
        assert!(descriptors.values().all(|it| it.as_str().unwrap().starts_with("/dev/pts/")));
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd"] {
            assert_eq!(facts["status"][set], "0000000000000000", "{set}");
        }
        let (user, kept) = (nix::unistd::getuid(), facts["status"]["Uid"].as_str().unwrap());
        assert_eq!(kept, vec![user.to_string(); 4].join("\t"));
        assert_eq!(facts["cwd"], json!(place.workspace()));
        assert_eq!(facts["controlling_terminal"], true);
    }
}

#[test]
fn no_mount_is_made_or_changed() {
    let place = Place::new();
    assert_eq!(inside(&place, &["own-mount", &text(place.workspace())]), errno(libc::EPERM));
    let attempts = "mount -o remount,rw /usr; mount --bind /tmp /usr; umount -l /usr; umount /proc; \
        nsenter -t 1 -m true; unshare -r true; chroot / true";
    let attempts: Vec<String> =
        attempts.split("; ").map(|it| format!("{it} 2>/dev/null && echo open")).collect();
    assert_eq!(script(&place, &attempts.join("\n")), "end\n");
    if nix::unistd::geteuid().is_root() {
        let open = script_outside(&place, "unshare -m mount -o remount,bind /proc && echo open");
        assert_eq!(open, "open\nend\n");
    }
}

#[test]
fn other_names_of_what_is_granted_lead_there() {
    let place = Place::new();
    let (file, name) = (place.outside().join("file"), "/home/somebody/.gitconfig");
    fs::write(&file, "found\n").unwrap();
    let named = |spec| {
        let mut spec = granted(spec, &file, READ);
        let root = &mut spec.confinement.root;
        root.links.insert(name.into(), file.clone());
        root.home = Some("/home/somebody".into());
        spec
    };
    assert_eq!(script_of(&place, named, &format!("cat {name}; cd /home/somebody")), "found\nend\n");
}

#[test]
fn terminals_are_made_in_an_instance_of_the_tools_own() {
    let place = Place::new();
    assert_eq!(inside(&place, &["new-terminal"]), errno(libc::ENOENT));
    let ptmx = |spec| granted(spec, "/dev/ptmx", DEVICE);
    assert_eq!(inside_of(&place, ptmx, &["new-terminal"]), OK);
    let runs = "script -qc 'tty; tty </dev/tty' /dev/null; tty; echo >/dev/tty";
    assert_eq!(script_of(&place, ptmx, runs), "/dev/pts/0\n/dev/tty\n/dev/console\n\nend\n");
    let report = report(&place, ptmx);
    assert!(report.devices.contains(&"/dev/pts".to_owned()), "{report:?}");
}

#[test]
fn ordinary_programs_work() {
    let place = Place::new();
    repository(&place);
    let pool = "import multiprocessing as m\n\
        def f(x): return x * x\n\
        if __name__ == '__main__':\n    with m.Pool(2) as p: print(sum(p.map(f, range(10))))\n";
    fs::write(place.workspace().join("pool.py"), pool).unwrap();
    for (what, expected) in [
        ("python3 pool.py", "285"),
        (
            "python3 -c 'import multiprocessing.managers as m; s=m.SyncManager(); s.start(); print(s.list([1]))'",
            "[1]",
        ),
        ("node -e 'console.log(require(\"os\").tmpdir().length > 4)' | cat", "true"),
        ("cat <(echo substituted)", "substituted"),
        ("vim -es -u NONE +'normal ihello' +'wq! v' ; cat v", "hello"),
        ("seq 3 | less -FX | tail -n 1", "3"),
        ("git status -s pool.py | cat", "?? pool.py"),
        ("mktemp -u | grep -c \"^$TMPDIR\"", "1"),
        ("tty | grep -c /dev/pts/", "1"),
        ("echo x >/dev/null && head -c 1 /dev/urandom | wc -c", "1"),
        ("ssh -V 2>&1 | grep -c OpenSSH", "1"),
        ("sort -R --random-source=/dev/zero <<<one", "one"),
        ("id -u", &nix::unistd::getuid().to_string()),
    ] {
        assert_eq!(script(&place, what), format!("{expected}\nend\n"), "{what}");
    }
}

#[test]
fn the_report_says_what_is_beside_the_grants() {
    let place = Place::new();
    repository(&place);
    let report = report(&place, |spec| spec);
    assert_eq!((report.tier, report.unix_sockets.as_str()), (Tier::Mounts, "session"));
    for path in ["/tmp", "/dev/shm"] {
        assert!(report.write.contains(&path.to_owned()), "{report:?}");
    }
    assert!(report.gaps.starts_with(&[Gap::WorkspaceCode, Gap::DiskSpace]), "{report:?}");
}
