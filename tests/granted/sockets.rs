//! Sockets of other services, by path and by name.

use std::{fs, path::Path};

use super::policy::{WITH_SOCKETS, refused, run, script_with, start};
use crate::support::{
    keys::{runtime_directory, variable},
    listeners::Listener,
    program, tiers, tools, workspace,
};

fn probe() -> String {
    tools::install(&program("st2-tools-probe")).to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_socket_that_is_granted_by_path_is_reached_and_its_neighbour_is_not() {
    let place = runtime_directory("service-");
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let policy = script_with(&format!("sockets = ['{}']", path("granted")));
    let probe = probe();
    for tier in tiers().await {
        let listeners =
            ["granted", "neighbour"].map(|name| Listener::stream(Path::new(&path(name))));
        let broker = start(&tier, policy.path()).unit().await;
        let workspace = workspace();
        if WITH_SOCKETS.contains(&tier.as_str()) {
            let script = "$2 try send-stream $0; $2 try send-stream $1";
            let argv = [script, &path("granted"), &path("neighbour"), &probe];
            let ran = run(&broker, workspace.path(), &argv).await;
            listeners.iter().for_each(Listener::settle);
            let heard = listeners.each_ref().map(Listener::heard);
            assert_eq!(heard, [true, false], "{tier}: {ran:?}");
            assert_eq!(ran.confinement.texts("sockets"), [path("granted")], "{tier}");
            assert!(ran.has_gap("granted-sockets"), "{tier}: {ran:?}");
        } else {
            let (name, text) = refused(&broker.client().await, workspace.path()).await;
            assert_eq!(name, "NotPermitted", "{text}");
            assert!(text.contains(&path("granted")) && text.contains(&tier), "{text}");
        }
        for name in ["granted", "neighbour"] {
            fs::remove_file(path(name)).unwrap();
        }
    }
}

#[tokio::test]
async fn a_display_is_reached_by_the_variable_that_names_it() {
    let socket = variable("XDG_RUNTIME_DIR").join("wayland-granted");
    let policy = script_with("sockets = ['wayland']");
    let probe = probe();
    for tier in tiers().await {
        let listener = Listener::stream(&socket);
        let broker =
            start(&tier, policy.path()).env("WAYLAND_DISPLAY", "wayland-granted").unit().await;
        let workspace = workspace();
        if WITH_SOCKETS.contains(&tier.as_str()) {
            let ran =
                run(&broker, workspace.path(), &["$0 try send-stream $WAYLAND_DISPLAY", &probe])
                    .await;
            listener.settle();
            assert!(listener.heard(), "{tier}: {ran:?}");
        } else {
            let (name, text) = refused(&broker.client().await, workspace.path()).await;
            assert_eq!(name, "NotPermitted", "{text}");
            assert!(text.contains("wayland") && text.contains(&tier), "{text}");
        }
        fs::remove_file(&socket).unwrap();
    }
}

#[tokio::test]
async fn what_gives_the_user_s_whole_session_is_never_granted() {
    let runtime = variable("XDG_RUNTIME_DIR");
    for tier in tiers().await {
        for socket in ["bus", "systemd/private", "systemd/notify"] {
            let socket = runtime.join(socket);
            assert!(socket.exists(), "{}", socket.display());
            let policy = script_with(&format!("sockets = ['{}']", socket.display()));
            let broker = start(&tier, policy.path()).unit().await;
            let (name, text) = refused(&broker.client().await, workspace().path()).await;
            assert_eq!(name, "NotPermitted", "{tier}: {text}");
        }
    }
}

/// By another name too: a symlink that leads to the bus.
#[tokio::test]
async fn a_symlink_to_the_bus_is_not_granted() {
    let place = runtime_directory("service-");
    let link = place.path().join("innocent");
    std::os::unix::fs::symlink(variable("XDG_RUNTIME_DIR").join("bus"), &link).unwrap();
    let policy = script_with(&format!("sockets = ['{}']", link.display()));
    for tier in tiers().await {
        let broker = start(&tier, policy.path()).unit().await;
        let (name, text) = refused(&broker.client().await, workspace().path()).await;
        assert_eq!(name, "NotPermitted", "{tier}: {text}");
    }
}
