use std::fs;

use super::*;
use crate::{
    broker::name::UnitName,
    config::Overrides,
    launch::spec::{Io, Network, Target},
    policy::{
        bed::{Bed, PROFILE, refusal, resolved, strings},
        request::{LeaseKind, Stdin},
        surroundings::Kernel,
    },
};

fn ms(milliseconds: u64) -> Option<Duration> {
    Some(Duration::from_millis(milliseconds))
}

#[test]
fn a_plain_request_gets_the_defaults() {
    let bed = Bed::new();
    let resolved = resolved(&bed, "true", |_| {});
    assert_eq!(resolved.spec.argv, strings(["true"]));
    assert_eq!((resolved.columns, resolved.rows), (80, 24));
    assert_eq!((resolved.grace, resolved.timeout), (Duration::from_secs(10), None));
    assert_eq!(resolved.stop_timeout, Duration::from_secs(2));
    assert_eq!((resolved.memory_max, resolved.tasks_max), (None, None));
    assert_eq!(resolved.ring_bytes, 256 * 1024);
    assert_eq!(resolved.lease, LeaseKind::Caller);
    assert_eq!((&resolved.workspace, &resolved.cwd), (&bed.path("work"), &bed.path("work")));
    assert_eq!(resolved.tmpdir, bed.path("tmp/session"));
    assert_eq!((resolved.spec.umask, resolved.spec.nofile_soft), (0o022, 1024));
    assert_eq!(resolved.spec.supervise, None);
}

#[test]
fn each_refusal_names_the_value_and_the_rule() {
    let mut bed = Bed::new();
    bed.tool(
        "narrow",
        "title = \"n\"\ncommand = [\"true\"]\ntimeout_ms = 5000\nmemory_max = 10485760\ntasks_max = 10",
    );
    bed.tool("own", "title = \"o\"\ncommand = []\narguments = \"any\"");
    bed.tool("broken", "title = 1");
    bed.link("/dev/null", "policy/tools.d/masked.toml");
    let labels = |count: usize| (0..count).map(|n| (format!("l{n}"), String::new())).collect();
    let env = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    let mut words = vec![
        refusal(&bed, "none", |_| {}),
        refusal(&bed, "../true", |_| {}),
        refusal(&bed, &"x".repeat(5000), |_| {}).replace(&"x".repeat(64), "x…"),
        refusal(&bed, "masked", |_| {}),
        refusal(&bed, "broken", |_| {}),
        refusal(&bed, "true", |r| r.workspace = None),
        refusal(&bed, "true", |r| r.workspace = Some("/".into())),
        refusal(&bed, "true", |r| r.cwd = Some("/".into())),
        refusal(&bed, "narrow", |r| r.argv = strings(["x"])),
        refusal(&bed, "own", |_| {}),
        refusal(&bed, "own", |r| r.argv = strings([""])),
        refusal(&bed, "own", |r| r.argv = strings(["a\0b"])),
        refusal(&bed, "true", |r| r.env = env("EDITOR", "vi")),
        refusal(&bed, "true", |r| r.env = env("LD_PRELOAD", "x")),
        refusal(&bed, "true", |r| r.env = env("PATH", "x")),
        refusal(&bed, "true", |r| r.env = env("EDITOR", "v\0i")),
        refusal(&bed, "true", |r| r.columns = Some(0)),
        refusal(&bed, "true", |r| r.columns = Some(65535)),
        refusal(&bed, "true", |r| r.rows = Some(1001)),
        refusal(&bed, "true", |r| r.term = Some("../x".into())),
        refusal(&bed, "true", |r| r.term = Some(String::new())),
        refusal(&bed, "true", |r| r.grace = ms(300_001)),
        refusal(&bed, "true", |r| r.lease = LeaseKind::Token { ttl: ms(3_600_001) }),
        refusal(&bed, "true", |r| r.lease = LeaseKind::Token { ttl: ms(999) }),
        refusal(&bed, "narrow", |r| r.timeout = ms(5001)),
        refusal(&bed, "narrow", |r| r.timeout = ms(0)),
        refusal(&bed, "true", |r| r.timeout = ms(u64::MAX)),
        refusal(&bed, "narrow", |r| r.memory_max = Some(10_485_761)),
        refusal(&bed, "narrow", |r| r.tasks_max = Some(11)),
        refusal(&bed, "true", |r| r.tasks_max = Some(0)),
        refusal(&bed, "true", |r| r.memory_max = Some(4096)),
        refusal(&bed, "true", |r| r.ring_bytes = Some(4095)),
        refusal(&bed, "true", |r| r.ring_bytes = Some(4_194_305)),
        refusal(&bed, "true", |r| r.labels = labels(17)),
        refusal(&bed, "true", |r| r.labels = env("agent", &"x".repeat(257))),
        refusal(&bed, "true", |r| r.labels = env("", "x")),
        refusal(&bed, "true", |r| r.labels = env("agent", "a\nb")),
        refusal(&bed, "true", |r| r.bind_unit = Some(UnitName::foreign("a b.service"))),
        refusal(&bed, "true", |r| r.bind_unit = Some(UnitName::foreign("nothing"))),
        without_size(&refusal(&bed, "true", |r| r.argv = vec!["x".repeat(131_072).into()])),
    ];
    bed.settings.overrides.landlock_abi_cap = Some(5);
    words.push(refusal(&bed, "true", |_| {}));
    bed.settings.overrides.landlock_abi_cap = Some(0);
    words.push(refusal(&bed, "true", |_| {}));
    bed.settings.overrides =
        crate::config::Overrides { max_tier: MaxTier::Nothing, ..Default::default() };
    words.push(refusal(&bed, "true", |_| {}));
    bed.settings.overrides = Default::default();
    bed.surroundings.kernel.seccomp = false;
    words.push(refusal(&bed, "true", |_| {}));
    insta::assert_snapshot!(words.join("\n"), @r#"
        NoSuchTool: no tool "none" is declared
        NoSuchTool: no tool "../true" is declared
        NoSuchTool: no tool "x…" is declared
        NoSuchTool: tool "masked" is masked by BED/policy/tools.d/masked.toml
        NotPermitted: tool "broken" is disabled: BED/policy/tools.d/broken.toml:1:9: key "title": invalid type: integer `1`, expected a string
        InvalidWorkspace: no workspace is given, and the tool declares none
        InvalidWorkspace: workspace "/" is refused: it holds what belongs to many
        InvalidWorkspace: cwd "/" is not inside the workspace "BED/work"
        NotPermitted: argument "x": the tool takes none
        InvalidArgs: argv is empty, and tool "own" declares no command
        InvalidArgs: argv is empty, and tool "own" declares no command
        InvalidArgs: argument "a\0b" holds a NUL byte
        NotPermitted: environment name "EDITOR" may not pass: the tool does not declare it
        NotPermitted: environment name "LD_PRELOAD" may not pass: LD_*
        NotPermitted: environment name "PATH" may not pass: it is set by the broker
        InvalidArgs: env "v\0i" holds a NUL byte
        InvalidArgs: columns 0 is outside 1..=1000
        InvalidArgs: columns 65535 is outside 1..=1000
        InvalidArgs: rows 1001 is outside 1..=1000
        InvalidArgs: term "../x" is not 1 to 64 of letters, digits, '+', '-', '.' and '_', beginning with a letter or digit
        InvalidArgs: term "" is not 1 to 64 of letters, digits, '+', '-', '.' and '_', beginning with a letter or digit
        NotPermitted: grace_ms 300001 is above grace_max_ms = 300000
        NotPermitted: lease_ttl_ms 3600001 is above lease_ttl_max_ms = 3600000
        InvalidArgs: lease_ttl_ms 999 is outside 1000..=3600000
        NotPermitted: timeout_ms 5001 is above the tool's timeout_ms = 5000
        NotPermitted: timeout_ms 0 (none) is wider than the tool's timeout_ms = 5000
        InvalidArgs: timeout_ms 18446744073709551615 is outside 0..=2592000000
        NotPermitted: memory_max 10485761 is above the tool's memory_max = 10485760
        NotPermitted: tasks_max 11 is above the tool's tasks_max = 10
        InvalidArgs: tasks_max 0 is outside 1..=4194304
        InvalidArgs: memory_max 4096 is outside 1048576..=9007199254740992
        InvalidArgs: ring_bytes 4095 is outside 4096..=4194304
        InvalidArgs: ring_bytes 4194305 is outside 4096..=4194304
        InvalidArgs: 17 labels given, at most 16
        InvalidArgs: label "agent" is not a name of 1 to 256 bytes with a value of at most 256 bytes, without control characters
        InvalidArgs: label "" is not a name of 1 to 256 bytes with a value of at most 256 bytes, without control characters
        InvalidArgs: label "agent" is not a name of 1 to 256 bytes with a value of at most 256 bytes, without control characters
        InvalidArgs: bind_unit "a b.service" is not the name of a unit
        InvalidArgs: bind_unit "nothing" is not the name of a unit
        LimitReached: argv and environment take … bytes, above argv_env_bytes = 131072
        ConfinementUnavailable: landlock ABI 5 is below 6: signals and abstract sockets would stay open (allow_degraded in broker.toml accepts that)
        ConfinementUnavailable: the kernel offers no landlock
        ConfinementUnavailable: no tier is allowed: ST2_TOOLS_MAX_TIER is "none"
        ConfinementUnavailable: the kernel offers no seccomp filters
        "#);
}

#[test]
fn the_bounds_themselves_pass() {
    let bed = Bed::new();
    bed.tool("narrow", "title = \"n\"\ncommand = [\"true\"]\ntimeout_ms = 5000\nmemory_max = 10485760\ntasks_max = 10");
    let resolved = resolved(&bed, "narrow", |request| {
        request.columns = Some(1000);
        request.rows = Some(1);
        request.grace = ms(300_000);
        request.timeout = ms(5000);
        request.memory_max = Some(1 << 20);
        request.tasks_max = Some(10);
        request.ring_bytes = Some(4096);
        request.lease = LeaseKind::Token { ttl: None };
        request.labels =
            (0..16).map(|n| (format!("{n}{}", "x".repeat(254)), "x".repeat(256))).collect();
        request.bind_unit = Some(UnitName::foreign("app-a\\x2db@1.service"));
    });
    assert_eq!((resolved.columns, resolved.rows), (1000, 1));
    assert_eq!((resolved.grace, resolved.timeout), (Duration::from_secs(300), ms(5000)));
    assert_eq!((resolved.memory_max, resolved.tasks_max), (Some(1 << 20), Some(10)));
    assert_eq!(resolved.ring_bytes, 4096);
    assert_eq!(resolved.lease, LeaseKind::Token { ttl: ms(60_000) });
    assert_eq!(resolved.labels.len(), 16);
}

#[test]
fn a_tool_bounds_what_a_request_leaves_open_and_settings_bound_a_tool() {
    let mut bed = Bed::new();
    bed.tool("narrow", "title = \"n\"\ncommand = [\"true\"]\ntimeout_ms = 5000\nmemory_max = 10485760\ntasks_max = 10\ngrace_ms = 9000");
    bed.settings.limits.grace_max_ms = 8000;
    let resolved = resolved(&bed, "narrow", |_| {});
    assert_eq!((resolved.grace, resolved.timeout), (Duration::from_secs(8), ms(5000)));
    assert_eq!((resolved.memory_max, resolved.tasks_max), (Some(10_485_760), Some(10)));
}

#[test]
fn nothing_opens_on_broken_settings() {
    let mut bed = Bed::new();
    bed.write("policy/broker.toml", "[limits]\nlive_sessions = 0");
    bed.settings = Settings::load(&bed.search(), Default::default());
    assert_eq!(
        refusal(&bed, "true", |_| {}),
        "NotPermitted: no tool opens until this is mended and the broker restarted: BED/policy/broker.toml:2:17: \
         key \"limits.live_sessions\": 0 is outside 1..=4096"
    );
}

#[test]
fn the_environment_is_built_and_never_inherited() {
    let bed = Bed::new();
    fs::create_dir_all(bed.path("home/go/bin")).unwrap();
    bed.tool(
        "env",
        "title = \"e\"\ncommand = [\"true\"]\npass_environment = [\"EDITOR\", \"PAGER\", \"VISUAL\"]\n\
         [environment]\nSTATE = \"${TMPDIR}/state of ${USER}\"\nPAGER = \"cat\"\nVISUAL = \"ed\"\nLANG = \"C\"",
    );
    let resolved = resolved(&bed, "env", |r| {
        r.env = BTreeMap::from([("VISUAL".into(), "${HOME}".into())]);
        r.term = Some("xterm-kitty".into());
    });
    let environment: Vec<String> = resolved
        .spec
        .environment
        .iter()
        .map(|(name, value)| {
            bed.words(&format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
        })
        .filter(|line| !line.starts_with("PATH="))
        .collect();
    insta::assert_snapshot!(environment.join("\n"), @r"
        EDITOR=vi
        HOME=BED/home
        LANG=C
        LOGNAME=ann
        PAGER=cat
        PWD=BED/work
        SHELL=/bin/sh
        STATE=BED/tmp/session/state of ann
        TERM=xterm-kitty
        TMPDIR=BED/tmp/session
        USER=ann
        VISUAL=${HOME}
        ");
    let path = resolved.spec.environment[OsStr::new("PATH")].to_string_lossy().into_owned();
    let path = bed.words(&path);
    assert!(path.starts_with("BED/home/go/bin:"), "only what exists: {path}");
    assert!(path.split(':').any(|directory| directory == "/usr/bin"));
}

#[test]
fn a_tool_on_pipes_has_nothing_that_goes_with_a_terminal() {
    let bed = Bed::new();
    bed.tool(
        "both",
        "title = \"b\"\ncommand = [\"true\"]\nio = [\"pty\", \"pipe\"]\ndirect = true",
    );
    bed.tool("piped", "title = \"p\"\ncommand = [\"true\"]\nio = [\"pipe\"]");
    let term = |resolved: &Resolved| resolved.spec.environment[OsStr::new("TERM")].clone();
    let has_terminal = |resolved: &Resolved| {
        let grants = &resolved.spec.confinement.grants;
        grants.iter().any(|grant| grant.target == Target::OwnTerminal)
    };
    let pty = resolved(&bed, "both", |r| r.io_fallback = true);
    assert_eq!((pty.spec.io, pty.stdin, pty.io_fallback), (Io::Pty, Stdin::Open, true));
    assert!(has_terminal(&pty) && pty.direct && term(&pty) == "xterm-256color");
    let asked = resolved(&bed, "both", |r| {
        (r.io, r.columns, r.term) = (Some(Io::Pipe), Some(132), Some("xterm".into()));
    });
    let only = resolved(&bed, "piped", |_| {});
    let fallen = pty.without_terminal();
    for (pipes, stdin) in [(asked, Stdin::Closed), (only, Stdin::Closed), (fallen, Stdin::Open)] {
        assert_eq!((pipes.spec.io, pipes.stdin), (Io::Pipe, stdin));
        assert_eq!((pipes.columns, pipes.rows, pipes.direct), (0, 0, false));
        assert!(!has_terminal(&pipes) && term(&pipes) == "dumb");
    }
}

#[test]
fn how_a_tool_is_carried_is_what_it_declares() {
    let bed = Bed::new();
    bed.tool("both", "title = \"b\"\ncommand = [\"true\"]\nio = [\"pty\", \"pipe\"]");
    bed.tool("piped", "title = \"p\"\ncommand = [\"true\"]\nio = [\"pipe\"]");
    insta::assert_snapshot!(
        [
            refusal(&bed, "true", |r| r.io = Some(Io::Pipe)),
            refusal(&bed, "piped", |r| r.io = Some(Io::Pty)),
            refusal(&bed, "true", |r| r.io_fallback = true),
            refusal(&bed, "both", |r| r.stdin = Some(Stdin::Open)),
            refusal(&bed, "both", |r| (r.io, r.columns) = (Some(Io::Pipe), Some(0))),
        ]
        .join("\n"),
        @r#"
        NotPermitted: io "pipe" is not in the tool's io = ["pty"]
        NotPermitted: io "pty" is not in the tool's io = ["pipe"]
        NotPermitted: io_fallback needs "pty" and "pipe" in the tool's io = ["pty"]
        InvalidArgs: stdin goes with io "pipe" or with io_fallback: a terminal is input and output in one
        InvalidArgs: columns 0 is outside 1..=1000
        "#
    );
    let closed = resolved(&bed, "both", |r| (r.io_fallback, r.stdin) = (true, Some(Stdin::Closed)));
    assert_eq!(closed.stdin, Stdin::Closed);
}

#[test]
fn arguments_follow_the_command_with_operands_marked() {
    let bed = Bed::new();
    bed.tool(
        "tail",
        "title = \"t\"\ncommand = [\"tail\", \"-F\", \"--in=${WORKSPACE}\"]\n\
         arguments = { options = [\"-n NUMBER\"], operands = { kind = \"path\", at_least = 1, at_most = 8 } }",
    );
    bed.link("../home", "work/out");
    let tail = resolved(&bed, "tail", |r| r.argv = strings(["-n", "5", "a.log"]));
    assert_eq!(
        tail.spec.argv.iter().map(|part| bed.words(&part.to_string_lossy())).collect::<Vec<_>>(),
        ["tail", "-F", "--in=BED/work", "-n", "5", "--", "a.log"]
    );
    for outside in ["out/x", "/etc/passwd", "../home/x"] {
        assert_eq!(
            refusal(&bed, "tail", |r| r.argv = strings([outside])),
            format!("NotPermitted: argument {outside:?} is not a path inside the workspace")
        );
    }
}

#[test]
fn a_degraded_kernel_is_accepted_only_where_the_settings_say_so() {
    let mut bed = Bed::new();
    bed.settings.overrides.landlock_abi_cap = Some(5);
    bed.settings.allow_degraded = true;
    let resolved = resolved(&bed, "true", |_| {});
    assert!(resolved.spec.confinement.allow_degraded);
    assert_eq!(resolved.spec.confinement.landlock_abi_cap, Some(5));
    assert_eq!(landlock_abi(&bed.surroundings, &bed.settings), 5);
    bed.settings.overrides.landlock_abi_cap = Some(200);
    assert_eq!(landlock_abi(&bed.surroundings, &bed.settings), 7, "a cap adds nothing");
}

#[test]
fn the_best_tier_is_used_that_the_machine_and_the_settings_give() {
    let mut bed = Bed::new();
    let mut tiers = |mounts, landlock_abi, most| {
        bed.surroundings.kernel = Kernel { mounts, landlock_abi, seccomp: true };
        bed.settings.overrides.max_tier = most;
        let confinement = resolved(&bed, "true", |_| {}).spec.confinement;
        (confinement.tier.as_str(), confinement.no_user_namespace)
    };
    assert_eq!(tiers(true, 9, MaxTier::Best), ("mounts", false));
    assert_eq!(tiers(true, 7, MaxTier::Most(Tier::Mounts)), ("mounts", false));
    assert_eq!(tiers(false, 9, MaxTier::Best), ("resolve-unix", true));
    assert_eq!(tiers(true, 9, MaxTier::Most(Tier::ResolveUnix)), ("resolve-unix", false));
    assert_eq!(tiers(true, 8, MaxTier::Most(Tier::ResolveUnix)), ("seccomp", false));
    assert_eq!(tiers(false, 8, MaxTier::Best), ("seccomp", true));
    assert_eq!(tiers(true, 9, MaxTier::Most(Tier::Seccomp)), ("seccomp", false));
    bed.settings.overrides = Overrides { max_tier: MaxTier::Best, landlock_abi_cap: Some(8) };
    bed.surroundings.kernel = Kernel { mounts: false, landlock_abi: 9, seccomp: true };
    assert_eq!(tier(&bed.surroundings, &bed.settings), Ok(Tier::Seccomp), "the cap counts");
}

#[test]
fn a_network_that_cannot_be_enforced_is_refused_by_name() {
    let mut bed = Bed::new();
    for (name, network) in [("web", "tcp:443"), ("local", "loopback"), ("wide", "all")] {
        let profile = format!("network = \"{network}\"{PROFILE}");
        bed.write(&format!("policy/profiles.d/{name}.toml"), &profile);
        bed.tool(name, &format!("title = \"t\"\ncommand = [\"true\"]\nprofile = \"{name}\""));
    }
    assert_eq!(
        refusal(&bed, "local", |_| {}),
        "ConfinementUnavailable: network \"loopback\" needs the tier \"mounts\", and the best here is \"seccomp\""
    );
    bed.surroundings.kernel.mounts = true;
    let network = |bed: &Bed, tool| resolved(bed, tool, |_| {}).spec.confinement.network;
    assert_eq!(network(&bed, "local"), Network::Loopback);
    bed.settings.overrides.landlock_abi_cap = Some(3);
    assert_eq!(
        refusal(&bed, "web", |_| {}),
        "ConfinementUnavailable: landlock ABI 3 is below 4 and cannot hold a tool to \"tcp:443\": \
         every TCP port would stay open (allow_degraded in broker.toml accepts that)"
    );
    assert!(refusal(&bed, "wide", |_| {}).contains("signals and abstract sockets"));
    bed.settings.allow_degraded = true;
    assert_eq!(network(&bed, "web"), Network::TcpConnect(vec![443]));
}

#[test]
fn a_tool_may_bring_its_workspace() {
    let bed = Bed::new();
    fs::create_dir(bed.path("home/notes")).unwrap();
    bed.tool("notes", "title = \"n\"\ncommand = [\"true\"]\nworkspace = \"~/notes\"");
    let mut request = Request::default();
    assert_eq!(bed.resolve("notes", &request).unwrap().workspace, bed.path("home/notes"));
    request.workspace = Some(bed.path("work"));
    assert_eq!(bed.resolve("notes", &request).unwrap().workspace, bed.path("work"));
}

/// The size depends on where the test runs: paths are in the environment.
fn without_size(refusal: &str) -> String {
    let words: Vec<_> = refusal.split(' ').collect();
    let is_size = |at: usize| words.get(at + 1) == Some(&"bytes,");
    let hide = |(at, word)| if is_size(at) { "…" } else { word };
    words.iter().copied().enumerate().map(hide).collect::<Vec<_>>().join(" ")
}
