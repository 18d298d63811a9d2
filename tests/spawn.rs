//! The real launcher, spawned as the broker spawns it, placed by the portable host. Needs Landlock only.
#![allow(clippy::unwrap_used)]

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    os::fd::{AsFd, OwnedFd},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use nix::{
    fcntl::{OFlag, open},
    sys::stat::Mode,
};
use st2_tools::{
    broker::{
        name::{SessionId, ToolName, UnitName},
        outcome::Ending,
    },
    host::{
        EndedBy, Host, Place, ScopeSpec,
        cgroup::{Cgroup, name_of},
        pidfd::PidFd,
        portable::{Portable, place::Supervised},
        pty::{Controller, Pty, Size},
        spawn::{Launcher, Started},
        watch::watch,
    },
    launch::{
        report::{Gap, Tier},
        spec::{Access, ConfinementSpec, Failure, Grant, Io, LaunchSpec, Step, Target},
    },
};
use tokio::io::Interest;

/// Within this, everything that is waited for happens, or the test fails.
const SOON: Duration = Duration::from_secs(20);

fn program(name: &str, built: &str) -> PathBuf {
    match std::env::var_os("ST2_TOOLS_BIN_DIR") {
        Some(directory) => PathBuf::from(directory).join(name),
        None => PathBuf::from(built),
    }
}

fn launcher() -> PathBuf {
    program("st2-tools-launch", env!("CARGO_BIN_EXE_st2-tools-launch"))
}

fn probe() -> PathBuf {
    program("st2-tools-probe", env!("CARGO_BIN_EXE_st2-tools-probe"))
}

/// Runs this argv with everything readable and executable, nothing writable but the terminal.
fn spec(argv: &[&str]) -> LaunchSpec {
    let read = Access { read: true, execute: true, ..Access::default() };
    let terminal = Access { read: true, write: true, device: true, ..Access::default() };
    let grant = |target, access| Grant { target, access, optional: false };
    let grants = vec![
        grant(Target::Path("/".into()), read),
        grant(Target::Path("/dev/null".into()), terminal),
        grant(Target::OwnTerminal, terminal),
    ];
    LaunchSpec {
        argv: argv.iter().map(Into::into).collect(),
        environment: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
        io: Io::Pty,
        confinement: ConfinementSpec::new(Tier::Seccomp, grants),
        umask: 0o077,
        nofile_soft: 1024,
        oom_score_adj: 200,
        supervise: None,
    }
}

fn scope(test: &str) -> ScopeSpec {
    let id = SessionId::new(test).unwrap();
    let unit = UnitName::scope(&ToolName::new("probe").unwrap(), &id);
    ScopeSpec {
        id,
        unit,
        description: test.into(),
        stop_timeout: Duration::from_millis(500),
        runtime_max: None,
        memory_max: None,
        tasks_max: None,
        bind_unit: None,
    }
}

/// Hands a specification to a launcher and brings it to the gate.
async fn ready(launcher: &mut Launcher, spec: &LaunchSpec) -> Result<(), Failure> {
    let directory = open("/", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).unwrap();
    launcher.send_spec(spec, &[directory.as_fd(); 3]).await?;
    launcher.ready().await
}

async fn start(spec: &LaunchSpec) -> Result<(Launcher, Started, Controller), Failure> {
    let pty = Pty::open(Size::new(80, 24)).unwrap();
    let mut launcher = Launcher::spawn(&launcher(), pty.user)?;
    ready(&mut launcher, spec).await?;
    let started = launcher.release().await?;
    Ok((launcher, started, pty.controller))
}

/// A tool below a supervisor, its place, and the processes that it announced.
struct Supervision {
    launcher: Launcher,
    place: Supervised,
    leader: PidFd,
    announced: Vec<PidFd>,
    _controller: Controller,
}

async fn supervise(host: &Portable, test: &str, argv: &[&str], announce: usize) -> Supervision {
    let scope = scope(test);
    let mut spec = spec(argv);
    spec.supervise = host.supervise(&scope.id).unwrap();
    let pty = Pty::open(Size::new(80, 24)).unwrap();
    let mut launcher = Launcher::spawn(&launcher(), pty.user).unwrap();
    ready(&mut launcher, &spec).await.unwrap();
    let place = host.place(&scope, launcher.process()).await.unwrap();
    let leader = launcher.release().await.unwrap().leader.unwrap();
    let text = read_lines(&pty.controller, announce).await;
    let pids = text.lines().filter_map(|line| line.trim().strip_prefix("pid "));
    // One that has ended already is none to be looked for.
    let announced = pids.filter_map(|pid| PidFd::open(pid.parse().unwrap()).ok()).collect();
    Supervision { launcher, place, leader, announced, _controller: pty.controller }
}

/// Reads until so many lines have come.
async fn read_lines(controller: &Controller, lines: usize) -> String {
    let stream = watch(controller.try_clone().unwrap(), Interest::READABLE).unwrap();
    let mut text = Vec::new();
    while text.iter().filter(|byte| **byte == b'\n').count() < lines {
        let read = stream.async_io(Interest::READABLE, |fd: &OwnedFd| {
            let mut chunk = [0; 1024];
            let count = File::from(fd.try_clone()?).read(&mut chunk)?;
            Ok(chunk[..count].to_vec())
        });
        text.extend(tokio::time::timeout(SOON, read).await.unwrap().unwrap());
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn a_tool_starts_and_its_exit_is_told() {
    let (mut launcher, started, _controller) = start(&spec(&["sh", "-c", "exit 7"])).await.unwrap();
    assert_eq!(started.pid, launcher.process().pid());
    assert_eq!(started.report.tier, Tier::Seccomp);
    let exit = launcher.exited().await;
    assert_eq!(exit.ending, Ending::Exited(7));
    assert!(exit.usage.memory_peak > 0);
    assert_eq!(launcher.exited().await, exit);
}

#[tokio::test]
async fn a_tool_that_cannot_be_executed_is_step_exec() {
    for (program, errno) in [("/no/such/tool", libc::ENOENT), ("/etc/passwd", libc::EACCES)] {
        let failure = start(&spec(&[program])).await.unwrap_err();
        assert_eq!((failure.step, failure.errno), (Step::Exec, errno), "{failure}");
    }
}

#[tokio::test]
async fn a_launcher_that_is_not_there_or_dies_is_step_spawn() {
    let pty = || Pty::open(Size::new(80, 24)).unwrap();
    let missing = Launcher::spawn(Path::new("/no/such/launcher"), pty().user).unwrap_err();
    assert_eq!((missing.step, missing.errno), (Step::Spawn, libc::ENOENT), "{missing}");
    let mut dead = Launcher::spawn(Path::new("/bin/true"), pty().user).unwrap();
    dead.process().ended().await.unwrap();
    let failure = ready(&mut dead, &spec(&["true"])).await.unwrap_err();
    assert!(matches!(failure.step, Step::Spawn | Step::Spec), "{failure}");
}

#[tokio::test]
async fn a_launcher_that_says_nothing_is_killed_and_reaped() {
    let pty = Pty::open(Size::new(80, 24)).unwrap();
    let mut silent = Launcher::spawn(Path::new("/bin/cat"), pty.user).unwrap();
    let process = silent.process().try_clone().unwrap();
    let failure = ready(&mut silent, &spec(&["true"])).await.unwrap_err();
    assert_eq!((failure.step, failure.errno), (Step::Spawn, libc::ETIMEDOUT), "{failure}");
    assert_eq!(process.signal(0).unwrap_err().raw_os_error(), Some(libc::ESRCH));
}

#[tokio::test]
async fn a_launcher_is_ended_and_reaped_at_every_stage() {
    for supervised in [false, true] {
        let mut spec = spec(&["sleep", "1000"]);
        if supervised {
            spec.supervise = Portable::without_groups().supervise(&scope("stage").id).unwrap();
        }
        for stage in 0..3 {
            let pty = Pty::open(Size::new(80, 24)).unwrap();
            let mut launcher = Launcher::spawn(&launcher(), pty.user).unwrap();
            let process = launcher.process().try_clone().unwrap();
            let mut leader = None;
            if stage > 0 {
                ready(&mut launcher, &spec).await.unwrap();
            }
            if stage > 1 {
                leader = launcher.release().await.unwrap().leader;
            }
            // Dropped once, aborted once.
            if stage == 1 {
                launcher.abort().await
            } else {
                drop(launcher)
            }
            for process in [Some(process), leader].into_iter().flatten() {
                let gone = async {
                    process.ended().await.unwrap();
                    while process.signal(0).is_ok() {
                        tokio::task::yield_now().await;
                    }
                };
                tokio::time::timeout(SOON, gone).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn the_portable_host_says_what_it_cannot_promise() {
    let gaps = Portable::without_groups().gaps();
    assert_eq!(gaps, [Gap::NoScope, Gap::NoResourceLimits, Gap::NoCgroup]);
}

#[tokio::test]
async fn a_stubborn_tree_is_dead_after_its_stop_timeout() {
    for (test, host) in [("stubborn", Portable::new()), ("stubbornd", Portable::without_groups())] {
        // The leader is deaf, too: when it ends, its supervisor waits for no stop timeout.
        let script = format!(
            "trap '' TERM HUP; {} escape; while true; do sleep 1000; done",
            probe().display()
        );
        let mut session = supervise(&host, test, &["sh", "-c", &script], 4).await;
        let group = name_of(session.leader.pid()).unwrap();
        let began = Instant::now();
        session.place.stop().await.unwrap();
        assert_eq!(session.place.emptied(SOON).await, 0);
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(450) && took < Duration::from_secs(9), "{took:?}");
        session.launcher.exited().await;
        for process in &session.announced {
            assert!(process.has_ended().unwrap());
        }
        assert_eq!(session.announced.len(), 4);
        assert_eq!(session.place.ended_by().await, EndedBy::Itself);
        session.place.retire().await;
        if !host.gaps().contains(&Gap::NoCgroup) {
            assert!(group.to_str().unwrap().ends_with(&format!("-{test}")), "{group:?}");
            assert!(!host_path(&group).exists());
        }
    }
}

/// Where a control group would be, if it were there.
fn host_path(group: &Path) -> PathBuf {
    let own = Cgroup::of(std::process::id().cast_signed()).unwrap();
    own.path().join(group.file_name().unwrap())
}

#[tokio::test]
async fn a_kill_ends_all_at_once_even_what_forks_without_end() {
    for (test, host) in [("comet", Portable::new()), ("cometd", Portable::without_groups())] {
        let script = format!("{} comet; while true; do sleep 1000; done", probe().display());
        let mut session = supervise(&host, test, &["sh", "-c", &script], 1).await;
        session.place.kill().await.unwrap();
        assert_eq!(session.place.emptied(SOON).await, 0);
        session.launcher.exited().await;
        session.place.retire().await;
    }
}

#[tokio::test]
async fn a_leader_s_end_is_told_with_its_status_and_use() {
    let host = Portable::without_groups();
    let argv = ["sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; exit 9"];
    let mut session = supervise(&host, "told", &argv, 0).await;
    assert_ne!(session.leader.pid(), session.launcher.process().pid());
    let exit = session.launcher.exited().await;
    assert_eq!(exit.ending, Ending::Exited(9));
    assert!(exit.usage.cpu_usec > 0 && exit.usage.memory_peak > 0, "{exit:?}");
    assert_eq!(session.place.emptied(SOON).await, 0);
}

#[tokio::test]
async fn without_a_group_nothing_can_be_frozen() {
    let host = Portable::without_groups();
    let mut session = supervise(&host, "cold", &["sleep", "1000"], 0).await;
    let error = session.place.freeze(true).await.unwrap_err();
    assert_eq!(error.errno(), libc::EOPNOTSUPP);
    session.leader.kill().unwrap();
    let killed = Ending::Signaled { signal: libc::SIGKILL, core_dumped: false };
    assert_eq!(session.launcher.exited().await.ending, killed);
}

#[tokio::test]
async fn a_session_that_is_never_placed_leaves_no_group() {
    let host = Portable::new();
    let scope = scope("unplaced");
    let mut spec = spec(&["sleep", "1000"]);
    spec.supervise = host.supervise(&scope.id).unwrap();
    let pty = Pty::open(Size::new(80, 24)).unwrap();
    let mut launcher = Launcher::spawn(&launcher(), pty.user).unwrap();
    ready(&mut launcher, &spec).await.unwrap();
    launcher.abort().await;
    host.abandon(&scope.id);
    if let Some(group) = spec.supervise.unwrap().cgroup {
        assert!(!group.exists());
    }
}

#[tokio::test]
async fn a_sweep_ends_what_a_dead_broker_left_and_nothing_else() {
    let host = Portable::new();
    if host.gaps().contains(&Gap::NoCgroup) {
        assert_eq!(host.sweep().await.unwrap(), 0);
        return;
    }
    let living = supervise(&host, "living", &["sleep", "1000"], 0).await;
    let mut dead = Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let own = Cgroup::of(std::process::id().cast_signed()).unwrap();
    let left = own.make(&format!("st2tools-{}-left", dead.id())).unwrap();
    let mut stray = Command::new("sleep").arg("1000").spawn().unwrap();
    std::fs::write(left.path().join("cgroup.procs"), stray.id().to_string()).unwrap();
    assert!(host.sweep().await.unwrap() >= 1);
    assert!(!left.path().exists());
    assert_eq!(stray.wait().unwrap().signal(), Some(libc::SIGKILL));
    assert!(!living.leader.has_ended().unwrap());
    living.place.kill().await.unwrap();
    assert_eq!(living.place.emptied(SOON).await, 0);
    living.place.retire().await;
}

/// Set in the copy of this test program that runs where only three ptys can be had.
const FEW: &str = "ST2_TEST_FEW_PTYS";

#[test]
fn without_a_free_pty_opening_one_is_a_typed_error() {
    if std::env::var_os(FEW).is_none() {
        let script = "mount -t devpts -o newinstance,max=3,ptmxmode=666 devpts /dev/pts && \
                      mount --bind /dev/pts/ptmx /dev/ptmx && \
                      exec \"$0\" --exact without_a_free_pty_opening_one_is_a_typed_error";
        let mut copy = Command::new("unshare");
        copy.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        let copy = copy.arg(std::env::current_exe().unwrap()).env(FEW, "1").output().unwrap();
        assert!(copy.status.success(), "{copy:?}");
        return;
    }
    let mut open = Vec::new();
    let error = loop {
        match Pty::open(Size::new(80, 24)) {
            Ok(pty) => open.push(pty),
            Err(error) => break error,
        }
    };
    assert!((1..=3).contains(&open.len()));
    let failure = error.at(Step::Pty);
    assert_eq!((failure.step, failure.errno), (Step::Pty, libc::ENOSPC), "{failure}");
    assert!(failure.message.starts_with("cannot open a pty: "), "{failure}");
    open.pop();
    Pty::open(Size::new(80, 24)).unwrap();
}
