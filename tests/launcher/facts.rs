//! What the tool finds: a terminal of its own, and nothing of ours.

use std::{ffi::OsString, fs::File, os::unix::ffi::OsStringExt};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use serde_json::{Value, json};
use st2_tools::launch::{report::Gap, spec::Slot};

use crate::session::{Place, Session, confined, unconfined};

fn facts(text: &str) -> Value {
    serde_json::from_str(text.trim()).unwrap_or_else(|error| panic!("{error} in {text:?}"))
}

fn facts_of_a_tool() -> Value {
    let place = Place::new();
    facts(&confined(&place, place.spec(&["facts"])))
}

#[test]
fn the_tool_leads_a_session_with_a_controlling_terminal_in_the_foreground() {
    let place = Place::new();
    let mut session = Session::open(&place, place.spec(&["facts"]));
    session.start();
    let facts = facts(&session.all_output());
    let pid = json!(session.pid().as_raw());
    for fact in ["pid", "sid", "pgid", "foreground"] {
        assert_eq!(facts[fact], pid, "{fact}: the launcher became the tool");
    }
    assert_eq!(facts["controlling_terminal"], true);
    assert_eq!(facts["size"], json!([24, 80]));
    assert!(session.wait().success());
}

#[test]
fn argv_environment_and_directory_are_the_specifications_byte_for_byte() {
    let place = Place::new();
    let odd = OsString::from_vec(vec![0xff, b' ', b'$', b'\'', b'\n']);
    let facts = facts(&confined(&place, place.spec(&["facts".into(), odd.clone(), "".into()])));
    assert_eq!(facts["argv"][2], json!(odd.into_vec()));
    assert_eq!(facts["argv"][3], json!([]));
    let expected = json!({ "PATH": "/usr/local/bin:/usr/bin:/bin", "ANSWER": "42" });
    assert_eq!(facts["env"], expected);
    assert_eq!(facts["cwd"], json!(place.workspace()));
}

#[test]
fn no_descriptor_of_ours_reaches_the_tool() {
    let place = Place::new();
    let leak = File::open("/etc/passwd").unwrap();
    fcntl(&leak, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
    let leaks = |facts: &Value| {
        facts["descriptors"].as_object().unwrap().values().any(|target| target == "/etc/passwd")
    };
    assert!(leaks(&facts(&unconfined(&["facts"]))), "without the launcher it leaks");

    let facts = facts(&confined(&place, place.spec(&["facts"])));
    let descriptors = facts["descriptors"].as_object().unwrap();
    assert_eq!(descriptors.keys().collect::<Vec<_>>(), ["0", "1", "2"]);
    for target in descriptors.values() {
        assert!(target.as_str().unwrap().starts_with("/dev/pts/"), "{target}");
    }
}

#[test]
fn no_capability_is_left_and_none_can_come_back() {
    let status = &facts_of_a_tool()["status"];
    let none = "0000000000000000";
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(status[set], none, "{set}");
    }
    assert_eq!(status["NoNewPrivs"], "1");
    assert_eq!(status["Seccomp"], "2");
    if nix::unistd::geteuid().is_root() {
        let locked = 0b1110_1111;
        assert_eq!(status["CapBnd"], none);
        assert_eq!(facts_of_a_tool()["securebits"], locked);
    }
}

#[test]
fn root_executes_without_capabilities_what_unconfined_has_them() {
    let attempt = ["try", "uid-0-exec-capabilities"];
    let place = Place::new();
    if nix::unistd::geteuid().is_root() {
        assert_eq!(unconfined(&attempt).trim(), "ok");
    }
    let refused = format!("errno {}", libc::EPERM);
    let bounded = facts_of_a_tool()["status"]["CapBnd"] == "0000000000000000";
    assert_eq!(confined(&place, place.spec(&attempt)).trim() == refused, bounded);
}

#[test]
fn signals_mask_and_limits_are_fresh() {
    let facts = facts_of_a_tool();
    for set in ["SigBlk", "SigIgn", "SigPnd", "ShdPnd"] {
        // Rust's runtime ignores SIGPIPE (13) in the probe itself.
        let own = if set == "SigIgn" { "0000000000001000" } else { "0000000000000000" };
        assert_eq!(facts["status"][set], own, "{set}");
    }
    assert_eq!(facts["umask"], 0o077);
    assert_eq!(facts["nofile"][0], 1024);
    assert_eq!(facts["oom_score_adj"], "200");
}

#[test]
fn a_soft_limit_never_goes_above_the_hard_one() {
    let place = Place::new();
    let mut spec = place.spec(&["facts"]);
    spec.nofile_soft = u64::MAX;
    let facts = facts(&confined(&place, spec));
    assert_eq!(facts["nofile"][0], facts["nofile"][1]);
}

#[test]
fn the_report_says_what_the_kernel_accepted() {
    let place = Place::new();
    let mut spec = place.spec(&["facts"]);
    spec.confinement.grants.retain(|grant| grant.access.write || grant.access.device);
    let usr = place.spec(&[""]).confinement.grants.remove(0);
    spec.confinement.grants.push(usr);
    spec.argv = vec!["/usr/bin/true".into()];
    let mut session = Session::open(&place, spec);
    let report = session.start();
    let path = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    assert_eq!(report.write, [path(place.workspace()), path(place.tmpdir())]);
    assert_eq!(report.execute, ["/usr"]);
    assert!(report.devices.iter().any(|device| device.starts_with("/dev/pts/")), "{report:?}");
    assert_eq!(report.landlock_abi, st2_tools::launch::landlock_abi().min(10));
    assert_eq!(report.signals, "session");
    let gaps = [Gap::MetadataOutside, Gap::GitHooks, Gap::WorkspaceCode, Gap::DiskSpace];
    assert!(report.gaps.starts_with(&gaps), "{report:?}");
}

#[test]
fn slots_are_the_order_of_the_descriptors() {
    let place = Place::new();
    let inner = place.workspace().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let mut session = Session::spawn();
    let mut directories = [place.outside(), place.outside(), place.outside()];
    directories[Slot::Cwd as usize] = inner.clone();
    directories[Slot::Workspace as usize] = place.workspace();
    session.hand_over(&place.spec(&["facts"]), &directories.each_ref().map(|path| path.as_path()));
    session.start();
    assert_eq!(facts(&session.all_output())["cwd"], json!(inner));
}
