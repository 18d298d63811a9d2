//! Where user namespaces are forbidden: what sessions get then, and what the doctor says of it.

use std::{
    ffi::OsStr,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::{
    place::Place,
    program::{Ran, finish},
};

/// Forbids user namespaces to the rest of its words: in a user namespace of their own, where the limit is theirs to
/// lower, and without the capabilities in it.
const FORBID: [&str; 6] = [
    "--user",
    "--map-current-user",
    "--keep-caps",
    "sh",
    "-c",
    "echo 0 >/proc/sys/user/max_user_namespaces &&
     exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all -- \"$@\"",
];

/// The command, where user namespaces are forbidden.
fn forbidden(place: &Place, arguments: &[&str]) -> Command {
    let allowed = place.command(arguments);
    let mut command = Command::new("unshare");
    command.args(FORBID).arg("sh").arg(allowed.get_program()).args(allowed.get_args());
    let environment = allowed.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let environment: Vec<(&OsStr, &OsStr)> = environment.collect();
    command.env_clear().envs(environment).current_dir(place.workspace());
    command
}

fn run(mut command: Command) -> Ran {
    finish(command.stdin(Stdio::null()))
}

#[test]
fn a_session_gets_the_next_tier_and_says_so() {
    let place = Place::new();
    let arguments = ["run", "-v", "--", "sh", "-c", "echo written >here; cat here"];
    for (command, tier, gap) in [
        (place.command(&arguments), "tier mounts", false),
        (forbidden(&place, &arguments), "tier seccomp", true),
    ] {
        let ran = run(command);
        assert_eq!((ran.status, ran.text()), (Some(0), "written\r\n"), "{}", ran.stderr);
        let told = ran.stderr.lines().find(|line| line.contains("gaps: "));
        let told = told.unwrap_or_else(|| panic!("nothing of gaps in {}", ran.stderr));
        assert!(told.contains(tier), "{told}");
        assert_eq!(told.contains("no-user-namespace"), gap, "{told}");
    }
}

/// What the doctor says of one thing.
fn check<'d>(document: &'d Value, name: &str) -> &'d Value {
    let checks = document["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap()
}

#[test]
fn the_doctor_names_the_sysctl_and_the_tier_that_is_left() {
    let place = Place::new();
    let ran = run(place.command(&["doctor", "--json"]));
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert_eq!(ran.json()["summary"], "sessions here get the tier mounts");
    assert_eq!(check(&ran.json(), "user-namespaces")["verdict"], "good");
    assert_eq!(check(&ran.json(), "user-bus")["verdict"], "missing");

    let ran = run(forbidden(&place, &["doctor", "--json"]));
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let document = ran.json();
    assert_eq!(document["tier"], "seccomp");
    let reason = "sysctl user.max_user_namespaces is 0";
    assert!(document["summary"].as_str().unwrap().contains(reason), "{document}");
    let namespaces = check(&document, "user-namespaces");
    assert_eq!(namespaces["verdict"], "lesser");
    // ENOSPC, as user_namespaces(7) has it: the launcher was really asked.
    assert!(namespaces["found"].as_str().unwrap().contains("os error 28"), "{namespaces}");
    assert!(namespaces["advice"].as_str().unwrap().contains("sysctl --system"), "{namespaces}");
}

#[test]
fn the_doctor_fails_where_no_tool_can_be_opened() {
    let place = Place::new();
    for (name, value, why) in [
        ("ST2_TOOLS_LANDLOCK_ABI", "5", "landlock ABI 5 is below 6"),
        ("ST2_TOOLS_MAX_TIER", "none", "ST2_TOOLS_MAX_TIER"),
        ("ST2_TOOLS_MAX_TIER", "best", "ST2_TOOLS_MAX_TIER"),
        ("ST2_TOOLS_POLICY_PATH", "/nowhere", "the policy declares no tool"),
    ] {
        let mut command = place.command(&["doctor"]);
        command.env(name, value);
        let ran = run(command);
        assert_eq!(ran.status, Some(1), "{name}={value}: {}", ran.stderr);
        let last = ran.text().lines().last().unwrap();
        assert!(last.starts_with("no tool can be opened here: ") && last.contains(why), "{last}");
        assert!(ran.text().contains(&format!("{name}={value}")), "{}", ran.text());
    }
}

#[test]
fn the_doctor_tells_each_file_that_is_not_in_force() {
    let (place, policy) = (Place::new(), tempfile::tempdir().unwrap());
    let tools = policy.path().join("tools.d");
    std::fs::create_dir(&tools).unwrap();
    std::fs::write(tools.join("odd.toml"), "title = 1\n").unwrap();
    std::os::unix::fs::symlink("/dev/null", tools.join("lazygit.toml")).unwrap();
    let mut command = place.command(&["doctor", "--json"]);
    let both = format!("{}:{}", crate::support::policy().display(), policy.path().display());
    command.env("ST2_TOOLS_POLICY_PATH", both);
    let ran = run(command);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let fault = check(&ran.json(), "policy-file")["found"].as_str().unwrap().to_owned();
    assert!(fault.contains("tools.d/odd.toml:1:9"), "{fault}");
    let masked = check(&ran.json(), "masked")["found"].as_str().unwrap().to_owned();
    assert!(masked.ends_with("tools.d/lazygit.toml"), "{masked}");
}

#[test]
fn the_doctor_says_which_sockets_could_be_granted_in_which_tier() {
    let (place, agent) = (Place::new(), tempfile::tempdir().unwrap());
    let socket = agent.path().join("agent");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for (tier, verdict) in [("mounts", "good"), ("seccomp", "lesser")] {
        let mut command = place.command(&["doctor", "--json"]);
        command.env("SSH_AUTH_SOCK", &socket).env("ST2_TOOLS_MAX_TIER", tier);
        let document = run(command).json();
        let found = check(&document, "ssh-agent");
        assert_eq!(
            (found["verdict"].as_str(), found["found"].as_str()),
            (Some(verdict), socket.to_str())
        );
        assert_eq!(check(&document, "wayland")["verdict"], "missing");
    }
}
