//! Where a session is, and what it finds there.

use std::{collections::BTreeMap, fs, path::Path};

use serde_bytes::Bytes;
use serde_json::Value;
use st2_tools::client::{Dict, session::SessionProxy};

use crate::support::{
    Broker, Client, Start, all_output, error_of, lives, manager, outcome, program, running, short,
    tools::{install, policy_with},
    until, within, workspace,
};

fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// What the probe says of itself as the tool of a session.
async fn facts(client: &Client, place: &Path) -> Value {
    install(&program("st2-tools-probe"));
    let session = client.run(place, &["st2-tools-probe", "facts"]).await;
    let output = all_output(&session).await;
    serde_json::from_str(output.trim()).unwrap_or_else(|error| panic!("{error} in {output:?}"))
}

#[tokio::test]
async fn a_session_is_a_scope_of_its_own_with_these_properties() {
    let policy = policy_with(&[(
        "odd-tool",
        "title = \"odd\"\ncommand = [\"sleep\"]\narguments = \"any\"\nstop_timeout_ms = 1500\n\
         memory_max = 134217728\ntasks_max = 77\ntimeout_ms = 7200000\n",
    )]);
    let (broker, place) = (Start::default().policy(policy.path()).unit().await, workspace());
    let client = broker.client().await;
    let options = within(place.path())
        .with("argv", argv(&["100"]))
        .with("memory_max", 67_108_864u64)
        .with("tasks_max", 33u64)
        .with("timeout_ms", 3_600_000u64);
    let (session, info) = client.open("odd-tool", options).await.unwrap();
    let unit = session.unit().await.unwrap();
    assert_eq!(info.text("unit"), Some(unit.as_str()));
    assert_eq!(unit, format!("app-st2tools-odd\\x2dtool-{}.scope", session.id().await.unwrap()));
    for (name, value) in [
        ("Description", format!("odd-tool in {}", place.path().display()).as_str()),
        ("Slice", "app-st2tools.slice"),
        ("CollectMode", "inactive-or-failed"),
        ("SendSIGHUP", "yes"),
        ("KillMode", "control-group"),
        ("TimeoutStopUSec", "1.500000s"),
        ("RuntimeMaxUSec", "1h"),
        ("MemoryMax", "67108864"),
        ("TasksMax", "33"),
        ("OOMPolicy", "continue"),
        ("BindsTo", running::UNIT),
        ("Transient", "yes"),
        ("ActiveState", "active"),
    ] {
        assert_eq!(manager::property(&unit, name), value, "{name}");
    }
    let after = manager::property(&unit, "After");
    assert!(after.split(' ').any(|unit| unit == running::UNIT), "{after}");
    let pid = i32::try_from(info.number("pid").unwrap()).unwrap();
    let group = manager::group(&unit);
    assert_eq!(manager::members(&group), [pid]);
    assert!(group.ends_with(Path::new("app.slice/app-st2tools.slice").join(&unit)), "{group:?}");
    assert!(lives(pid));
    session.close(&Dict::new()).await.unwrap();
    assert!(manager::is_empty(&group));
    until("a removed control group", || !group.exists()).await;
    until("a forgotten scope", || manager::session_units().is_empty()).await;
}

#[tokio::test]
async fn what_no_tool_bounds_has_the_bounds_of_the_manager() {
    let (broker, place) = (Broker::unit().await, workspace());
    let session = broker.client().await.run(place.path(), &["sleep", "100"]).await;
    let unit = session.unit().await.unwrap();
    for (name, value) in [
        ("TimeoutStopUSec", "2s"),
        ("RuntimeMaxUSec", "infinity"),
        ("MemoryMax", "infinity"),
        ("TasksMax", &manager::systemctl(&["show", "--value", "-p", "DefaultTasksMax"])),
    ] {
        assert_eq!(manager::property(&unit, name), value, "{name}");
    }
}

/// Memory is only bounded where its controller is delegated to the user manager, and the session says which it is.
#[tokio::test]
async fn a_bound_on_memory_bites_or_is_a_gap() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let hog = "x = []\nwhile True: x.append(bytearray(1 << 20))";
    let options = within(place.path())
        .with("argv", argv(&["/usr/bin/python3", "-c", &format!("input()\n{hog}")]))
        .with("memory_max", 33_554_432u64);
    let (session, info) = client.open("command", options).await.unwrap();
    let unit = session.unit().await.unwrap();
    assert_eq!(manager::property(&unit, "MemoryMax"), "33554432");
    let confinement = info.dict("confinement").unwrap();
    let is_gap = confinement.texts("gaps").contains(&"no-resource-limits");
    let is_bounded = manager::group(&unit).join("memory.max").exists();
    assert_ne!(is_gap, is_bounded, "{confinement:?}");
    if is_bounded {
        session.write(Bytes::new(b"\n"), &Dict::new()).await.unwrap();
        assert_eq!(outcome(&session).await.text("reason"), Some("oom-kill"));
    }
}

#[tokio::test]
async fn the_environment_is_built() {
    let secrets = [
        ("AWS_SECRET_ACCESS_KEY", "secret-1"),
        ("MY_TOKEN", "secret-2"),
        ("CLAUDE_CODE_SSE_PORT", "secret-3"),
        ("ST_AGENT", "secret-4"),
        ("GIT_CONFIG_GLOBAL", "/secret-5"),
        ("NODE_OPTIONS", "--secret-6"),
        ("EDITOR", "secret-7"),
    ];
    let start =
        secrets.iter().fold(Start::default(), |start, (name, value)| start.env(name, *value));
    let (broker, place) = (start.env("LC_TIME", "C").unit().await, workspace());
    // The broker's own environment cannot be read: the unit's lines, and what every unit has.
    let set = manager::property(running::UNIT, "Environment");
    for (name, value) in secrets {
        assert!(set.contains(&format!("{name}={value}")), "the broker has no {name}");
    }
    let inherited = manager::systemctl(&["show-environment"]);
    assert!(
        inherited.contains("DBUS_SESSION_BUS_ADDRESS=") && inherited.contains("XDG_RUNTIME_DIR=")
    );

    let client = broker.client().await;
    let found = facts(&client, place.path()).await;
    let found: BTreeMap<String, String> = serde_json::from_value(found["env"].clone()).unwrap();
    let home = std::env::var("HOME").unwrap();
    let tmpdir = found.get("TMPDIR").cloned().unwrap_or_default();
    assert!(Path::new(&tmpdir).parent().unwrap().parent().unwrap().starts_with("/tmp"), "{tmpdir}");
    let path =
        format!("{home}/.local/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin");
    let expected = [
        ("HOME", home.as_str()),
        ("USER", "bed"),
        ("LOGNAME", "bed"),
        ("SHELL", "/bin/bash"),
        ("PATH", &path),
        ("TERM", "xterm-256color"),
        ("LANG", "C.UTF-8"),
        ("LC_TIME", "C"),
        ("TMPDIR", &tmpdir),
        ("XDG_CONFIG_HOME", &format!("{home}/.config")),
        ("PWD", place.path().to_str().unwrap()),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(found, BTreeMap::from(expected));

    // A tool that declares a name gets it; one that does not is told so.
    let shell = |name: &str, value: &str| {
        within(place.path()).with("env", BTreeMap::from([(name.to_owned(), value.to_owned())]))
    };
    let (session, _) = client.open("shell", shell("EDITOR", "vi")).await.unwrap();
    let environ = fs::read(format!("/proc/{}/environ", leader(&session).await)).unwrap();
    let environ = String::from_utf8_lossy(&environ).into_owned();
    assert!(environ.contains("EDITOR=vi\0") && !environ.contains("secret"), "{environ}");
    for name in ["LD_PRELOAD", "DBUS_SESSION_BUS_ADDRESS", "ST_AGENT", "PATH", "FOO"] {
        let (error, text) = error_of(client.open("shell", shell(name, "x")).await);
        assert_eq!(short(&error), "NotPermitted", "{text}");
        assert!(text.contains(name), "{text}");
    }
}

async fn leader(session: &SessionProxy<'_>) -> i32 {
    manager::members(&manager::group(&session.unit().await.unwrap()))[0]
}

/// What is set on the broker's unit reaches the broker, and stops there.
#[tokio::test]
async fn the_hardening_of_the_unit_is_not_inherited() {
    let strict = Start::default()
        .setting("UMask=0027")
        .setting("OOMScoreAdjust=300")
        .setting("LimitNOFILE=3000")
        .setting("IgnoreSIGPIPE=yes")
        .setting("Nice=3");
    let place = workspace();
    let broker = strict.unit().await;
    assert_eq!(fs::read_to_string(of(&broker, "oom_score_adj")).unwrap().trim(), "300");
    let under_strict = facts(&broker.client().await, place.path()).await;
    drop(broker);

    // Namespaces of the broker itself cannot be read; a second command of the unit is in the same.
    let shown = place.path().join("namespaces");
    let show = format!("ExecStartPost=/bin/sh -c 'readlink /proc/self/ns/* >{}'", shown.display());
    let broker = Start::default().setting(&show).unit().await;
    let status = fs::read_to_string(of(&broker, "status")).unwrap();
    for line in ["NoNewPrivs:\t0", "Seccomp:\t0", "Umask:\t0022"] {
        assert!(status.contains(line), "the shipped unit: {line} not in {status}");
    }
    let namespaces = fs::read_to_string(shown).unwrap();
    for namespace in ["mnt", "net", "user", "pid", "ipc", "uts"] {
        let ours = fs::read_link(format!("/proc/self/ns/{namespace}")).unwrap();
        let ours = ours.to_str().unwrap();
        assert!(namespaces.contains(ours), "{ours} is not in those of the unit: {namespaces}");
    }
    let under_shipped = facts(&broker.client().await, place.path()).await;
    for fact in ["umask", "oom_score_adj", "securebits", "status", "size", "controlling_terminal"] {
        assert_eq!(under_strict[fact], under_shipped[fact], "{fact}");
    }
    assert_eq!(under_shipped["umask"], 0o022);
    assert_eq!(under_shipped["oom_score_adj"], "500", "tools go before the desktop's applications");
    assert_eq!([&under_strict["nofile"][0], &under_shipped["nofile"][0]], [1024, 1024]);
    assert_eq!(under_shipped["status"]["NoNewPrivs"], "1");
    assert_eq!(under_shipped["status"]["Seccomp"], "2");
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb", "SigBlk"] {
        assert_eq!(under_shipped["status"][set], "0000000000000000", "{set}");
    }
    let descriptors = under_shipped["descriptors"].as_object().unwrap();
    assert_eq!(descriptors.keys().collect::<Vec<_>>(), ["0", "1", "2"]);
}

fn of(broker: &Broker, file: &str) -> String {
    format!("/proc/{}/{file}", broker.pid())
}
