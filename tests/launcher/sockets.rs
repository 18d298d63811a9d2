//! Sockets that others listen on: those that are granted are reached, and no others.

use std::{
    fs,
    os::unix::net::{UnixDatagram, UnixListener},
    path::{Path, PathBuf},
};

use st2_tools::launch::{
    confine::SOCKETS_ABI,
    landlock_abi,
    report::{Gap, Tier},
    spec::{LaunchSpec, SocketGrant, Step},
};

use crate::{
    mounts::{OK, READ, errno, granted, report, script_of, text},
    session::{Place, Session, confined, mounts, unconfined},
};

/// The tiers of this kernel in which a socket can be granted.
fn tiers() -> Vec<Tier> {
    let by_landlock = landlock_abi() >= SOCKETS_ABI;
    [Some(Tier::Mounts), by_landlock.then_some(Tier::ResolveUnix)].into_iter().flatten().collect()
}

fn in_tier(mut spec: LaunchSpec, tier: Tier) -> LaunchSpec {
    spec = mounts(spec);
    spec.confinement.tier = tier;
    spec
}

fn with_socket(mut spec: LaunchSpec, path: &Path, at: &Path) -> LaunchSpec {
    let grant = SocketGrant { path: path.to_owned(), at: at.to_owned() };
    spec.confinement.sockets.push(grant);
    spec
}

/// What a tier gives for a socket that is not granted.
fn refusal(tier: Tier) -> String {
    errno(if tier == Tier::Mounts { libc::ENOENT } else { libc::EACCES })
}

/// A listener of each kind, without waiting.
struct Listeners {
    stream: UnixListener,
    datagram: UnixDatagram,
}

impl Listeners {
    /// Two sockets in a directory of their own.
    fn new(directory: &Path) -> Self {
        fs::create_dir(directory).unwrap();
        let stream = UnixListener::bind(directory.join("stream")).unwrap();
        let datagram = UnixDatagram::bind(directory.join("datagram")).unwrap();
        stream.set_nonblocking(true).unwrap();
        datagram.set_nonblocking(true).unwrap();
        Self { stream, datagram }
    }

    /// How many came to each since the last time.
    fn heard(&self) -> (usize, usize) {
        let streams = std::iter::from_fn(|| self.stream.accept().ok()).count();
        let datagrams = std::iter::from_fn(|| self.datagram.recv(&mut [0; 16]).ok()).count();
        (streams, datagrams)
    }
}

#[test]
fn granted_sockets_are_reached_and_their_neighbours_are_not() {
    let place = Place::new();
    let (granted, other) = (place.outside().join("granted"), place.outside().join("other"));
    let (here, there) = (Listeners::new(&granted), Listeners::new(&other));
    for tier in tiers() {
        let spec = |words: &[&str]| {
            let spec = in_tier(place.spec(&[&["try"], words].concat()), tier);
            let stream = with_socket(spec, &granted.join("stream"), &granted.join("stream"));
            with_socket(stream, &granted.join("datagram"), &granted.join("datagram"))
        };
        for kind in ["stream", "datagram"] {
            let send = format!("send-{kind}");
            let words = [send.as_str(), &text(granted.join(kind))];
            assert_eq!(confined(&place, spec(&words)).trim(), OK, "{tier:?} {words:?}");
            let words = [send.as_str(), &text(other.join(kind))];
            assert_eq!(unconfined(&[&["try"], &words[..]].concat()).trim(), OK);
            assert_eq!(confined(&place, spec(&words)).trim(), refusal(tier), "{tier:?} {words:?}");
        }
        assert_eq!((here.heard(), there.heard()), ((1, 1), (1, 1)), "{tier:?}");
        for word in ["datagram-pair", "raw-pair"] {
            let words = ["try", word, &text(other.join("datagram"))];
            assert_eq!(unconfined(&words).trim(), OK);
            assert_eq!(confined(&place, spec(&words[1..])).trim(), refusal(tier), "{word}");
        }
        assert_eq!(there.heard(), (0, 2), "{tier:?}");
    }
}

#[test]
fn a_granted_socket_opens_nothing_else_in_its_directory() {
    let place = Place::new();
    let directory = place.outside().join("granted");
    let _listeners = Listeners::new(&directory);
    fs::write(directory.join("secret"), "secret\n").unwrap();
    for tier in tiers() {
        let spec = |words: &[&str]| {
            let spec = in_tier(place.spec(&[&["try"], words].concat()), tier);
            with_socket(spec, &directory.join("stream"), &directory.join("stream"))
        };
        for (word, name) in [("read", "secret"), ("remove", "stream"), ("chmod", "stream")] {
            let words = [word, &text(directory.join(name))];
            let refused = confined(&place, spec(&words));
            // By Landlock alone, metadata stays open, as its gap says.
            let expected = if tier != Tier::Mounts && word == "chmod" { OK } else { "errno" };
            assert!(refused.starts_with(expected), "{tier:?} {words:?}: {refused}");
        }
        for word in ["read", "chmod"] {
            let words = ["try", word, &text(directory.join("secret"))];
            assert_eq!(unconfined(&words).trim(), OK);
        }
    }
}

#[test]
fn a_socket_is_found_where_its_users_look_for_it() {
    let place = Place::new();
    let listener = UnixListener::bind(place.outside().join("extra")).unwrap();
    listener.set_nonblocking(true).unwrap();
    let user = nix::unistd::geteuid();
    let at = PathBuf::from(format!("/run/user/{user}/gnupg/S.gpg-agent"));
    let named = |spec| with_socket(spec, &place.outside().join("extra"), &at);
    let words = ["try", "send-stream", &text(&at)];
    assert_eq!(confined(&place, named(mounts(place.spec(&words)))).trim(), OK);
    listener.accept().unwrap();
    // gpg(1) wants them to be its user's alone.
    let modes = format!("cd /run/user/{user} && stat -c '%a %u' . gnupg && stat -c %F gnupg/*");
    let modes = script_of(&place, named, &modes.replace("gnupg/*", "gnupg/S.gpg-agent"));
    assert_eq!(modes, format!("700 {user}\n700 {user}\nsocket\nend\n"));
    let report = report(&place, named);
    assert_eq!(report.sockets, [text(&at)]);
    assert!(report.gaps.contains(&Gap::GrantedSockets), "{report:?}");
}

#[test]
fn a_socket_that_another_has_replaced_is_refused() {
    let place = Place::new();
    let path = place.outside().join("socket");
    let judged = UnixListener::bind(&path).unwrap();
    let spec = with_socket(mounts(place.spec(&["facts"])), &path, &path);
    let mut other = None;
    let mut session = Session::open_and(&place, spec, || {
        fs::rename(&path, place.outside().join("old")).unwrap();
        other = Some(UnixListener::bind(&path).unwrap());
    });
    let failure = session.failure();
    let expected = format!("{} is not any more what was granted", path.display());
    assert_eq!((failure.step, failure.message), (Step::Confine, expected));
    drop((judged, other));
}

#[test]
fn no_other_tier_and_no_other_file_is_granted_as_a_socket() {
    let place = Place::new();
    let (socket, file) = (place.outside().join("socket"), place.outside().join("file"));
    let _listener = UnixListener::bind(&socket).unwrap();
    fs::write(&file, "").unwrap();
    let refused = |spec: LaunchSpec| {
        let failure = Session::open(&place, spec).failure();
        assert_eq!(failure.step, Step::Confine);
        failure.message
    };
    assert_eq!(
        refused(with_socket(place.spec(&["facts"]), &socket, &socket)),
        format!("the socket {} cannot be granted in tier seccomp", socket.display())
    );
    assert_eq!(
        refused(with_socket(mounts(place.spec(&["facts"])), &file, &file)),
        format!("{} is granted as a socket, and is none", file.display())
    );
    assert_eq!(
        refused(granted(mounts(place.spec(&["facts"])), &socket, READ)),
        format!("{} is a socket, and not granted as one", socket.display())
    );
}

/// By Landlock alone, where the root is the machine's.
fn by_landlock(place: &Place, words: &[&str]) -> LaunchSpec {
    in_tier(place.spec(&[&["try"], words].concat()), Tier::ResolveUnix)
}

#[test]
fn landlock_alone_leaves_sockets_to_the_session_where_it_can() {
    let place = Place::new();
    let mut session = Session::open(&place, by_landlock(&place, &["stream-pair"]));
    if landlock_abi() < SOCKETS_ABI {
        let failure = session.failure();
        let rule = "is below 9 and cannot confine sockets: no tier resolve-unix";
        assert!(failure.message.ends_with(rule), "{}", failure.message);
        return;
    }
    let report = session.start();
    assert_eq!((report.tier, report.unix_sockets.as_str()), (Tier::ResolveUnix, "session"));
    assert!(report.gaps.contains(&Gap::MetadataOutside), "{report:?}");
    for directory in [place.workspace(), place.tmpdir()] {
        let _listener = UnixListener::bind(directory.join("listening")).unwrap();
        for words in [
            ["send-stream", &text(directory.join("listening"))],
            ["listen-unix", &text(directory.join("own"))],
        ] {
            assert_eq!(confined(&place, by_landlock(&place, &words)).trim(), OK, "{words:?}");
        }
    }
}

/// No other name of a socket, and no other kind of it, is open in one tier.
#[test]
fn a_socket_is_closed_by_whatever_name_and_kind() {
    let place = Place::new();
    let others = place.outside().join("others");
    let listeners = Listeners::new(&others);
    let roots = format!("/proc/self/root{}", text(others.join("stream")));
    let link = place.workspace().join("link");
    std::os::unix::fs::symlink(others.join("stream"), &link).unwrap();
    for tier in tiers() {
        for words in [
            ["send-stream", &text(others.join("stream"))],
            ["send-datagram", &text(others.join("datagram"))],
            ["datagram-pair", &text(others.join("datagram"))],
            ["send-stream", &roots],
            ["send-stream", &text(&link)],
        ] {
            let words = [&["try"], &words[..]].concat();
            assert_eq!(unconfined(&words).trim(), OK, "{words:?}");
            listeners.heard();
            let refused = confined(&place, in_tier(place.spec(&words), tier));
            assert_eq!(refused.trim(), refusal(tier), "{tier:?} {words:?}");
            assert_eq!(listeners.heard(), (0, 0), "{tier:?} {words:?}");
        }
    }
}

/// A grant for writing opens files, and not what listens in there, where the kernel can tell; nor does
/// the private directory that it happens to be mounted in.
#[test]
fn sockets_beneath_a_path_that_can_be_written_are_not_granted_with_it() {
    let place = Place::new();
    let directory = place.outside().join("cache");
    let _listeners = Listeners::new(&directory);
    let write = st2_tools::launch::spec::Access { write: true, ..READ };
    let words = ["try", "send-stream", &text(directory.join("stream"))];
    let spec = granted(mounts(place.spec(&words)), &directory, write);
    let expected = if landlock_abi() < SOCKETS_ABI { OK.to_owned() } else { errno(libc::EACCES) };
    assert_eq!(confined(&place, spec).trim(), expected);
    let words = ["try", "listen-unix", &text(directory.join("own"))];
    let spec = granted(mounts(place.spec(&words)), &directory, write);
    assert_eq!(confined(&place, spec).trim(), OK);
}
