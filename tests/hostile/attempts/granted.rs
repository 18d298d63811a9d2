//! Beyond what is granted beside files: a session with the user's ssh-agent, one with a network of its own, one with
//! terminals.

use std::path::Path;

use super::{kernel::terminal, sockets::by_path};
use crate::{
    hostile::{
        attempt::{Attempt, words},
        from::From,
        scene::{Scene, text},
    },
    support::listeners::Listener,
};

pub fn attempts() -> Vec<Attempt> {
    let from = |attempts: Vec<Attempt>, from| attempts.into_iter().map(move |a| a.from(from));
    from(keys(), From::Keys)
        .chain(from(loopback(), From::Loopback))
        .chain(from(terminals(), From::Terminals))
        .collect()
}

/// A path beside the agent's socket.
fn beside(scene: &Scene, name: &str) -> String {
    text(&scene.agent.directory().join(name))
}

fn keys() -> Vec<Attempt> {
    vec![
        Attempt::shell("agent granted: sign with the user's key", |s| {
            std::fs::copy(s.agent.key().with_extension("pub"), s.place(From::Keys).join("key.pub"))
                .unwrap();
            format!("SSH_AUTH_SOCK={} ssh-add -T key.pub", s.agent.socket().display())
        })
        .gap(&["granted-sockets"]),
        Attempt::new("agent granted: another socket beside it", |s| {
            let path = beside(s, "other");
            s.listen("beside", Listener::stream(Path::new(&path)));
            words!["send-stream", path]
        })
        .trace(|s| s.heard("beside")),
        Attempt::new("agent granted: the key in its directory", |s| {
            words!["read-has", beside(s, "key"), "PRIVATE KEY"]
        }),
        Attempt::new("agent granted: a listener in its directory", |s| {
            words!["listen-stream", beside(s, "own")]
        })
        .trace(|s| Path::new(&beside(s, "own")).exists()),
        Attempt::new("agent granted: move its socket away", |s| {
            words!["rename", beside(s, "agent"), beside(s, "moved")]
        })
        .trace(|s| Path::new(&beside(s, "moved")).exists()),
        by_path("agent granted: the user bus by its path", "by-path-of-keys"),
        Attempt::new("agent granted: a service in the runtime directory", |s| {
            let path = s.plant("$XDG_RUNTIME_DIR", "keys-*.sock");
            s.listen("keys", Listener::stream(Path::new(&path)));
            words!["send-stream", path]
        })
        .trace(|s| s.heard("keys")),
        Attempt::new("agent granted: an abstract name", |s| {
            let name = format!("keys-{}", s.name());
            s.listen("keys-abstract", Listener::hidden(&name));
            words!["send-abstract", name]
        })
        .trace(|s| s.heard("keys-abstract")),
    ]
}

fn loopback() -> Vec<Attempt> {
    let to = |name: &'static str,
              word: &'static str,
              listen: fn(&str) -> (Listener, String),
              address: &'static str| {
        let new = move |s: &Scene| {
            let (listener, address) = listen(address);
            s.listen(name, listener);
            words![word, address]
        };
        Attempt::new(name, new).trace(move |s| s.heard(name)).alone()
    };
    vec![
        to("own loopback: TCP to the machine's", "send-tcp", Listener::tcp, "127.0.0.1:0"),
        to("own loopback: TCP over IPv6", "send-tcp", Listener::tcp, "[::1]:0"),
        to("own loopback: UDP to the machine's", "send-udp", Listener::udp, "127.0.0.1:0"),
        to("own loopback: UDP over IPv6", "send-udp", Listener::udp, "[::1]:0"),
        Attempt::new("own loopback: an abstract name", |s| {
            let name = format!("loopback-{}", s.name());
            s.listen("loopback-abstract", Listener::hidden(&name));
            words!["send-abstract", name]
        })
        .trace(|s| s.heard("loopback-abstract"))
        .alone(),
        by_path("own loopback: the user bus by its path", "by-path-of-loopback"),
        Attempt::new("own loopback: a raw socket, in a namespace of its own", |_| {
            words!["in-namespace", libc::AF_INET, libc::IPPROTO_ICMP]
        }),
        Attempt::new("own loopback: everybody's sockets, by netlink", |_| words!["sockets-of-all"]),
        Attempt::new("own loopback: a vsock listener", |_| words!["listen-vsock"]),
    ]
}

fn terminals() -> Vec<Attempt> {
    vec![
        Attempt::new("terminals granted: write on another session's", |s| {
            words!["put", s.sessions["attacked"].terminal, "defaced"]
        }),
        Attempt::new("terminals granted: write on the one it was started from", |s| {
            words!["put", terminal(s), "defaced"]
        }),
        Attempt::new("terminals granted: type into one that is nobody's", |s| {
            words!["type-elsewhere", terminal(s)]
        }),
    ]
}
