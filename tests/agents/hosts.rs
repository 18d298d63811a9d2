//! Runs a host in its own language, beside a broker.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

use crate::support::{
    Broker, Start,
    tools::{install_from_path, policy_with},
};

/// Longest that a host may take, in seconds: ten thousand reads take ten, of a machine that has nothing else to do.
const PATIENCE: &str = "180";

/// Catalogue entries that the hosts open beside the shipped ones.
const TOOLS: [(&str, &str); 9] = [
    (
        "absent-agent",
        "title = \"a\"\ncommand = [\"no-such-program\"]\narguments = \"none\"\nprofile = \"workspace\"\n",
    ),
    (
        "unrunnable-agent",
        "title = \"b\"\ncommand = [\"/etc/passwd\"]\narguments = \"none\"\nprofile = \"workspace\"\n",
    ),
    (
        "argument-agent",
        "title = \"d\"\ncommand = [\"sh\", \"-c\", \"echo given: $1; read x\", \"sh\"]\narguments = \"none\"\n\
         profile = \"workspace\"\n[agent]\nprompt = \"argument\"\n",
    ),
    (
        "terminal-agent",
        "title = \"e\"\ncommand = [\"sh\", \"-c\", \"echo up; read x; echo given: $x; read x\"]\narguments = \"none\"\n\
         profile = \"workspace\"\n[agent]\nprompt = \"terminal\"\n",
    ),
    (
        "quiet-agent",
        "title = \"f\"\ncommand = [\"sh\", \"-c\", \"read x; echo given: $x; read x; echo then: $x\"]\n\
         arguments = \"none\"\nprofile = \"workspace\"\n[agent]\nprompt = \"terminal\"\n",
    ),
    (
        "brief-agent",
        "title = \"g\"\ncommand = [\"sh\", \"-c\", \"exit 3\"]\narguments = \"none\"\n\
         profile = \"workspace\"\n[agent]\nprompt = \"terminal\"\n",
    ),
    (
        "polyglot-agent",
        "title = \"c\"\ncommand = [\"sh\", \"-c\", \"echo $LANG $LC_ALL\"]\narguments = \"none\"\nprofile = \"workspace\"\n\
         pass_environment = [\"LANG\", \"LC_ALL\"]\n",
    ),
    (
        "piped-agent",
        "title = \"f\"\ncommand = [\"sh\", \"-c\", \"test -t 0 || echo no terminal; read x; echo got $x\"]\narguments = \"none\"\n\
         io = [\"pty\", \"pipe\"]\nprofile = \"workspace\"\n",
    ),
    (
        "watched-command",
        "title = \"g\"\ncommand = []\narguments = \"any\"\nio = [\"pty\", \"pipe\"]\nprofile = \"workspace\"\n\
         timeout_ms = 600_000\nsilence_timeout_ms = 1000\n",
    ),
];

/// A broker, and what hosts beside it need.
pub struct Bench {
    broker: Broker,
    _policy: TempDir,
}

impl Bench {
    /// Starts a broker as the shipped unit.
    pub async fn new() -> Self {
        install_from_path("lazygit");
        let policy = policy_with(&TOOLS);
        let broker = Start::default().policy(policy.path()).unit().await;
        Self { broker, _policy: policy }
    }

    /// Runs a host; it is to succeed, and in time.
    pub async fn run(&self, program: &str, arguments: &[&str], environment: &[(&str, PathBuf)]) {
        let mut command = Command::new("timeout");
        command
            .args(["--kill-after=5", PATIENCE, program])
            .args(arguments)
            .current_dir(directory())
            .env("ST2_TEST_BROKER", self.broker.pid().to_string())
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        let output: Output = output.unwrap().unwrap();
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (said(&output.stdout), said(&output.stderr));
        assert!(output.status.success(), "{arguments:?}: {}\n{out}\n{err}", output.status);
    }
}

/// Where the hosts are.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/host")
}

/// Where tests/install has put the SDKs.
pub fn installed(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap();
    let tools = env::split_paths(&path).filter_map(|bin| Some(bin.parent()?.join(name)));
    tools.into_iter().find(|place| place.is_dir()).expect("tests/install has been run")
}
