use std::{fs::File, os::fd::AsFd};

use super::*;
use crate::launch::{
    report::{Gap, Tier},
    spec::{Access, OwnRoot, Protected},
};

const READ: Access = Access { read: true, write: false, execute: false, device: false };
const WRITE: Access = Access { read: true, write: true, execute: false, device: false };
const DEVICE: Access = Access { read: true, write: true, execute: false, device: true };

fn grant(target: impl Into<PathBuf>, access: Access, optional: bool) -> Grant {
    Grant { target: Target::Path(target.into()), access, optional }
}

fn spec(grants: Vec<Grant>, network: Network) -> ConfinementSpec {
    ConfinementSpec {
        tier: Tier::Seccomp,
        grants,
        sockets: Vec::new(),
        network,
        root: OwnRoot::default(),
        no_user_namespace: false,
        landlock_abi_cap: None,
        allow_degraded: false,
    }
}

/// Prepares only: nothing of the test is restricted.
fn prepare(spec: &ConfinementSpec) -> Result<Report, ConfineError> {
    let null = File::open("/dev/null").unwrap();
    let directories = [OwnedFd::from(File::open("/tmp").unwrap())];
    let descriptors = Descriptors { directories: &directories, terminal: null.as_fd() };
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
    spec.allow_degraded = true;
    assert!(matches!(prepare(&spec), Err(ConfineError::NoPorts(3))));
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
    let descriptors = Descriptors { directories: &directories, terminal: null.as_fd() };
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
    assert!(gaps(&spec, 7, None).ends_with(&[Gap::NoUserNamespace]));
}
