//! Agents that keep keys: real ones, with keys of the tests' own.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use super::wait_for;

/// A directory of the environment of the bed.
pub fn variable(name: &str) -> PathBuf {
    PathBuf::from(env::var_os(name).unwrap_or_else(|| panic!("the test runs in the bed: {name}")))
}

/// Runs a program that must not fail; gives what it prints.
pub fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A server of the test's own, ended when it is dropped.
#[derive(Debug)]
pub struct Server(Child);

impl Server {
    /// Starts one.
    pub fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).spawn().unwrap_or_else(|e| panic!("{command:?}: {e}")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory in the runtime directory, where services have their sockets.
pub fn runtime_directory(prefix: &str) -> TempDir {
    tempfile::Builder::new().prefix(prefix).tempdir_in(variable("XDG_RUNTIME_DIR")).unwrap()
}

/// An ssh-agent(1) with one key.
#[derive(Debug)]
pub struct SshAgent {
    directory: TempDir,
    _server: Server,
}

impl SshAgent {
    /// Starts one.
    pub fn start() -> Self {
        let directory = runtime_directory("ssh-");
        let path = |name: &str| directory.path().join(name);
        let (socket, key) = (path("agent"), path("key"));
        let mut agent = Command::new("ssh-agent");
        agent.arg("-D").arg("-a").arg(&socket).stdout(Stdio::null());
        let server = Server::start(&mut agent);
        run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key));
        wait_for("a socket", || socket.exists());
        run(Command::new("ssh-add").arg("-q").arg(&key).env("SSH_AUTH_SOCK", &socket));
        Self { directory, _server: server }
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.directory().join("agent")
    }

    /// The file of its key; `.pub` beside it.
    pub fn key(&self) -> PathBuf {
        self.directory().join("key")
    }

    /// The public half of its key.
    pub fn public_key(&self) -> String {
        fs::read_to_string(self.key().with_extension("pub")).unwrap()
    }
}

/// A gpg-agent(1) of the bed's user, with one key in `~/.gnupg`.
#[derive(Debug)]
pub struct GpgAgent {
    home: PathBuf,
}

impl GpgAgent {
    /// Whose key it is.
    pub const USER: &str = "tests@example.org";

    /// Starts one, where none is.
    pub fn start() -> Self {
        let home = variable("HOME").join(".gnupg");
        fs::create_dir_all(&home).unwrap();
        fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
        let agent = Self { home };
        run(Command::new("gpgconf").args(["--launch", "gpg-agent"]));
        let quiet = ["--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""];
        let key = ["--quick-generate-key", Self::USER, "ed25519", "sign", "never"];
        run(Command::new("gpg").args(quiet).args(key));
        agent
    }

    /// One of its sockets, by gpgconf(1)'s name for it.
    pub fn socket(&self, name: &str) -> PathBuf {
        PathBuf::from(run(Command::new("gpgconf").args(["--list-dirs", name])).trim())
    }
}

impl Drop for GpgAgent {
    fn drop(&mut self) {
        let _ = Command::new("gpgconf").args(["--kill", "gpg-agent"]).status();
        let _ = fs::remove_dir_all(&self.home);
    }
}
