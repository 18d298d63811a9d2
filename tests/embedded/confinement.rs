//! The confinement is the same without a bus. Each attempt is made unconfined too, where it must succeed.

use std::{
    fs,
    net::TcpListener,
    os::unix::net::UnixListener,
    process::{Command, Stdio},
};

use crate::place::{Place, home};

/// `EACCES`, as Landlock and the filter refuse.
const REFUSED: &str = "errno 13";

/// `ENOENT`: what is not granted has no name in the tier that is in force here, `mounts`.
const NAMELESS: &str = "errno 2";

/// Tries one way out, unconfined and confined; gives both verdicts.
fn try_both(place: &Place, attempt: &[&str]) -> [String; 2] {
    let probe = place.probe();
    let free = Command::new(&probe).arg("try").args(attempt).output().unwrap();
    let free = String::from_utf8(free.stdout).unwrap();
    let confined = place.run(&[&["run", "--", &probe, "try"], attempt].concat());
    assert_eq!(confined.status, Some(0), "{}", confined.stderr);
    [free.trim().to_owned(), confined.text().trim().to_owned()]
}

#[test]
fn a_secret_of_the_home_directory_cannot_be_read_or_replaced() {
    let place = Place::new();
    let secret = tempfile::NamedTempFile::new_in(home()).unwrap();
    fs::write(&secret, "secret").unwrap();
    let path = secret.path().to_str().unwrap();
    for (attempt, verdict) in [("read", NAMELESS), ("append", NAMELESS), ("write", REFUSED)] {
        assert_eq!(try_both(&place, &[attempt, path]), ["ok", verdict], "{attempt}");
    }
    let inside = place.workspace().join("inside");
    fs::write(&inside, "ours").unwrap();
    let path = inside.to_str().unwrap();
    assert_eq!(try_both(&place, &["append", path]), ["ok", "ok"]);
}

#[test]
fn a_listener_outside_cannot_be_reached() {
    let place = Place::new();
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(try_both(&place, &["connect-unix", path]), ["ok", NAMELESS]);
    let tcp = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = tcp.local_addr().unwrap().port().to_string();
    assert_eq!(try_both(&place, &["connect-tcp", &port]), ["ok", REFUSED]);
}

#[test]
fn what_cannot_be_enforced_is_refused() {
    let place = Place::new();
    for (name, value) in [("ST2_TOOLS_MAX_TIER", "none"), ("ST2_TOOLS_LANDLOCK_ABI", "5")] {
        let mut command = place.command(&["run", "touch", "ran"]);
        let ran = crate::program::finish(command.env(name, value).stdin(Stdio::null()));
        assert_eq!(ran.status, Some(125), "{name}={value}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("see st2-tools explain TOOL for what it needs"),
            "{}",
            ran.stderr
        );
    }
    assert!(!place.workspace().join("ran").exists());
}
