//! Every step that can fail: which one it was, its errno, and nothing left behind.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

use st2_tools::launch::{
    spec::{Access, FRAME_MAX, Failure, Grant, LaunchSpec, Step, Target, ToLauncher},
    wire,
};

use crate::session::{Place, Session, launcher, open_directory};

/// Expects a failure, then the end of the launcher.
fn failed(mut session: Session) -> Failure {
    let failure = session.failure();
    assert_eq!(session.message(), None);
    assert_eq!(session.wait().code(), Some(1));
    assert_eq!(session.all_output(), "", "nothing is written to the terminal");
    failure
}

/// Through the gate to a failing `execve`.
fn exec_failure(place: &Place, spec: LaunchSpec) -> Failure {
    let mut session = Session::open(place, spec);
    session.ready();
    session.release();
    session.confined();
    failed(session)
}

fn with_argv(place: &Place, argv: &[&str]) -> LaunchSpec {
    let mut spec = place.spec(&[""]);
    spec.argv = argv.iter().map(Into::into).collect();
    spec
}

fn script(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_missing_program_fails_to_execute() {
    let place = Place::new();
    let failure = exec_failure(&place, with_argv(&place, &["/usr/bin/no-such-program"]));
    assert_eq!((failure.step, failure.errno), (Step::Exec, libc::ENOENT));
    assert!(failure.message.contains("/usr/bin/no-such-program"), "{}", failure.message);
}

#[test]
fn a_name_that_path_does_not_have_fails_to_execute() {
    let place = Place::new();
    let failure = exec_failure(&place, with_argv(&place, &["no-such-program"]));
    assert_eq!((failure.step, failure.errno), (Step::Exec, libc::ENOENT));
    assert!(failure.message.contains("/usr/local/bin:/usr/bin:/bin"), "{}", failure.message);
}

#[test]
fn a_file_without_permission_fails_to_execute_even_behind_others() {
    let place = Place::new();
    script(&place.workspace().join("tool"), "#!/bin/sh\n", 0o644);
    let failure = exec_failure(&place, with_argv(&place, &["./tool"]));
    assert_eq!((failure.step, failure.errno), (Step::Exec, libc::EACCES));

    let mut spec = with_argv(&place, &["tool"]);
    let path = format!("{}:/usr/bin", place.workspace().display());
    spec.environment.insert("PATH".into(), path.into());
    let failure = exec_failure(&place, spec);
    assert_eq!((failure.step, failure.errno), (Step::Exec, libc::EACCES), "remembered");
}

#[test]
fn a_relative_directory_of_path_names_nothing_in_the_workspace() {
    let place = Place::new();
    script(&place.workspace().join("tool"), "#!/bin/sh\n", 0o755);
    let workspace = Target::Path(place.workspace());
    for path in ["", ".", ":/usr/bin", "/usr/bin:"] {
        let mut spec = with_argv(&place, &["tool"]);
        let access = Access { read: true, execute: true, ..Access::default() };
        spec.confinement.grants.push(Grant { target: workspace.clone(), access, optional: false });
        spec.environment.insert("PATH".into(), path.into());
        let failure = exec_failure(&place, spec);
        assert_eq!((failure.step, failure.errno), (Step::Exec, libc::ENOENT), "{path:?}");
    }
}

#[test]
fn a_text_without_interpreter_is_not_given_to_a_shell() {
    let place = Place::new();
    script(&place.workspace().join("tool"), "echo run by a shell\n", 0o755);
    let mut spec = with_argv(&place, &["./tool"]);
    let target = Target::Path(place.workspace().join("tool"));
    let access = Access { read: true, execute: true, ..Access::default() };
    spec.confinement.grants.push(Grant { target, access, optional: false });
    let failure = exec_failure(&place, spec);
    assert_eq!((failure.step, failure.errno), (Step::Exec, libc::ENOEXEC));
}

#[test]
fn an_argv_that_cannot_be_executed_is_refused_before_the_gate() {
    let place = Place::new();
    for argv in [&[][..], &["/usr/bin/true", "a\0b"][..]] {
        let failure = failed(Session::open(&place, with_argv(&place, argv)));
        assert_eq!(failure.step, Step::Exec, "{argv:?}");
    }
}

#[test]
fn a_working_directory_that_is_gone_is_refused() {
    let place = Place::new();
    let cwd = place.workspace().join("cwd");
    let spec = place.spec(&["facts"]);
    for removed_at_the_gate in [false, true] {
        fs::create_dir(&cwd).unwrap();
        let opened = [&place.workspace(), &cwd, &place.tmpdir()].map(|path| open_directory(path));
        let mut session = Session::spawn();
        if removed_at_the_gate {
            session.hand_over_descriptors(&spec, &opened);
            session.ready();
            fs::remove_dir(&cwd).unwrap();
            session.release();
        } else {
            fs::remove_dir(&cwd).unwrap();
            session.hand_over_descriptors(&spec, &opened);
        }
        let failure = failed(session);
        assert_eq!((failure.step, failure.errno), (Step::Cwd, libc::ENOENT));
    }
}

#[test]
fn a_missing_grant_is_refused_by_name_before_the_gate() {
    let place = Place::new();
    let mut spec = place.spec(&["facts"]);
    let target = Target::Path("/no/such/path".into());
    spec.confinement.grants.push(Grant { target, access: Access::default(), optional: false });
    let failure = failed(Session::open(&place, spec));
    assert_eq!((failure.step, failure.errno), (Step::Confine, libc::ENOENT));
    assert!(failure.message.contains("/no/such/path"), "{}", failure.message);
}

#[test]
fn an_old_landlock_is_refused_and_says_what_is_missing() {
    let place = Place::new();
    let mut spec = place.spec(&["facts"]);
    spec.confinement.landlock_abi_cap = Some(5);
    let failure = failed(Session::open(&place, spec));
    assert_eq!(failure.step, Step::Confine);
    assert_eq!(failure.message, "landlock ABI 5 is below 6 and the policy does not allow it");
}

#[test]
fn frames_that_are_no_specification_are_refused() {
    let too_long = u32::try_from(FRAME_MAX + 1).unwrap().to_le_bytes();
    let garbage = [&4_u32.to_le_bytes()[..], &[0xff; 4]].concat();
    let release = wire::encode(&ToLauncher::Release).unwrap();
    for bytes in [&too_long[..], &garbage, &release] {
        let session = Session::spawn();
        session.send_bytes(bytes);
        assert_eq!(failed(session).step, Step::Spec, "{bytes:?}");
    }
}

#[test]
fn a_specification_without_its_three_directories_is_refused() {
    let place = Place::new();
    for count in [0, 2] {
        let session = Session::spawn();
        let directories = [place.workspace(), place.tmpdir()];
        let directories: Vec<&Path> = directories.iter().map(AsRef::as_ref).take(count).collect();
        session.hand_over(&place.spec(&["facts"]), &directories);
        let failure = failed(session);
        let expected = format!("{count} descriptors came with the specification instead of 3");
        assert_eq!((failure.step, failure.message), (Step::Spec, expected));
    }
}

#[test]
fn a_second_specification_at_the_gate_is_refused() {
    let place = Place::new();
    let spec = place.spec(&["facts"]);
    let mut session = Session::open(&place, spec.clone());
    session.ready();
    session.hand_over(&spec, &[&place.workspace(), &place.workspace(), &place.tmpdir()]);
    let failure = session.failure();
    assert_eq!(failure.step, Step::Spec);
}

#[test]
fn a_broker_that_is_gone_leaves_no_launcher_and_no_tool() {
    let place = Place::new();
    let mut before_the_specification = Session::spawn();
    let mut at_the_gate = Session::open(&place, place.spec(&["facts"]));
    at_the_gate.ready();
    for session in [&mut before_the_specification, &mut at_the_gate] {
        session.vanish();
        assert_eq!(session.wait().code(), Some(0));
        assert_eq!(session.all_output(), "", "the tool never ran");
    }
}

#[test]
fn without_a_terminal_there_is_no_tool() {
    let place = Place::new();
    let mut session = Session::spawn_with(|_| Stdio::null());
    session.hand_over(
        &place.spec(&["facts"]),
        &[&place.workspace(), &place.workspace(), &place.tmpdir()],
    );
    let failure = session.failure();
    assert_eq!((failure.step, failure.errno), (Step::Terminal, libc::ENOTTY));
}

#[test]
fn started_by_hand_it_says_who_starts_it() {
    let output = Command::new(launcher()).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("st2-tools-launch is run by st2-toolsd"), "{text}");
}

#[test]
fn without_user_namespaces_the_probe_says_so() {
    let answer = |script: &str| {
        let mut shell = Command::new("unshare");
        shell.args(["--user", "--map-root-user", "sh", "-c", script]).arg(launcher());
        let output = shell.stdin(Stdio::null()).output().unwrap();
        let said =
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), said)
    };
    assert_eq!(answer("exec \"$0\" --probe-mounts"), (Some(0), String::new()));
    let forbidden =
        answer("echo 0 >/proc/sys/user/max_user_namespaces && exec \"$0\" --probe-mounts");
    let expected =
        "cannot make a user and mount namespace: No space left on device (os error 28)\n";
    assert_eq!(forbidden, (Some(1), expected.to_owned()));
}
