//! Other machines, and this one by its network.

use crate::{
    hostile::{
        attempt::{Attempt, words},
        scene::Scene,
    },
    support::listeners::Listener,
};

pub fn attempts() -> Vec<Attempt> {
    let tcp = |s: &Scene, name: &str, address: &str| {
        let (listener, address) = Listener::tcp(address);
        s.listen(name, listener);
        address
    };
    let port = |address: &str| address.rsplit(':').next().unwrap().to_owned();
    vec![
        Attempt::new("TCP to a listener", move |s| {
            words!["send-tcp", tcp(s, "tcp", "127.0.0.1:0")]
        })
        .trace(|s| s.heard("tcp")),
        Attempt::new("TCP over IPv6", move |s| words!["send-tcp", tcp(s, "tcp6", "[::1]:0")])
            .trace(|s| s.heard("tcp6")),
        Attempt::new("TCP by Fast Open", move |s| {
            words!["fast-open", port(&tcp(s, "fast", "127.0.0.1:0"))]
        }),
        Attempt::new("Multipath TCP", move |s| {
            words!["send-mptcp", port(&tcp(s, "mptcp", "127.0.0.1:0"))]
        })
        .trace(|s| s.heard("mptcp")),
        Attempt::new("UDP to a listener", |s| {
            let (listener, address) = Listener::udp("127.0.0.1:0");
            s.listen("udp", listener);
            words!["send-udp", address]
        })
        .trace(|s| s.heard("udp")),
        Attempt::new("a TCP listener of its own", |_| words!["listen-everywhere"]),
        Attempt::new("a TCP listener without a port", |_| words!["listen-unbound"]),
        Attempt::new("a UDP listener of its own", |_| words!["listen-udp"]),
        Attempt::new("a raw socket, in a namespace of its own", |_| {
            words!["in-namespace", libc::AF_INET, libc::IPPROTO_ICMP]
        }),
        Attempt::new("a packet socket, in a namespace of its own", |_| {
            words!["in-namespace", libc::AF_PACKET, 0]
        }),
        Attempt::new("the network's links, by netlink", |_| words!["routes"]),
        Attempt::new("everybody's sockets, by netlink", |_| words!["sockets-of-all"]),
        Attempt::new("the events of devices, by netlink", |_| words!["device-events"]),
        Attempt::new("a vsock listener", |_| words!["listen-vsock"]),
    ]
}
