//! The tests of what is shipped in `policy/`.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
};

use super::{
    bed::{Bed, refusal, resolved, strings},
    file::FileError,
    resolved::Resolved,
};
use crate::launch::spec::{Access, Network, Slot, Target};

/// Secrets that lie beside what is granted, and what other programs are run from.
const SECRETS: &[&str] = &[
    ".ssh/id_ed25519",
    ".gnupg/private-keys-v1.d/key",
    ".config/git/credentials",
    ".git-credentials",
    ".netrc",
    ".npmrc",
    ".cargo/credentials.toml",
    ".config/gh/hosts.yml",
    ".config/pip/pip.conf",
    ".aws/credentials",
];

/// Places in the home directory that shipped profiles grant.
const GRANTED: &[&str] = &[
    ".gitconfig",
    ".config/git/config",
    ".config/lazygit/config.yml",
    ".ssh/config",
    ".ssh/known_hosts",
    ".cargo/registry/x",
    ".cargo/git/x",
    ".cargo/bin/cargo",
    ".npm/x",
    ".cache/pip/x",
    ".cache/go-build/x",
    "go/pkg/mod/x",
    ".rustup/x",
    ".nvm/x",
    ".claude/x",
    ".claude.json",
    ".codex/x",
];

/// A bed with the shipped policy and a home directory in which everything is.
fn bed() -> Bed {
    let mut bed = Bed::new();
    bed.policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("policy");
    for path in SECRETS.iter().chain(GRANTED) {
        bed.write(&format!("home/{path}"), "");
    }
    bed
}

/// What a tool of these profiles alone gets.
fn with_profiles(bed: &mut Bed, profiles: &[&str]) -> Resolved {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("policy");
    let own = bed.path("policy");
    fs::create_dir_all(own.join("tools.d")).unwrap();
    for entry in fs::read_dir(shipped.join("profiles.d")).unwrap() {
        let file = entry.unwrap().path();
        fs::copy(&file, own.join("profiles.d").join(file.file_name().unwrap())).unwrap();
    }
    bed.policy = own;
    bed.tool("x", &format!("title = \"t\"\ncommand = [\"true\"]\nprofile = {profiles:?}"));
    resolved(bed, "x", |_| {})
}

fn profiles() -> Vec<String> {
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("policy/profiles.d"));
    let stems = files.unwrap().map(|file| file.unwrap().path().file_stem().unwrap().to_owned());
    stems.map(|stem| stem.into_string().unwrap()).collect()
}

/// The access that a resolved request has to a path.
fn access(resolved: &Resolved, path: &Path) -> Access {
    let mut access = Access::default();
    for grant in &resolved.spec.confinement.grants {
        let (Target::Path(place) | Target::Descriptor(_, place)) = &grant.target else { continue };
        if path.starts_with(place) {
            access.read |= grant.access.read;
            access.write |= grant.access.write;
            access.execute |= grant.access.execute;
        }
    }
    access
}

#[test]
fn it_is_whole() {
    let bed = bed();
    let catalogue = bed.catalogue();
    assert_eq!(catalogue.faults().collect::<Vec<_>>(), Vec::<&FileError>::new());
    let rows = catalogue.rows();
    let profiles: Vec<String> = rows
        .iter()
        .map(|row| {
            assert!(row.error.is_empty() && row.io[0] == "pty", "{row:?}");
            format!("{}: {}", row.name, row.profile)
        })
        .collect();
    insta::assert_snapshot!(profiles.join("\n"), @r"
        claude: claude: Claude Code in the workspace
        codex: codex: Codex in the workspace
        command: workspace, git-config: the workspace, programs of the system, no network; git's configuration
        gemini: gemini: Gemini CLI in the workspace
        git-add: git: the workspace and its repository
        lazygit: git, git-remote: the workspace and its repository; fetch and push
        log-tail: readonly: the workspace as it is, programs of the system, no network
        opencode: opencode: OpenCode in the workspace
        pi: pi: Pi in the workspace
        shell: git: the workspace and its repository
        ");
    let on_pipes = rows.iter().filter(|row| row.io == ["pty", "pipe"]).map(|row| &row.name[..]);
    assert_eq!(on_pipes.collect::<Vec<_>>(), ["command", "log-tail"]);
    let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap();
    assert_eq!((row("command").command.len(), row("command").arguments.as_str()), (0, "any"));
    assert_eq!(row("git-add").command, ["git", "add", "-p"]);
    assert_eq!(row("log-tail").arguments, "[-n NUMBER] 1..=8 × path inside the workspace");
    let agents: Vec<String> = rows
        .iter()
        .filter(|row| row.agent)
        .map(|row| format!("{} {}", row.name, row.prompt))
        .collect();
    let expected = [
        "claude argument",
        "codex argument",
        "gemini argument",
        "opencode argument",
        "pi terminal",
    ];
    assert_eq!(agents, expected);
}

#[test]
fn its_tools_resolve() {
    let bed = bed();
    for (tool, given, expected) in [
        ("shell", &[][..], "bash --noprofile --norc"),
        ("command", &["make", "-j2"], "make -j2"),
        ("git-add", &["a", "--", "-b"], "git add -p -- a -- -b"),
        ("git-add", &["--", "-b"], "git add -p -- -b"),
        ("log-tail", &["-n", "5", "a.log"], "tail -F -n 200 -n 5 -- a.log"),
    ] {
        let given = given.iter().map(OsString::from).collect();
        let resolved = resolved(&bed, tool, |request| request.argv = given);
        assert_eq!(resolved.spec.argv.join(OsStr::new(" ")), expected);
    }
    for (tool, given) in
        [("shell", "-c"), ("git-add", "-i"), ("lazygit", "-p"), ("log-tail", "/etc/passwd")]
    {
        let words = refusal(&bed, tool, |request| request.argv = strings([given]));
        assert!(words.starts_with("NotPermitted: argument"), "{tool}: {words}");
    }
    let network = |tool, argv: &[&str]| {
        let argv = argv.iter().map(OsString::from).collect();
        let resolved = resolved(&bed, tool, |request| request.argv = argv);
        resolved.spec.confinement.network
    };
    assert_eq!(network("lazygit", &[]), Network::TcpConnect(vec![22, 443]));
    for (tool, argv) in
        [("shell", &[][..]), ("command", &["x"]), ("git-add", &["x"]), ("log-tail", &["x"])]
    {
        assert_eq!(network(tool, argv), Network::None, "{tool}");
    }
}

#[test]
fn no_profile_reaches_a_secret_or_writes_where_programs_are() {
    let mut bed = bed();
    for profile in profiles() {
        let resolved = with_profiles(&mut bed, &[&profile]);
        for secret in SECRETS {
            let access = access(&resolved, &bed.path("home").join(secret));
            assert_eq!(access, Access::default(), "{profile} grants {secret}");
        }
        for place in [".cargo/bin", ".local/bin", "go/bin", ".rustup", ".nvm", ".bashrc", "x"] {
            let access = access(&resolved, &bed.path("home").join(place));
            assert!(!access.write, "{profile} writes {place}");
        }
    }
}

#[test]
fn each_profile_grants_what_it_is_for() {
    let mut bed = bed();
    let home = |path: &str| PathBuf::from("home").join(path);
    let mut writes = |profiles: &[&str]| {
        let resolved = with_profiles(&mut bed, profiles);
        let written = GRANTED.iter().map(|path| home(path));
        let written = written.filter(|path| access(&resolved, &bed.root.join(path)).write);
        let words: Vec<String> = written.map(|path| path.display().to_string()).collect();
        words.join(" ").replace("home/", "")
    };
    assert_eq!(writes(&["git", "git-remote"]), "");
    assert_eq!(
        writes(&["build"]),
        ".cargo/registry/x .cargo/git/x .npm/x .cache/pip/x .cache/go-build/x go/pkg/mod/x"
    );
    assert_eq!(writes(&["agent"]), "");
    assert_eq!(writes(&["claude"]), ".claude/x .claude.json");
    assert_eq!(writes(&["codex"]), ".codex/x");

    let looks = with_profiles(&mut bed, &["readonly"]);
    let in_workspace = access(&looks, &bed.path("work"));
    assert!(in_workspace.read && in_workspace.execute && !in_workspace.write);
    let is_workspace = |target: &Target| matches!(target, Target::Descriptor(Slot::Workspace, _));
    assert!(looks.spec.confinement.grants.iter().any(|grant| is_workspace(&grant.target)));
    let remote = with_profiles(&mut bed, &["git", "git-remote"]);
    for file in [".ssh/config", ".ssh/known_hosts", ".gitconfig", ".config/git/config"] {
        assert!(access(&remote, &bed.path("home").join(file)).read, "{file}");
    }
}

#[test]
fn the_agent_of_ssh_comes_with_git_remote_only() {
    let mut bed = bed();
    bed.surroundings.kernel.mounts = true;
    let _listener = UnixListener::bind(bed.path("run/agent")).unwrap();
    let agent = bed.path("run/agent");
    bed.surroundings.environment.insert("SSH_AUTH_SOCK".into(), agent.clone().into());
    for profile in profiles() {
        let resolved = with_profiles(&mut bed, &[&profile]);
        let sockets = resolved.spec.confinement.sockets;
        assert_eq!(sockets.iter().any(|it| it.path == agent), profile == "git-remote", "{profile}");
        assert_eq!(sockets.len(), usize::from(profile == "git-remote"), "{profile}");
    }
    bed.surroundings.kernel.mounts = false;
    assert_eq!(with_profiles(&mut bed, &["git-remote"]).spec.confinement.sockets, []);
}
