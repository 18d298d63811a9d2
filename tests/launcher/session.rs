//! One launcher at a time: spawned, fed, watched, and gone at the end of its test.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{ErrorKind, Read},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::{fs::OpenOptionsExt, net::UnixStream, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    pty::{Winsize, openpty},
    sys::signal::{Signal, kill},
    unistd::{Pid, pipe2, setsid},
};
use st2_tools::launch::{
    report::{Report, Tier},
    spec::{
        Access, ConfinementSpec, Failure, FromLauncher, Grant, Io, LaunchSpec, Protected, Slot,
        Supervise, Target, ToLauncher,
    },
    wire::{self, Decoder},
};
use tempfile::TempDir;

use crate::{
    pidfd::{ends_within, open_pidfd, wait_for_end},
    stopped::Stopped,
};

/// How long anything may take before a test gives up.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// Directories of one test: a workspace, a `TMPDIR`, and a place outside both.
pub struct Place {
    root: TempDir,
}

impl Place {
    pub fn new() -> Self {
        let place = Self { root: tempfile::tempdir().unwrap() };
        for directory in [place.workspace(), place.tmpdir(), place.outside()] {
            fs::create_dir(directory).unwrap();
        }
        place
    }

    pub fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    pub fn tmpdir(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    pub fn outside(&self) -> PathBuf {
        self.root.path().join("outside")
    }

    /// A specification like the default profile's, that runs the probe.
    pub fn spec<A: AsRef<OsStr>>(&self, arguments: &[A]) -> LaunchSpec {
        let mut argv = vec![probe().into_os_string()];
        argv.extend(arguments.iter().map(|argument| argument.as_ref().to_owned()));
        let path = OsString::from("/usr/local/bin:/usr/bin:/bin");
        LaunchSpec {
            argv,
            environment: BTreeMap::from([("PATH".into(), path), ("ANSWER".into(), "42".into())]),
            io: Io::Pty,
            confinement: ConfinementSpec::new(Tier::Seccomp, self.grants()),
            umask: 0o077,
            nofile_soft: 1024,
            oom_score_adj: 200,
            supervise: None,
        }
    }

    fn grants(&self) -> Vec<Grant> {
        let read = Access { read: true, ..Access::default() };
        let execute = Access { execute: true, ..read };
        let write = Access { write: true, ..read };
        let device = Access { device: true, ..write };
        let grant = |target: Target, access| Grant { target, access, optional: true };
        let path = |path: &str, access| grant(Target::Path(path.into()), access);
        let mut grants = Vec::new();
        // The others name what is beneath the first (where the system keeps all in /usr).
        let systems = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc"];
        for system in systems.iter().filter(|system| !Path::new(system).is_symlink()) {
            grants.push(path(system, execute));
        }
        grants.push(grant(Target::Path(probe().canonicalize().unwrap()), execute));
        grants.extend(["/proc", "/sys"].map(|kernel| path(kernel, read)));
        for node in ["null", "zero", "full", "random", "urandom", "tty"] {
            grants.push(path(&format!("/dev/{node}"), device));
        }
        grants.push(grant(Target::OwnTerminal, device));
        grants.push(grant(Target::Descriptor(Slot::Workspace, self.workspace()), write));
        grants.push(grant(Target::Descriptor(Slot::TmpDir, self.tmpdir()), write));
        grants
    }
}

/// Where the programs of this build are.
fn program(name: &str, built: &str) -> PathBuf {
    match std::env::var_os("ST2_TOOLS_BIN_DIR") {
        Some(directory) => PathBuf::from(directory).join(name),
        None => PathBuf::from(built),
    }
}

pub fn probe() -> PathBuf {
    program("st2-tools-probe", env!("CARGO_BIN_EXE_st2-tools-probe"))
}

pub fn launcher() -> PathBuf {
    program("st2-tools-launch", env!("CARGO_BIN_EXE_st2-tools-launch"))
}

/// A launcher or the tool that it became.
pub struct Session {
    launcher: Child,
    control: Option<UnixStream>,
    decoder: Decoder,
    controller: File,
    output: Vec<u8>,
}

impl Session {
    /// Spawns a launcher that has not heard anything yet.
    pub fn spawn() -> Self {
        Self::spawn_with(|user| user.try_clone().unwrap().into())
    }

    /// Spawns a launcher with a standard output of the test's choice, given the pty's user end.
    pub fn spawn_with(output: impl FnOnce(&OwnedFd) -> Stdio) -> Self {
        Self::spawn_on(|user| (output(&user), user.into()))
    }

    /// Spawns a launcher whose standard output and error are two pipes; gives where they are read.
    pub fn spawn_on_pipes() -> (Self, [File; 2]) {
        let [output, error] =
            [pipe2(OFlag::O_CLOEXEC), pipe2(OFlag::O_CLOEXEC)].map(Result::unwrap);
        let session = Self::spawn_on(|_| (output.1.into(), error.1.into()));
        (session, [output.0.into(), error.0.into()])
    }

    fn spawn_on(streams: impl FnOnce(OwnedFd) -> (Stdio, Stdio)) -> Self {
        let (control, theirs) = UnixStream::pair().unwrap();
        control.set_read_timeout(Some(DEADLINE)).unwrap();
        let (controller, user) = pty();
        let (stdout, stderr) = streams(user);
        let launcher = Command::new(launcher())
            .stdin(OwnedFd::from(theirs))
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .unwrap();
        let (decoder, output) = (Decoder::default(), Vec::new());
        Self { launcher, control: Some(control), decoder, controller, output }
    }

    /// Spawns the probe without launcher or confinement, with a terminal of its own.
    pub fn unconfined<A: AsRef<OsStr>>(arguments: &[A]) -> Self {
        let (controller, user) = pty();
        let mut command = Command::new(probe());
        command.args(arguments).stdin(user.try_clone().unwrap()).stderr(user.try_clone().unwrap());
        command.stdout(user);
        // SAFETY: setsid and ioctl are async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                setsid()?;
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let launcher = command.spawn().unwrap();
        let (decoder, output) = (Decoder::default(), Vec::new());
        Self { launcher, control: None, decoder, controller, output }
    }

    /// Opens one whose launcher is stopped, with every grant opened and its own root not begun; `then` happens there.
    pub fn open_and(place: &Place, spec: LaunchSpec, then: impl FnOnce()) -> Self {
        let session = Self::spawn();
        let directories = [place.workspace(), place.workspace(), place.tmpdir()];
        let begin = || session.hand_over(&spec, &directories.each_ref().map(AsRef::as_ref));
        let stopped = Stopped::before(libc::SYS_unshare, session.pid(), begin);
        then();
        drop(stopped);
        session
    }

    /// Spawns a launcher and hands over the specification with the directories of its place.
    pub fn open(place: &Place, spec: LaunchSpec) -> Self {
        let session = Self::spawn();
        session.hand_over(&spec, &[&place.workspace(), &place.workspace(), &place.tmpdir()]);
        session
    }

    pub fn hand_over(&self, spec: &LaunchSpec, directories: &[&Path]) {
        let opened: Vec<OwnedFd> = directories.iter().map(|path| open_directory(path)).collect();
        self.hand_over_descriptors(spec, &opened);
    }

    pub fn hand_over_descriptors(&self, spec: &LaunchSpec, directories: &[OwnedFd]) {
        let frame = wire::encode(&ToLauncher::Spec(Box::new(spec.clone()))).unwrap();
        let directories: Vec<BorrowedFd> = directories.iter().map(AsFd::as_fd).collect();
        let sent = wire::send_with_descriptors(self.control(), &frame, &directories).unwrap();
        assert_eq!(sent, frame.len(), "the frame fits the socket");
    }

    pub fn send_bytes(&self, bytes: &[u8]) {
        wire::send_with_descriptors(self.control(), bytes, &[]).unwrap();
    }

    pub fn release(&self) {
        wire::send(self.control(), &ToLauncher::Release).unwrap();
    }

    fn control(&self) -> BorrowedFd<'_> {
        self.control.as_ref().unwrap().as_fd()
    }

    /// The broker goes away.
    pub fn vanish(&mut self) {
        self.control = None;
    }

    /// Waits for the next message; `None` is end of file.
    pub fn message(&mut self) -> Option<FromLauncher> {
        let control = self.control.as_ref().unwrap().as_fd();
        let mut descriptors = Vec::new();
        let message = wire::receive(control, &mut self.decoder, &mut descriptors).unwrap();
        assert!(descriptors.is_empty());
        message
    }

    pub fn ready(&mut self) {
        assert_eq!(self.message(), Some(FromLauncher::Ready));
    }

    pub fn confined(&mut self) -> Report {
        match self.message() {
            Some(FromLauncher::Confined(report)) => *report,
            other => panic!("expected the report, got {other:?}"),
        }
    }

    pub fn failure(&mut self) -> Failure {
        match self.message() {
            Some(FromLauncher::Failed(failure)) => failure,
            other => panic!("expected a failure, got {other:?}"),
        }
    }

    /// From the gate to the tool.
    pub fn start(&mut self) -> Report {
        self.ready();
        self.release();
        let report = self.confined();
        assert_eq!(self.message(), None, "end of file says that execve succeeded");
        report
    }

    /// The path of the pty's user end.
    pub fn terminal(&self) -> String {
        let mut number: libc::c_uint = 0;
        // SAFETY: TIOCGPTN writes one number.
        let got =
            unsafe { libc::ioctl(self.controller.as_raw_fd(), libc::TIOCGPTN, &raw mut number) };
        assert_eq!(got, 0);
        format!("/dev/pts/{number}")
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.launcher.id()).unwrap())
    }

    /// Waits for the launcher's (or the tool's) end.
    pub fn wait(&mut self) -> ExitStatus {
        wait_for_end(&open_pidfd(self.pid()).unwrap());
        self.launcher.wait().unwrap()
    }

    /// Reads terminal output until there are so many lines that `accept` takes; gives what it made
    /// of them.
    pub fn lines<T>(&mut self, count: usize, accept: impl Fn(&str) -> Option<T>) -> Vec<T> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let text = String::from_utf8_lossy(&self.output).into_owned();
            let complete = text.rfind('\n').map_or("", |end| &text[..end]);
            let lines = complete.lines().map(str::trim_end);
            let found: Vec<T> = lines.filter_map(&accept).take(count).collect();
            if found.len() == count {
                return found;
            }
            assert!(self.read_more(deadline), "the terminal closed after {text:?}");
        }
    }

    /// Reads terminal output until the user end is closed everywhere.
    pub fn all_output(&mut self) -> String {
        let deadline = Instant::now() + DEADLINE;
        while self.read_more(deadline) {}
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// Reads what is there; `false` at the end.
    fn read_more(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut fds = [PollFd::new(self.controller.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(left).unwrap();
        assert_ne!(poll(&mut fds, timeout).unwrap(), 0, "no output: {:?}", self.output);
        let mut chunk = [0; 4096];
        match self.controller.read(&mut chunk) {
            Ok(0) => false,
            Ok(count) => {
                self.output.extend_from_slice(&chunk[..count]);
                true
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(libc::EIO));
                false
            }
        }
    }
}

impl Drop for Session {
    /// Ends a supervisor by vanishing, anything else by force, however the test went.
    fn drop(&mut self) {
        self.control = None;
        if self.launcher.try_wait().is_ok_and(|status| status.is_none()) {
            let pidfd = open_pidfd(self.pid()).unwrap();
            if !ends_within(&pidfd, Duration::from_secs(2)) {
                let _ = kill(self.pid(), Signal::SIGKILL);
            }
            let _ = self.launcher.wait();
        }
    }
}

/// Runs the probe without any confinement and gives what it printed.
pub fn unconfined<A: AsRef<OsStr>>(arguments: &[A]) -> String {
    let mut session = Session::unconfined(arguments);
    let text = session.all_output();
    if session.wait().success() { text } else { "died".to_owned() }
}

/// Runs the probe confined and gives what it printed.
pub fn confined(place: &Place, spec: LaunchSpec) -> String {
    let mut session = Session::open(place, spec);
    session.start();
    let text = session.all_output();
    if session.wait().success() { text } else { "died".to_owned() }
}

/// In a root of its own, where the workspace's repository is protected as by default.
pub fn mounts(mut spec: LaunchSpec) -> LaunchSpec {
    let protected =
        |path: &str, directory| Protected { beneath: None, path: path.into(), directory };
    spec.confinement.tier = Tier::Mounts;
    spec.confinement.root.protect =
        vec![protected(".git/hooks", true), protected(".git/config", false)];
    spec
}

/// With a supervisor, and no cgroup.
pub fn supervised(mut spec: LaunchSpec) -> LaunchSpec {
    spec.supervise = Some(Supervise { cgroup: None });
    spec
}

fn pty() -> (File, OwnedFd) {
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = openpty(&size, None).unwrap();
    for end in [&pty.master, &pty.slave] {
        let flags = nix::fcntl::FdFlag::FD_CLOEXEC;
        fcntl(end, FcntlArg::F_SETFD(flags)).unwrap();
    }
    (File::from(pty.master), pty.slave)
}

pub fn open_directory(path: &Path) -> OwnedFd {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY;
    File::options().read(true).custom_flags(flags.bits()).open(path).unwrap().into()
}
