//! A loopback interface of the session's own: everything works on it, and it leads nowhere else.

use std::{
    net::{Ipv4Addr, TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
};

use st2_tools::launch::{
    report::Tier,
    spec::{LaunchSpec, Network, Step},
};

use crate::{
    mounts::{OK, errno, report, script_of},
    session::{Place, Session, confined, mounts, unconfined},
};

fn with_loopback(mut spec: LaunchSpec) -> LaunchSpec {
    spec.confinement.network = Network::Loopback;
    spec
}

/// Tries one without the launcher, where it must succeed, and gives what it gives as the tool.
fn inside(place: &Place, words: &[&str]) -> String {
    let words = [&["try"], words].concat();
    assert_eq!(unconfined(&words).trim(), OK, "{words:?} without the launcher");
    confined(place, with_loopback(mounts(place.spec(&words)))).trim().to_owned()
}

#[test]
fn listeners_outside_are_out_of_reach() {
    let place = Place::new();
    let here = (Ipv4Addr::LOCALHOST, 0);
    let listener = TcpListener::bind(here).unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    assert_eq!(inside(&place, &["send-tcp", &address]), errno(libc::ECONNREFUSED));
    listener.accept().unwrap();
    assert!(listener.accept().is_err(), "one came from outside, none from inside");

    let socket = UdpSocket::bind(here).unwrap();
    socket.set_nonblocking(true).unwrap();
    // Whether anybody hears it is not for the sender to know.
    inside(&place, &["send-udp", &socket.local_addr().unwrap().to_string()]);
    socket.recv(&mut [0; 16]).unwrap();
    assert!(socket.recv(&mut [0; 16]).is_err(), "one came from outside, none from inside");

    let name = format!("st2-tools-loopback-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    assert_eq!(inside(&place, &["connect-abstract", &name]), errno(libc::ECONNREFUSED));
}

#[test]
fn listeners_inside_are_heard() {
    let place = Place::new();
    for words in [&["talk-over-loopback"][..], &["listen-everywhere"], &["listen-udp"], &["routes"]]
    {
        assert_eq!(inside(&place, words), OK, "{words:?}");
    }
    for family in [libc::AF_VSOCK, libc::AF_ALG] {
        let words = ["try", "socket", &family.to_string(), "5", "0"];
        let refused = confined(&place, with_loopback(mounts(place.spec(&words))));
        assert_eq!(refused.trim(), errno(libc::EACCES));
    }
}

#[test]
fn there_is_one_interface_and_no_way_to_change_it() {
    let place = Place::new();
    assert_eq!(report(&place, with_loopback).network, "loopback");
    let script = |text: &str| script_of(&place, with_loopback, text);
    let own = script("readlink /proc/self/ns/net");
    let ours = std::fs::read_link("/proc/self/ns/net").unwrap();
    assert!(own.starts_with("net:[") && !own.starts_with(ours.to_str().unwrap()), "{own}");
    assert_eq!(script("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '"), "lo\nend\n");
    assert_eq!(script("ip link set lo down 2>/dev/null && echo open"), "end\n");
    assert_eq!(script("ip link add d type dummy 2>/dev/null && echo open"), "end\n");
    if nix::unistd::geteuid().is_root() {
        let open = "unshare --net sh -c 'ip link set lo up && ip link set lo down' && echo open";
        assert_eq!(crate::mounts::script_outside(&place, open), "open\nend\n");
    }
}

#[test]
fn a_tier_without_namespaces_has_none() {
    let place = Place::new();
    let mut session = Session::open(&place, with_loopback(place.spec(&["facts"])));
    let failure = session.failure();
    assert_eq!(failure.step, Step::Confine);
    let expected = "network loopback needs tier mounts, and this is tier seccomp";
    assert_eq!(failure.message, expected, "{:?}", Tier::Seccomp);
}
