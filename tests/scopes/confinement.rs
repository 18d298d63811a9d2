//! What a session says of its confinement, held against what it can do.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use st2_tools::{client::Dict, launch::landlock_abi};

use crate::support::{Start, all_output, outcome, within, workspace};

/// Directories that a user may write, in which a tool without a grant may not.
fn outside() -> Vec<PathBuf> {
    let of = |name: &str| PathBuf::from(std::env::var_os(name).unwrap());
    vec![of("HOME"), of("XDG_RUNTIME_DIR"), "/tmp".into(), "/var/tmp".into(), "/dev/shm".into()]
}

fn creates(directory: &Path) -> bool {
    let file = directory.join("attempt-of-test");
    let created = fs::write(&file, "").is_ok();
    let _ = fs::remove_file(file);
    created
}

#[tokio::test]
async fn confinement_states_what_the_kernel_accepted() {
    let abi = landlock_abi();
    for (cap, tier, sockets) in
        [(None, "mounts", "session"), (Some(6), "mounts", "session"), (None, "seccomp", "none")]
    {
        let start = Start::default().env("ST2_TOOLS_MAX_TIER", tier.to_owned());
        let start = match cap {
            Some(cap) => start.env("ST2_TOOLS_LANDLOCK_ABI", u32::to_string(&cap)),
            None => start,
        };
        let (broker, place) = (start.unit().await, workspace());
        let client = broker.client().await;
        assert_eq!(client.manager.landlock_abi().await.unwrap(), cap.unwrap_or(abi));
        let mut script = String::new();
        let places: Vec<_> = [place.path().to_owned()].into_iter().chain(outside()).collect();
        for directory in &places {
            assert!(
                creates(directory),
                "{} cannot even be written unconfined",
                directory.display()
            );
            script +=
                &format!("touch {0}/by-tool 2>/dev/null && echo wrote {0}; ", directory.display());
        }
        script += "touch $TMPDIR/by-tool && echo wrote $TMPDIR; true";
        let argv = ["sh", "-c", &script].map(str::to_owned).to_vec();
        let options = within(place.path()).with("argv", argv);
        let (session, info) = client.open("command", options).await.unwrap();
        let stated = session.confinement().await.unwrap();
        assert_eq!(Some(&stated), info.dict("confinement").as_ref());
        let output = all_output(&session).await;
        let wrote = output.lines().filter_map(|line| line.strip_prefix("wrote "));
        let wrote: BTreeSet<_> = wrote.map(str::trim).collect();
        assert_eq!(wrote, stated.texts("write").into_iter().collect(), "{output}");
        assert_eq!(outcome(&session).await.signed("code"), Some(0));

        for (key, value) in [
            ("tier", tier),
            ("network", "none"),
            ("unix_sockets", sockets),
            ("signals", "session"),
            ("syscalls", "filtered"),
            ("capabilities", "none"),
        ] {
            assert_eq!(stated.text(key), Some(value), "{key}");
        }
        assert_eq!(stated.number("landlock_abi"), Some(cap.unwrap_or(abi).min(10).into()));
        let gaps = stated.texts("gaps");
        assert_eq!(gaps.contains(&"audit"), cap.unwrap_or(abi) < 7);
        assert_eq!(gaps.contains(&"metadata-outside"), tier == "seccomp");
        assert!(!gaps.contains(&"no-user-namespace"), "{gaps:?}");
        let devices = stated.texts("devices");
        assert!(devices.contains(&"/dev/null") && !devices.contains(&"/dev/ptmx"), "{devices:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_enforced_is_refused() {
    for (name, value) in [("ST2_TOOLS_LANDLOCK_ABI", "5"), ("ST2_TOOLS_MAX_TIER", "none")] {
        let broker = Start::default().env(name, value).unit().await;
        let (client, place) = (broker.client().await, workspace());
        let options = within(place.path()).with("argv", vec!["true".to_owned()]);
        let (error, text) = crate::support::error_of(client.open("command", options).await);
        assert_eq!(crate::support::short(&error), "ConfinementUnavailable", "{text}");
        assert!(client.manager.list_sessions(&Dict::new()).await.unwrap().is_empty());
    }
}
