//! A Landlock that is too old, where the policy accepts that: what is open is listed, and is open.

use std::net::{Ipv4Addr, TcpListener};

use st2_tools::launch::{report::Gap, spec::Network};

use crate::{
    attempts::{OK, Outsider, errno},
    session::{Place, Session, unconfined},
};

#[test]
fn a_degraded_confinement_says_what_is_open_and_that_is_open() {
    let place = Place::new();
    let outsider = Outsider::new();
    let kill = libc::SYS_kill.to_string();
    let mut spec = place.spec(&["try", "call", &kill, &outsider.pid(), "0"]);
    spec.confinement.landlock_abi_cap = Some(5);
    spec.confinement.allow_degraded = true;
    let mut session = Session::open(&place, spec);
    let report = session.start();
    assert_eq!(report.signals, "open");
    assert!(report.gaps.contains(&Gap::SignalsOutside));
    assert_eq!(session.all_output().trim(), OK);
}

/// Landlock knows no ports below ABI 4; what the filter takes stays taken.
#[test]
fn ports_are_open_where_landlock_knows_none_and_that_is_a_listed_gap() {
    let place = Place::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let degraded = |words: &[&str]| {
        let mut spec = place.spec(&[&["try"], words].concat());
        spec.confinement.network = Network::TcpConnect(vec![9]);
        (spec.confinement.landlock_abi_cap, spec.confinement.allow_degraded) = (Some(3), true);
        let mut session = Session::open(&place, spec);
        let gaps = session.start().gaps;
        assert!(gaps.contains(&Gap::TcpOpen) && gaps.contains(&Gap::UdpOpen), "{gaps:?}");
        session.all_output().trim().to_owned()
    };
    assert_eq!(degraded(&["connect-tcp", &port]), OK);
    for words in [&["listen-tcp", "0"][..], &["fast-open", &port]] {
        assert_eq!(unconfined(&[&["try"], words].concat()).trim(), OK);
        assert_eq!(degraded(words), errno(libc::EACCES), "{words:?}");
    }
}
