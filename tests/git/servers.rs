//! Where repositories are fetched from and pushed to: a real sshd(8) and git-http-backend(1) behind TLS, on the ports that
//! are known for them, and what a user has who uses them.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read},
    net::{Ipv4Addr, TcpStream},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::support::{
    Broker,
    keys::{Server, SshAgent, run, variable},
    repository::{Repository, git, try_git},
    wait_for,
};

/// A remote repository, both servers, and the user's own files for them. One at a time: it is made while a broker has the
/// turn on the shared bus.
pub struct Remote {
    place: TempDir,
    _sshd: Server,
    https: Child,
}

impl Remote {
    /// Starts it, empty.
    pub fn start(_turn: &Broker, agent: &SshAgent) -> Self {
        let place = tempfile::Builder::new().prefix("remote").tempdir_in(variable("HOME")).unwrap();
        git(place.path(), &["init", "--quiet", "--bare", "project.git"]);
        git(&place.path().join("project.git"), &["config", "http.receivepack", "true"]);
        let sshd = sshd(place.path(), agent);
        let https = https(place.path());
        Self { place, _sshd: sshd, https }
    }

    /// The remote repository.
    pub fn path(&self) -> PathBuf {
        self.place.path().join("project.git")
    }

    /// Its address for ssh, by a name that only the user's `~/.ssh/config` knows.
    pub fn ssh(&self) -> String {
        format!("ssh://st2-git-host{}", self.path().display())
    }

    /// Its address for https.
    pub fn https(&self) -> String {
        "https://localhost/project.git".to_owned()
    }

    /// A repository of the user's that has pushed its first commit there, and has it as `origin`, by this address.
    pub fn clone_of(&self, address: &str) -> Repository {
        let repository = Repository::new(&[("file.txt", "one\n")]);
        // Where a tool may read it, and git takes it for nothing of its own.
        let authority = repository.join(".git/authority.pem");
        fs::copy(self.place.path().join("server.crt"), &authority).unwrap();
        let authority = authority.to_str().unwrap();
        let name = "http.https://localhost/.sslCAInfo";
        git(repository.path(), &["config", "--global", name, authority]);
        git(repository.path(), &["remote", "add", "origin", address]);
        git(repository.path(), &["push", "--quiet", "--set-upstream", "origin", "main"]);
        repository
    }

    /// The subject of the last commit that was pushed.
    pub fn subject(&self) -> String {
        crate::support::repository::subject(&self.path())
    }

    /// Makes it as it was at first.
    pub fn empty(&self) {
        git(&self.path(), &["update-ref", "-d", "refs/heads/main"]);
    }

    /// Has somebody else push a commit.
    pub fn commit(&self, subject: &str) {
        let place = self.place.path().join("elsewhere");
        let elsewhere = place.to_str().unwrap();
        git(self.place.path(), &["clone", "--quiet", "project.git", elsewhere]);
        git(&place, &["commit", "--quiet", "--allow-empty", "--message", subject]);
        git(&place, &["push", "--quiet"]);
        fs::remove_dir_all(&place).unwrap();
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.https.kill();
        let _ = self.https.wait();
        try_git(
            self.place.path(),
            &["config", "--global", "--remove-section", "http.https://localhost/"],
        );
        let _ = fs::remove_dir_all(variable("HOME").join(".ssh"));
    }
}

/// Starts sshd as the user's own, for the user's own key, and makes it known to them.
fn sshd(place: &Path, agent: &SshAgent) -> Server {
    let ssh = variable("HOME").join(".ssh");
    fs::create_dir_all(&ssh).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o700)).unwrap();
    fs::copy(agent.key(), ssh.join("id_ed25519")).unwrap();
    fs::write(ssh.join("config"), "Host st2-git-host\n\tHostName 127.0.0.1\n").unwrap();
    let path = |name: &str| place.join(name);
    run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path("host")));
    let host = fs::read_to_string(path("host.pub")).unwrap();
    fs::write(ssh.join("known_hosts"), format!("127.0.0.1 {host}")).unwrap();
    fs::write(path("authorized"), agent.public_key()).unwrap();
    let settings = format!(
        "ListenAddress 127.0.0.1:22\nHostKey {0}/host\nAuthorizedKeysFile {0}/authorized\nPidFile none\nUsePAM no\n\
         StrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n",
        place.display()
    );
    fs::write(path("settings"), settings).unwrap();
    let (program, libraries) = sshd_program();
    let mut command = Command::new(program);
    // Its own place comes last, where the loader would find nothing else.
    command.args(["-D", "-E"]).arg(path("sshd.log")).arg("-f").arg(path("settings"));
    let server = Server::start(command.env("LD_LIBRARY_PATH", libraries));
    await_port(22, &path("sshd.log"));
    server
}

/// The installed one, or the one that tests/install has unpacked; and where its libraries are.
fn sshd_program() -> (PathBuf, PathBuf) {
    let installed = PathBuf::from("/usr/sbin/sshd");
    if installed.exists() {
        return (installed, PathBuf::new());
    }
    let programs = PathBuf::from(env::var_os("ST2_TOOLS_BIN_DIR").expect("tests/run says it"));
    let unpacked = programs.parent().unwrap().join("tools/sshd/usr");
    let architecture = format!("lib/{}-linux-gnu", env::consts::ARCH);
    (unpacked.join("sbin/sshd"), unpacked.join(architecture))
}

/// Starts the server of https, and waits until it listens.
fn https(place: &Path) -> Child {
    let certificate = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
    let subject = ["-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    let mut openssl = Command::new("openssl");
    openssl.args(certificate).args(subject).args(["-keyout", "server.key", "-out", "server.crt"]);
    run(openssl.current_dir(place));
    let both = ["server.key", "server.crt"].map(|name| fs::read(place.join(name)).unwrap());
    fs::write(place.join("server.pem"), both.concat()).unwrap();
    let mut server = Command::new("/usr/bin/python3")
        .args(["-c", include_str!("https.py")])
        .args([place, &place.join("server.pem")])
        .arg("443")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    server
}

/// Waits until somebody greets whoever connects to a port.
fn await_port(port: u16, log: &Path) {
    let greets = || {
        let connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        connection.and_then(|mut stream| stream.read_exact(&mut [0; 4])).is_ok()
    };
    wait_for(&format!("a greeting on port {port} ({})", log.display()), greets);
}
