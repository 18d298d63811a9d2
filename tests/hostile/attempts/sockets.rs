//! The user's services, by their sockets.

use std::{fs, path::Path};

use crate::{
    hostile::{
        attempt::{Attempt, words},
        scene::{Scene, text},
    },
    support::{bus::Bus, keys::variable, listeners::Listener},
};

pub fn attempts() -> Vec<Attempt> {
    [buses(), agents(), displays(), kinds()].into_iter().flatten().collect()
}

/// Asks the bus whether it is there, which needs a connection that it has let in.
const ASK: &str = "call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus GetId";

/// An environment as that of the user's session.
fn environment() -> String {
    let runtime = text(&variable("XDG_RUNTIME_DIR"));
    format!("export XDG_RUNTIME_DIR={runtime} DBUS_SESSION_BUS_ADDRESS=unix:path={runtime}/bus;")
}

/// Has the manager leave a mark.
fn run_by_manager(scene: &Scene, mark: &str) -> String {
    format!("systemd-run --user --quiet --wait touch {}", scene.out(mark))
}

/// Leaves a mark by the path of the user bus.
pub fn by_path(name: &'static str, mark: &'static str) -> Attempt {
    let script = move |s: &Scene| {
        environment() + " unset DBUS_SESSION_BUS_ADDRESS; " + &run_by_manager(s, mark)
    };
    Attempt::shell(name, script).trace(move |s| s.is_there(mark))
}

fn buses() -> Vec<Attempt> {
    vec![
        Attempt::shell("user bus by its address: systemd-run", |s| {
            environment() + &run_by_manager(s, "by-address")
        })
        .trace(|s| s.is_there("by-address")),
        by_path("user bus by its path: systemd-run", "by-path"),
        Attempt::shell("user bus by another program's connection", |s| {
            let bridge = "unixexec:path=systemd-stdio-bridge,argv1=--bus-path=unix:path";
            let address = format!("DBUS_SESSION_BUS_ADDRESS={bridge}=$XDG_RUNTIME_DIR/bus");
            environment() + &address + " " + &run_by_manager(s, "by-bridge")
        })
        .trace(|s| s.is_there("by-bridge")),
        Attempt::shell("user bus: write the manager's environment", |s| {
            environment() + "systemctl --user set-environment ST2_BY_TOOL=" + s.name()
        })
        .trace(|s| crate::support::manager::systemctl(&["show-environment"]).contains(s.name())),
        Attempt::shell("the manager's private socket", |s| {
            let unit = s.unit("by-manager");
            environment()
                + "DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere systemctl --user start "
                + &unit
        })
        .trace(|s| s.is_there("by-manager")),
        Attempt::shell("a bus by its abstract name", |s| {
            let bus = Bus::hidden(s.name());
            let address = bus.address().to_owned();
            s.keep(bus);
            format!("busctl --address={address} {ASK}")
        }),
        Attempt::shell("the system bus", |_| format!("busctl --system {ASK}")),
        Attempt::shell("org.st2.Tools itself: open a tool elsewhere", |s| {
            let place = s.sessions["attacked"].workspace().display();
            let call = "call org.st2.Tools /org/st2/Tools org.st2.Tools.Manager1 Open 'sa{sv}'";
            let options = format!("2 workspace s {place} argv as 2 touch by-broker");
            environment() + &format!("busctl --user {call} command {options}")
        })
        .trace(|s| s.sessions["attacked"].workspace().join("by-broker").exists()),
    ]
}

fn agents() -> Vec<Attempt> {
    vec![
        Attempt::shell("ssh-agent, granted to another session: sign with the user's key", |s| {
            let key = s.inside("key.pub");
            fs::copy(s.agent.key().with_extension("pub"), &key).unwrap();
            format!("SSH_AUTH_SOCK={} ssh-add -T {key}", s.agent.socket().display())
        }),
        service("gpg-agent", "$XDG_RUNTIME_DIR/gnupg", "S.gpg-agent.*"),
        service("docker", "$XDG_RUNTIME_DIR", "docker-*.sock"),
        service("the parent's own daemon", "~/.local/state/st2", "daemon-*.sock"),
    ]
}

fn displays() -> Vec<Attempt> {
    vec![
        service("Wayland", "$XDG_RUNTIME_DIR", "wayland-*"),
        service("X11 by path", "/tmp/.X11-unix", "X-*"),
        Attempt::new("X11 by abstract name", |s| {
            let name = format!("/tmp/.X11-unix/X-{}", s.name());
            s.listen("x11", Listener::hidden(&name));
            words!["send-abstract", name]
        })
        .trace(|s| s.heard("x11")),
    ]
}

/// A service that listens where the real one does.
fn service(name: &'static str, directory: &'static str, socket: &'static str) -> Attempt {
    Attempt::new(name, move |s| {
        let path = s.plant(directory, socket);
        s.listen(name, Listener::stream(Path::new(&path)));
        words!["send-stream", path]
    })
    .trace(move |s| s.heard(name))
}

/// What a filter of some kinds of socket, or of some ways to make one, would miss.
fn kinds() -> Vec<Attempt> {
    let outside = |s: &Scene, name: &str, listener: fn(&Path) -> Listener| {
        let path = s.out(name);
        s.listen(name, listener(Path::new(&path)));
        path
    };
    vec![
        Attempt::new("a datagram socket", move |s| {
            words!["send-datagram", outside(s, "datagram", Listener::datagram)]
        })
        .trace(|s| s.heard("datagram")),
        Attempt::new("a socket of sequenced packets", move |s| {
            words!["send-sequence", outside(s, "sequence", Listener::sequence)]
        })
        .trace(|s| s.heard("sequence")),
        Attempt::new("a datagram pair, connected anew", move |s| {
            words!["datagram-pair", outside(s, "pair", Listener::datagram)]
        }),
        Attempt::new("a raw pair, connected anew", move |s| {
            words!["raw-pair", outside(s, "raw-pair", Listener::datagram)]
        }),
        Attempt::new("a socket made by io_uring", move |s| {
            words!["send-by-ring", outside(s, "ring", Listener::stream)]
        })
        .trace(|s| s.heard("ring")),
        Attempt::new("a listener of its own, outside", |s| words!["listen-stream", s.out("own")])
            .trace(|s| s.is_there("own")),
    ]
}
