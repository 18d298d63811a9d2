//! Each bad input has its typed error, and leaves nothing behind.

use std::{fs, os::unix::fs::symlink, path::Path};

use st2_tools::client::Dict;

use crate::support::{Broker, Client, Start, error_of, short, until, within, workspace};

/// An `Open` that must fail, and how.
struct Case {
    tool: &'static str,
    options: Dict,
    error: &'static str,
    /// What the message must name.
    names: &'static [&'static str],
}

fn case(
    tool: &'static str,
    options: Dict,
    error: &'static str,
    names: &'static [&'static str],
) -> Case {
    Case { tool, options, error, names }
}

fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

async fn check(broker: &Broker, client: &Client, cases: Vec<Case>) {
    let descriptors = broker.descriptors();
    for Case { tool, options, error, names } in cases {
        let asked = format!("{tool} {options:?}");
        let (name, text) = error_of(client.open(tool, options).await);
        assert_eq!(short(&name), error, "{asked}: {text}");
        for named in names {
            assert!(text.contains(named), "{asked}: {named:?} is not in {text:?}");
        }
        assert!(!text.contains('\n') && !text.ends_with('.'), "{text:?}");
        assert_eq!(text.chars().next().map(char::is_uppercase), Some(false), "{text:?}");
    }
    assert!(client.manager.list_sessions(&Dict::new()).await.unwrap().is_empty());
    assert!(broker.tmpdirs().is_empty());
    until("closed descriptors", || broker.descriptors() <= descriptors).await;
}

fn workspaces(place: &Path) -> Vec<Case> {
    let file = place.join("file");
    fs::write(&file, "").unwrap();
    symlink("/etc", place.join("out")).unwrap();
    let locked = place.join("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    let home = std::env::var("HOME").unwrap();
    let at = |path: &Path| within(path).with("argv", argv(&["true"]));
    let mut cases = vec![
        case(
            "command",
            Dict::new().with("argv", argv(&["true"])),
            "InvalidWorkspace",
            &["workspace"],
        ),
        case("command", at(Path::new("relative")), "InvalidWorkspace", &["relative"]),
        case("command", at(&place.join("missing")), "InvalidWorkspace", &["missing"]),
        case("command", at(&file), "InvalidWorkspace", &["file"]),
        case("command", at(&place.join("out")), "InvalidWorkspace", &["out"]),
        case("command", at(Path::new("/")), "InvalidWorkspace", &["/"]),
        case("command", at(Path::new(&home)), "InvalidWorkspace", &["home"]),
        case("command", at(Path::new("/proc/self")), "InvalidWorkspace", &["/proc"]),
        case("command", at(place).with("cwd", "/etc"), "InvalidWorkspace", &["/etc"]),
        case("command", at(place).with("cwd", "../.."), "InvalidWorkspace", &[".."]),
    ];
    // Root may enter any directory.
    if !nix::unistd::geteuid().is_root() {
        cases.push(case("command", at(&locked), "InvalidWorkspace", &["locked"]));
    }
    cases
}

#[tokio::test]
async fn a_workspace_that_no_tool_may_have_is_refused() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    check(&broker, &client, workspaces(place.path())).await;
}

#[tokio::test]
async fn what_policy_does_not_permit_is_refused() {
    let (place, own) = (workspace(), workspace());
    fs::create_dir(own.path().join("tools.d")).unwrap();
    symlink("/dev/null", own.path().join("tools.d/lazygit.toml")).unwrap();
    fs::write(own.path().join("tools.d/broken.toml"), "title = \"x\"\ncommand = 3\n").unwrap();
    let broker = Start::default().policy(own.path()).private().await;
    let client = broker.client().await;
    let at = || within(place.path()).with("argv", argv(&["true"]));
    let env = |name: &str| {
        let pairs = std::collections::BTreeMap::from([(name.to_owned(), "x".to_owned())]);
        within(place.path()).with("env", pairs)
    };
    check(
        &broker,
        &client,
        vec![
            case("no-such", at(), "NoSuchTool", &["no-such"]),
            case("No Such", at(), "NoSuchTool", &["No Such"]),
            case("lazygit", within(place.path()), "NoSuchTool", &["masked", "lazygit.toml"]),
            case("broken", at(), "NotPermitted", &["broken.toml:2", "command"]),
            case("shell", at(), "NotPermitted", &["true", "none"]),
            case(
                "log-tail",
                within(place.path()).with("argv", argv(&["--retry", "x"])),
                "NotPermitted",
                &["--retry"],
            ),
            case(
                "log-tail",
                within(place.path()).with("argv", argv(&["/etc/passwd"])),
                "NotPermitted",
                &["/etc/passwd"],
            ),
            case(
                "shell",
                within(place.path()).with("prompt", "p"),
                "NotPermitted",
                &["shell", "prompt"],
            ),
            case(
                "pi",
                within(place.path()).with("prompt", "p"),
                "NotPermitted",
                &["pi", "terminal"],
            ),
            case("shell", env("LD_PRELOAD"), "NotPermitted", &["LD_PRELOAD"]),
            case("shell", env("CLAUDE_CODE"), "NotPermitted", &["CLAUDE_CODE"]),
            case("shell", env("UNDECLARED"), "NotPermitted", &["UNDECLARED"]),
            case(
                "command",
                at().with("grace_ms", 86_400_001u64),
                "NotPermitted",
                &["grace", "300000"],
            ),
        ],
    )
    .await;
    let tools = client.manager.list_tools().await.unwrap();
    let broken = tools.iter().find(|tool| tool.text("name") == Some("broken")).unwrap();
    assert!(broken.text("error").unwrap().contains("broken.toml:2"), "{broken:?}");
}

#[tokio::test]
async fn what_is_out_of_bounds_is_refused() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let at = || within(place.path()).with("argv", argv(&["true"]));
    let many = |count: usize, length: usize| {
        let labels: std::collections::BTreeMap<_, _> =
            (0..count).map(|n| (format!("label{n}"), "x".repeat(length))).collect();
        at().with("labels", labels)
    };
    check(
        &broker,
        &client,
        vec![
            case(
                "command",
                at().with("columns", 0u16),
                "InvalidArgs",
                &["columns", "0", "1..=1000"],
            ),
            case("command", at().with("rows", 65535u16), "InvalidArgs", &["rows", "65535"]),
            case("command", at().with("columns", 80u32), "InvalidArgs", &["columns", "u", "q"]),
            case("command", at().with("io", "pipes"), "InvalidArgs", &["io", "pipes", "pty"]),
            case(
                "command",
                at().with("lease", "mine"),
                "InvalidArgs",
                &["lease", "mine", "caller, token"],
            ),
            case("command", at().with("lease_ttl_ms", 5u64), "InvalidArgs", &["lease_ttl_ms"]),
            case("command", at().with("ring_bytes", 1u64), "InvalidArgs", &["ring_bytes", "1"]),
            case("command", many(17, 1), "InvalidArgs", &["labels", "17", "16"]),
            case("command", many(1, 257), "InvalidArgs", &["label0", "256"]),
            case(
                "command",
                within(place.path()).with("argv", argv(&["true", &"x".repeat(131_072)])),
                "LimitReached",
                &["argv_env_bytes", "131072"],
            ),
            case(
                "command",
                at().with("argv_bytes", vec![b"true".to_vec()]),
                "InvalidArgs",
                &["argv", "argv_bytes"],
            ),
            case("command", within(place.path()), "InvalidArgs", &["argv"]),
        ],
    )
    .await;
    // An option that is not known may come from a newer client.
    client.open("command", at().with("of_the_future", true)).await.unwrap();
}

#[tokio::test]
async fn an_executable_that_cannot_be_run_is_a_failed_step() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    fs::write(place.path().join("plain"), "#!/bin/sh\n").unwrap();
    let run = |program: &str| within(place.path()).with("argv", argv(&[program]));
    check(
        &broker,
        &client,
        vec![
            case(
                "command",
                run("no-such-program"),
                "LaunchFailed",
                &["step exec", "errno 2", "no-such-program"],
            ),
            case("command", run("./plain"), "LaunchFailed", &["step exec", "errno 13", "plain"]),
        ],
    )
    .await;
}

#[tokio::test]
async fn without_landlock_nothing_is_opened() {
    let place = workspace();
    let broker = Start::default().env("ST2_TOOLS_LANDLOCK_ABI", "5").private().await;
    let client = broker.client().await;
    let options = || within(place.path()).with("argv", argv(&["true"]));
    check(
        &broker,
        &client,
        vec![case("command", options(), "ConfinementUnavailable", &["landlock", "5", "6"])],
    )
    .await;
    assert_eq!(client.manager.tier().await.unwrap(), "none");
    let explained = client.manager.explain("command", &options()).await.unwrap();
    assert_eq!(explained.text("refusal").map(short), Some("ConfinementUnavailable"));
}
