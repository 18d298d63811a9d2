//! The escape that decides whether the confinement is real: having the user manager do it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::support::{Start, all_output, manager, outcome, until, workspace};

/// A service that leaves the mark which no confined tool can.
const SERVICE: &str = "mark-of-test.service";

fn runtime_dir() -> PathBuf {
    PathBuf::from(env::var_os("XDG_RUNTIME_DIR").unwrap())
}

/// Ways to the manager, each a shell script, from the environment of a user's session.
fn attempts(mark: &Path) -> Vec<(&'static str, String)> {
    let (runtime, mark) = (runtime_dir(), mark.display());
    let runtime = runtime.display();
    let touch = format!("systemd-run --user --quiet --wait touch {mark}");
    let call =
        "org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager";
    vec![
        (
            "by environment",
            format!(
                "export DBUS_SESSION_BUS_ADDRESS=unix:path={runtime}/bus XDG_RUNTIME_DIR={runtime}; {touch}"
            ),
        ),
        (
            "by path",
            format!("unset DBUS_SESSION_BUS_ADDRESS; export XDG_RUNTIME_DIR={runtime}; {touch}"),
        ),
        (
            "by the bus's own path",
            format!(
                "busctl --address=unix:path={runtime}/bus call {call} StartUnit ss {SERVICE} replace"
            ),
        ),
        (
            "by the manager's private socket",
            format!(
                "export DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere XDG_RUNTIME_DIR={runtime}; \
                 ls -d {runtime}/systemd/private && systemctl --user start {SERVICE}"
            ),
        ),
        (
            "by a descriptor passed to another program",
            format!(
                "export DBUS_SESSION_BUS_ADDRESS=unixexec:path=systemd-stdio-bridge,argv1=--bus-path=unix:path={runtime}/bus \
                 XDG_RUNTIME_DIR={runtime}; {touch}"
            ),
        ),
    ]
}

#[tokio::test]
async fn the_user_bus_cannot_be_reached_from_inside() {
    for tier in ["mounts", "seccomp"] {
        the_user_bus_cannot_be_reached_in(tier).await;
    }
}

async fn the_user_bus_cannot_be_reached_in(tier: &str) {
    let start = Start::default().env("ST2_TOOLS_MAX_TIER", tier);
    let (broker, place) = (start.unit().await, workspace());
    let client = broker.client().await;
    let bench = workspace();
    let mark = bench.path().join("mark");
    let directory = runtime_dir().join("systemd/user");
    fs::create_dir_all(&directory).unwrap();
    let text = format!("[Service]\nType=oneshot\nExecStart=touch {}\n", mark.display());
    fs::write(directory.join(SERVICE), text).unwrap();
    manager::systemctl(&["daemon-reload"]);

    for (name, script) in attempts(&mark) {
        let unconfined = Command::new("sh").args(["-c", &script]).output().unwrap();
        let said = String::from_utf8_lossy(&unconfined.stderr).into_owned();
        assert!(unconfined.status.success(), "{name} does not even work unconfined: {said}");
        until(name, || mark.exists()).await;
        fs::remove_file(&mark).unwrap();

        let session = client.run(place.path(), &["sh", "-c", &script]).await;
        let outcome = outcome(&session).await;
        let output = all_output(&session).await;
        assert_eq!(outcome.text("kind"), Some("exited"), "{name}: {output}");
        assert_ne!(outcome.signed("code"), Some(0), "{name} succeeded: {output}");
        assert!(!mark.exists(), "{name} left its mark");
        // It failed where it should: nothing but a socket was missing.
        let why = match tier {
            "mounts" => ["No such file or directory", "Permission denied"],
            _ => ["Operation not permitted", "Permission denied"],
        };
        assert!(why.iter().any(|why| output.contains(why)), "{name}: {output}");
    }
    // Nothing that was asked for comes late: the manager has answered another since.
    manager::systemctl(&["show", "--property=Version"]);
    assert!(!mark.exists());
    fs::remove_file(directory.join(SERVICE)).unwrap();
    manager::systemctl(&["daemon-reload"]);
}
