use std::{
    fs::File,
    io,
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use super::*;
use crate::launch::{
    report::Gap,
    spec::{Access, Grant, Protected, SocketGrant, Target},
};

const READ: Access = Access { read: true, write: false, execute: false, device: false };
const WRITE: Access = Access { read: true, write: true, execute: false, device: false };
const DEVICE: Access = Access { read: true, write: true, execute: false, device: true };

fn grant(target: impl Into<PathBuf>, access: Access, optional: bool) -> Grant {
    Grant { target: Target::Path(target.into()), access, optional }
}

fn spec(grants: Vec<Grant>, network: Network) -> ConfinementSpec {
    ConfinementSpec { network, ..ConfinementSpec::new(Tier::Seccomp, grants) }
}

/// Prepares only: nothing of the test is restricted.
fn prepare(spec: &ConfinementSpec) -> Result<Report, ConfineError> {
    let null = File::open("/dev/null").unwrap();
    let directories = [OwnedFd::from(File::open("/tmp").unwrap())];
    let descriptors = Descriptors { received: &directories, terminal: Some(null.as_fd()) };
    Prepared::new(spec, &descriptors).map(|prepared| prepared.report)
}

#[test]
fn a_report_lists_what_was_granted_as_it_was_named() {
    let workspace = Target::Descriptor(Slot::Workspace, "/home/a/work".into());
    let grants = vec![
        grant("/usr", Access { execute: true, ..READ }, false),
        grant("/no/such/directory", READ, true),
        grant("/dev/null", DEVICE, false),
        Grant { target: workspace, access: WRITE, optional: false },
        Grant { target: Target::OwnTerminal, access: DEVICE, optional: false },
    ];
    let report = prepare(&spec(grants, Network::None)).unwrap();
    assert_eq!(report.read, ["/usr", "/home/a/work"]);
    assert_eq!(report.write, ["/home/a/work"]);
    assert_eq!(report.execute, ["/usr"]);
    assert_eq!(report.devices, ["/dev/null", TERMINAL]);
    assert_eq!(report.landlock_abi, landlock_abi().min(10));
    assert_eq!(
        report.gaps,
        [Gap::MetadataOutside, Gap::GitHooks, Gap::WorkspaceCode, Gap::DiskSpace]
    );
}

#[test]
fn a_missing_path_is_refused_by_name_unless_optional() {
    let error = prepare(&spec(vec![grant("/no/such", READ, false)], Network::None)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot open the granted path /no/such: No such file or directory (os error 2)"
    );
}

#[test]
fn a_descriptor_that_did_not_come_is_refused() {
    let target = Target::Descriptor(Slot::TmpDir, "/t".into());
    let grants = vec![Grant { target, access: WRITE, optional: true }];
    let error = prepare(&spec(grants, Network::None)).unwrap_err();
    assert!(matches!(error, ConfineError::NoDescriptor(Slot::TmpDir)), "{error}");
}

#[test]
fn an_old_landlock_is_refused_unless_allowed_and_then_its_gaps_are_listed() {
    let mut spec = spec(Vec::new(), Network::None);
    spec.landlock_abi_cap = Some(2);
    let error = prepare(&spec).unwrap_err();
    assert!(matches!(error, ConfineError::OldLandlock(2)), "{error}");

    spec.allow_degraded = true;
    let report = prepare(&spec).unwrap();
    assert_eq!((report.landlock_abi, report.signals.as_str()), (2, "open"));
    assert_eq!(
        report.gaps,
        [
            Gap::MetadataOutside,
            Gap::Audit,
            Gap::SignalsOutside,
            Gap::DeviceIoctl,
            Gap::TruncateOutside
        ]
    );

    spec.landlock_abi_cap = Some(0);
    assert!(matches!(prepare(&spec), Err(ConfineError::NoLandlock)));
}

#[test]
fn ports_need_an_abi_that_knows_them() {
    let mut spec = spec(Vec::new(), Network::TcpConnect(vec![443, 80]));
    let report = prepare(&spec).unwrap();
    assert_eq!(report.network, "tcp:443,80");
    assert!(report.gaps.contains(&Gap::UdpOpen));

    spec.landlock_abi_cap = Some(3);
    let error = prepare(&spec).unwrap_err();
    assert!(matches!(error, ConfineError::NoPorts(3)), "{error}");
    spec.allow_degraded = true;
    let report = prepare(&spec).unwrap();
    assert!(report.gaps.contains(&Gap::TcpOpen) && report.gaps.contains(&Gap::UdpOpen));
    spec.landlock_abi_cap = Some(4);
    assert!(!prepare(&spec).unwrap().gaps.contains(&Gap::TcpOpen));
}

fn socket(path: impl Into<PathBuf>, at: impl Into<PathBuf>) -> SocketGrant {
    SocketGrant { path: path.into(), at: at.into() }
}

#[test]
fn what_a_tier_cannot_give_is_refused_by_name() {
    let refused = |change: &dyn Fn(&mut ConfinementSpec)| {
        let mut spec = spec(Vec::new(), Network::None);
        change(&mut spec);
        prepare(&spec).unwrap_err().to_string()
    };
    assert_eq!(
        refused(&|spec| spec.network = Network::Loopback),
        "network loopback needs tier mounts, and this is tier seccomp"
    );
    assert_eq!(
        refused(&|spec| spec.sockets = vec![socket("/run/a", "/run/a")]),
        "the socket /run/a cannot be granted in tier seccomp"
    );
    assert_eq!(
        refused(&|spec| {
            spec.tier = Tier::Mounts;
            spec.landlock_abi_cap = Some(8);
            spec.grants = vec![grant("/run", READ, false)];
            spec.sockets = vec![socket("/run/a", "/run/a")];
        }),
        "the socket /run/a cannot be granted where the tool has no local sockets"
    );
    assert_eq!(
        refused(&|spec| {
            spec.tier = Tier::ResolveUnix;
            spec.landlock_abi_cap = Some(7);
        }),
        format!(
            "landlock ABI {} is below 9 and cannot confine sockets: no tier resolve-unix",
            landlock_abi().min(7)
        )
    );
}

#[test]
fn a_socket_is_shown_elsewhere_only_in_a_root_of_its_own() {
    let mut spec = spec(Vec::new(), Network::None);
    (spec.tier, spec.sockets) = (Tier::ResolveUnix, vec![socket("/run/a", "/run/b")]);
    let error = grantable(&spec, true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the socket /run/a cannot be shown at /run/b in tier resolve-unix"
    );
    spec.tier = Tier::Mounts;
    grantable(&spec, true).unwrap();
}

#[test]
fn sockets_and_files_are_not_granted_as_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().canonicalize().unwrap();
    let (file, listening) = (directory.join("file"), directory.join("socket"));
    std::fs::write(&file, "").unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(&listening).unwrap();
    let error = prepare(&spec(vec![grant(&listening, READ, true)], Network::None)).unwrap_err();
    assert!(matches!(&error, ConfineError::IsASocket(path) if *path == listening), "{error}");
    let error = open::open_socket(&socket(&file, &file)).unwrap_err();
    assert!(matches!(&error, ConfineError::NotASocket(path) if *path == file), "{error}");
    open::open_socket(&socket(&listening, &listening)).unwrap();

    let link = directory.join("link");
    std::os::unix::fs::symlink("socket", &link).unwrap();
    for error in [
        open::open_socket(&socket(&link, &link)).unwrap_err(),
        prepare(&spec(vec![grant(&link, READ, true)], Network::None)).unwrap_err(),
    ] {
        let is_loop = |source: &io::Error| source.raw_os_error() == Some(libc::ELOOP);
        assert!(matches!(&error, ConfineError::Open { source, .. } if is_loop(source)), "{error}");
    }
}

#[test]
fn gaps_name_what_else_is_written_and_who_serves() {
    let mut spec = spec(vec![grant("/dev/null", DEVICE, false)], Network::None);
    spec.tier = Tier::Mounts;
    let tmpdir = Target::Descriptor(Slot::TmpDir, "/t".into());
    spec.grants.push(Grant { target: tmpdir, access: WRITE, optional: false });
    assert_eq!(gaps(&spec, 7, None), [Gap::DiskSpace]);
    spec.grants.push(grant("/home/a/.cache/b", WRITE, false));
    spec.sockets = vec![socket("/run/a", "/run/a")];
    assert_eq!(gaps(&spec, 7, None), [Gap::OutsideCode, Gap::GrantedSockets, Gap::DiskSpace]);
}

#[test]
fn local_sockets_stay_beside_any_grant_where_landlock_judges_connections() {
    let mut spec = spec(vec![grant("/", READ, false)], Network::None);
    for (tier, abi, expected) in [
        (Tier::Mounts, ABI::V8, false),
        (Tier::Mounts, ABI::V9, true),
        (Tier::ResolveUnix, ABI::V9, true),
        (Tier::Seccomp, ABI::V9, false),
    ] {
        spec.tier = tier;
        assert_eq!(local_sockets(&spec, abi), expected, "{tier:?} {abi:?}");
    }
}

/// A repository elsewhere that the workspace is a worktree of, protected as by policy.
#[test]
fn a_shared_repository_is_no_gap_where_it_is_protected() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let (workspace, common) = (root.join("work"), root.join("common"));
    for directory in [&workspace, &common] {
        std::fs::create_dir(directory).unwrap();
    }
    std::fs::write(workspace.join(".git"), "gitdir: elsewhere\n").unwrap();
    let (mut spec, [directory]) = with_own_root(&workspace);
    let is_gap =
        |spec: &ConfinementSpec| gaps(spec, 7, Some(directory.as_fd())).contains(&Gap::GitHooks);
    assert!(is_gap(&spec), "the repository may be anywhere");
    let shared = |path: &str, directory| Protected {
        beneath: Some(common.clone()),
        path: path.into(),
        directory,
    };
    spec.root.protect.push(shared("hooks", true));
    assert!(is_gap(&spec), "not all is protected");
    spec.root.protect.push(shared("config", false));
    assert!(!is_gap(&spec), "not even granted");
    spec.grants.push(grant(&common, WRITE, false));
    assert!(!is_gap(&spec));
    std::os::unix::fs::symlink("elsewhere", common.join("hooks")).unwrap();
    assert!(is_gap(&spec), "a symlink can be replaced");
    std::fs::remove_file(common.join("hooks")).unwrap();
    spec.tier = Tier::Seccomp;
    assert!(is_gap(&spec));
    spec.grants.retain(|grant| matches!(grant.target, Target::Path(_)));
    assert!(is_gap(&spec), "though the workspace cannot be written");
}

/// The default protection, on a workspace.
fn with_own_root(directory: &Path) -> (ConfinementSpec, [OwnedFd; 1]) {
    let workspace = Target::Descriptor(Slot::Workspace, directory.to_owned());
    let grants = vec![Grant { target: workspace, access: WRITE, optional: false }];
    let protected =
        |path: &str, directory| Protected { beneath: None, path: path.into(), directory };
    let mut spec = spec(grants, Network::None);
    spec.tier = Tier::Mounts;
    spec.root.protect = vec![protected(".git/hooks", true), protected(".git/config", false)];
    (spec, [OwnedFd::from(File::open(directory).unwrap())])
}

#[test]
fn hooks_are_a_gap_unless_all_that_decides_about_them_can_be_protected() {
    let workspace = tempfile::tempdir().unwrap();
    let git = workspace.path().join(".git");
    let is_gap = |change: &dyn Fn(&mut ConfinementSpec)| {
        let (mut spec, [directory]) = with_own_root(workspace.path());
        change(&mut spec);
        gaps(&spec, 7, Some(directory.as_fd())).contains(&Gap::GitHooks)
    };
    assert!(is_gap(&|_| ()), "a repository that is not there can be made");
    std::fs::create_dir(&git).unwrap();
    assert!(!is_gap(&|_| ()), "what is missing in it is made");
    assert!(is_gap(&|spec| drop(spec.root.protect.pop())), "not all is protected");
    assert!(is_gap(&|spec| spec.tier = Tier::Seccomp));
    std::os::unix::fs::symlink("elsewhere", git.join("config")).unwrap();
    assert!(is_gap(&|_| ()), "a symlink can be replaced");
    std::fs::rename(&git, workspace.path().join("moved")).unwrap();
    std::os::unix::fs::symlink("moved", &git).unwrap();
    assert!(is_gap(&|_| ()), "so can one on the way");
}

#[test]
fn a_root_of_its_own_leaves_the_metadata_and_the_sockets_of_others() {
    let workspace = tempfile::tempdir().unwrap();
    std::fs::create_dir(workspace.path().join(".git")).unwrap();
    let (mut spec, directories) = with_own_root(workspace.path());
    let null = File::open("/dev/null").unwrap();
    let descriptors = Descriptors { received: &directories, terminal: Some(null.as_fd()) };
    let report = Prepared::new(&spec, &descriptors).unwrap().report;
    assert_eq!((report.tier, report.unix_sockets.as_str()), (Tier::Mounts, "session"));
    assert_eq!(report.gaps, [Gap::WorkspaceCode, Gap::DiskSpace]);

    spec.root.home = Some("/home/a".into());
    spec.no_user_namespace = true;
    for path in ["/", "/home", "/home/a", "/run", "/tmp"] {
        let mut spec = spec.clone();
        spec.grants.push(grant(path, READ, true));
        assert!(!local_sockets(&spec, ABI::V7), "{path} holds the sockets of others");
    }
    spec.grants.push(grant("/home/a/b", READ, true));
    assert!(local_sockets(&spec, ABI::V7));
    assert!(!local_sockets(&spec, ABI::V5), "they are not scoped");
    assert!(gaps(&spec, 7, None).contains(&Gap::NoUserNamespace));
    assert!(gaps(&spec, 7, None).is_sorted(), "as they are listed");
}
