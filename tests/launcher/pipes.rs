//! A tool without a terminal: what it finds in the place of one.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
};

use nix::{
    fcntl::OFlag,
    sys::signal::{Signal, kill},
    unistd::pipe2,
};
use serde_json::Value;
use st2_tools::launch::spec::{FromLauncher, Io, LaunchSpec, Step, Target};

use crate::session::{Place, Session, mounts, open_directory, supervised};

/// A specification for pipes.
fn piped(mut spec: LaunchSpec) -> LaunchSpec {
    spec.io = Io::Pipe;
    spec.confinement.grants.retain(|grant| grant.target != Target::OwnTerminal);
    spec
}

fn null() -> OwnedFd {
    File::open("/dev/null").unwrap().into()
}

/// Hands a specification over with its directories and this standard input.
fn hand_over(session: &Session, place: &Place, spec: &LaunchSpec, stdin: OwnedFd) {
    let directories = [place.workspace(), place.workspace(), place.tmpdir()];
    let mut descriptors: Vec<OwnedFd> = directories.iter().map(|it| open_directory(it)).collect();
    descriptors.push(stdin);
    session.hand_over_descriptors(spec, &descriptors);
}

/// Opens the gate, and waits until the tool runs.
fn start(session: &mut Session, spec: &LaunchSpec) {
    session.ready();
    session.release();
    let report = session.confined();
    assert!(report.devices.iter().all(|device| !device.starts_with("/dev/pts/")), "{report:?}");
    match (&spec.supervise, session.message()) {
        (None, None) | (Some(_), Some(FromLauncher::Started { .. })) => {}
        (_, other) => panic!("expected the start, got {other:?}"),
    }
}

/// Runs a tool to its end; gives what it wrote on either output.
fn run(place: &Place, spec: &LaunchSpec, stdin: OwnedFd) -> [String; 2] {
    let (mut session, outputs) = Session::spawn_on_pipes();
    hand_over(&session, place, spec, stdin);
    start(&mut session, spec);
    outputs.map(|mut output| {
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        text
    })
}

fn shell(place: &Place, script: &str) -> LaunchSpec {
    let mut spec = piped(place.spec(&[""]));
    spec.argv = ["/bin/sh", "-c", script].map(Into::into).to_vec();
    spec
}

#[test]
fn the_tool_leads_a_session_that_has_no_terminal() {
    let place = Place::new();
    for wrap in [|spec| spec, mounts, supervised] {
        let spec = wrap(piped(place.spec(&["facts"])));
        let [output, error] = run(&place, &spec, null());
        let facts: Value = serde_json::from_str(&output).unwrap();
        assert_eq!(error, "");
        for fact in ["sid", "pgid"] {
            assert_eq!(facts[fact], facts["pid"], "{fact}");
        }
        assert_eq!(facts["controlling_terminal"], false);
        let descriptors = facts["descriptors"].as_object().unwrap();
        assert_eq!(descriptors.keys().collect::<Vec<_>>(), ["0", "1", "2"]);
        assert_eq!(descriptors["0"], "/dev/null");
        for number in ["1", "2"] {
            assert!(descriptors[number].as_str().unwrap().starts_with("pipe:["), "{descriptors:?}");
        }
        assert_ne!(descriptors["1"], descriptors["2"]);
    }
}

#[test]
fn what_is_written_to_its_input_arrives_and_ends() {
    let place = Place::new();
    for wrap in [|spec| spec, mounts, supervised] {
        let (read, write) = pipe2(OFlag::O_CLOEXEC).unwrap();
        File::from(write).write_all(b"words").unwrap();
        let spec = wrap(shell(&place, "cat; echo over >&2"));
        assert_eq!(run(&place, &spec, read), ["words", "over\n"]);
    }
}

/// Landlock leaves pipes alone, also where one is opened anew by the name of a descriptor.
#[test]
fn pipes_can_be_opened_anew_by_their_names() {
    let place = Place::new();
    let script = "echo out >/dev/stdout; echo err >/dev/stderr; echo three >/proc/self/fd/1; \
                  read -r word </dev/stdin; echo $word";
    for wrap in [|spec| spec, mounts] {
        let (read, write) = pipe2(OFlag::O_CLOEXEC).unwrap();
        File::from(write).write_all(b"word\n").unwrap();
        let spec = wrap(shell(&place, script));
        assert_eq!(run(&place, &spec, read), ["out\nthree\nword\n", "err\n"]);
    }
}

#[test]
fn nobody_but_the_tool_keeps_its_ends() {
    let place = Place::new();
    for wrap in [|spec| spec, supervised] {
        let spec = wrap(shell(&place, "exec <&- >&- 2>&-; exec sleep 1000"));
        let (read, write) = pipe2(OFlag::O_CLOEXEC).unwrap();
        let (mut session, outputs) = Session::spawn_on_pipes();
        hand_over(&session, &place, &spec, read);
        start(&mut session, &spec);
        for mut output in outputs {
            let mut rest = Vec::new();
            output.read_to_end(&mut rest).unwrap();
            assert_eq!(rest, b"", "it ends though the tool goes on");
        }
        let unread = File::from(write).write_all(b"x").unwrap_err();
        assert_eq!(unread.raw_os_error(), Some(libc::EPIPE));
        session.vanish();
        if spec.supervise.is_none() {
            kill(session.pid(), Signal::SIGKILL).unwrap();
        }
    }
}

#[test]
fn a_standard_input_that_does_not_fit_the_specification_is_refused() {
    let place = Place::new();
    let failure = |spec: &LaunchSpec, with_stdin: bool| {
        let mut session = Session::spawn();
        if with_stdin {
            hand_over(&session, &place, spec, null());
        } else {
            let (workspace, tmpdir) = (place.workspace(), place.tmpdir());
            session.hand_over(spec, &[&workspace, &workspace, &tmpdir]);
        }
        session.failure()
    };
    let pty = place.spec(&["facts"]);
    let piped = piped(pty.clone());
    for (spec, with_stdin, expected) in
        [(&pty, true, "4 descriptors"), (&piped, false, "3 descriptors")]
    {
        let failure = failure(spec, with_stdin);
        assert_eq!(failure.step, Step::Spec);
        assert!(failure.message.starts_with(expected), "{failure}");
    }
    let granted = LaunchSpec { io: Io::Pipe, ..pty };
    let failure = failure(&granted, true);
    assert_eq!(failure.step, Step::Confine);
    assert_eq!(failure.message, "the session's terminal is granted, and it has none");
}
