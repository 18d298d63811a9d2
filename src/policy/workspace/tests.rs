use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use caps::{CapSet, Capability};
use nix::{sys::stat::fstat, unistd::mkdir};

use super::*;
use crate::policy::bed::Bed;

fn open_in(bed: &Bed, path: impl AsRef<Path>) -> Result<Opened, WorkspaceError> {
    let path_directories = [bed.path("home/go/bin")];
    let off_limits = OffLimits::of(&bed.surroundings, &bed.search(), &path_directories);
    open(path.as_ref(), &off_limits)
}

fn refusal(bed: &Bed, path: impl AsRef<Path>) -> String {
    bed.words(&open_in(bed, path).unwrap_err())
}

/// Roots may read anything; a test thread without these capabilities may not.
fn become_ordinary() {
    for capability in [Capability::CAP_DAC_OVERRIDE, Capability::CAP_DAC_READ_SEARCH] {
        caps::drop(None, CapSet::Effective, capability).unwrap();
    }
}

#[test]
fn a_directory_is_opened_at_its_canonical_path() {
    let bed = Bed::new();
    let written = bed.root.join("./work/.//");
    let opened = open_in(&bed, written).unwrap();
    assert_eq!(opened.path, bed.path("work"));
    let (held, named) = (fstat(&opened.fd).unwrap(), fs::metadata(bed.path("work")).unwrap());
    assert_eq!((held.st_dev, held.st_ino), (named.dev(), named.ino()));
}

#[test]
fn each_rule_refuses_by_name() {
    let bed = Bed::new();
    bed.write("work/file", "");
    bed.link("../home", "work/out");
    bed.link("loop", "work/loop");
    fs::create_dir_all(bed.path("home/project")).unwrap();
    bed.link("home/project", "shortcut");
    assert_eq!(open_in(&bed, bed.path("shortcut")).unwrap().path, bed.path("home/project"));
    let words: Vec<String> = [
        "work/file",
        "work/file/x",
        "work/absent",
        "work/out",
        "work/out/project",
        "work/loop",
        "work/../work",
    ]
    .iter()
    .map(|path| refusal(&bed, bed.path(path)))
    .chain(["work", "", "/tmp/\0"].map(|path| refusal(&bed, path)))
    .chain([refusal(&bed, format!("/{}", "x".repeat(5000))).replace(&"x".repeat(5000), "x…")])
    .collect();
    insta::assert_snapshot!(words.join("\n"), @r#"
        workspace "BED/work/file" is not a directory
        workspace "BED/work/file/x" is not a directory
        workspace "BED/work/absent" cannot be opened: no such file or directory
        workspace "BED/work/out" leaves "BED/work" through the symlink "BED/work/out": name its target if that is meant
        workspace "BED/work/out/project" leaves "BED/work" through the symlink "BED/work/out": name its target if that is meant
        workspace "BED/work/loop" cannot be opened: filesystem loop or indirection limit (e.g. symlink loop)
        workspace "BED/work/../work" holds '..' or a NUL byte, or is longer than 4095 bytes
        workspace "work" is not an absolute path
        workspace "" is not an absolute path
        workspace "/tmp/\0" holds '..' or a NUL byte, or is longer than 4095 bytes
        workspace "/x…" holds '..' or a NUL byte, or is longer than 4095 bytes
        "#);
}

#[test]
fn a_directory_that_cannot_be_listed_or_entered_is_refused() {
    let bed = Bed::new();
    become_ordinary();
    for (mode, usable) in
        [(0o700, true), (0o500, true), (0o400, false), (0o100, false), (0o000, false)]
    {
        fs::set_permissions(bed.path("work"), Permissions::from_mode(mode)).unwrap();
        match open_in(&bed, bed.path("work")) {
            Ok(_) => assert!(usable, "{mode:o}"),
            Err(error) => {
                assert!(!usable, "{mode:o}");
                assert_eq!(
                    bed.words(&error),
                    "workspace \"BED/work\" cannot be listed and entered by this user"
                );
            }
        }
    }
    fs::set_permissions(bed.path("work"), Permissions::from_mode(0o700)).unwrap();
    fs::create_dir(bed.path("work/in")).unwrap();
    fs::set_permissions(bed.path("work"), Permissions::from_mode(0o000)).unwrap();
    assert_eq!(
        refusal(&bed, bed.path("work/in")),
        "workspace \"BED/work/in\" cannot be opened: permission denied"
    );
    fs::set_permissions(bed.path("work"), Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn places_of_the_system_the_user_and_the_broker_are_refused() {
    let bed = Bed::new();
    for directory in [
        "home/.ssh/keys",
        "home/go/src",
        "policy/more",
        "run/x",
        "tmp/session",
        "programs",
        "home/.config/nvim",
    ] {
        fs::create_dir_all(bed.path(directory)).unwrap();
    }
    let system =
        ["/", "/proc", "/proc/1", "/sys", "/dev", "/run", "/etc", "/usr", "/tmp", "/var", "/home"]
            .map(|path| refusal(&bed, path));
    let own = [
        "",
        "home",
        "home/.ssh",
        "home/.ssh/keys",
        "home/.config",
        "home/go",
        "policy",
        "policy/more",
        "run",
        "run/x",
        "tmp",
        "tmp/session",
        "programs",
    ]
    .map(|path| refusal(&bed, bed.path(path)));
    insta::assert_snapshot!([system.as_slice(), own.as_slice()].concat().join("\n"), @r#"
        workspace "/" is refused: it holds what belongs to many
        workspace "/proc" is refused: it is part of the system
        workspace "/proc/1" is refused: it is part of the system
        workspace "/sys" is refused: it is part of the system
        workspace "/dev" is refused: it is part of the system
        workspace "/run" is refused: it is part of the system
        workspace "/etc" is refused: it is part of the system
        workspace "/usr" is refused: it is part of the system
        workspace "/tmp" is refused: it holds what belongs to many
        workspace "/var" is refused: it holds what belongs to many
        workspace "/home" is refused: it holds what belongs to many
        workspace "BED" is refused: it is the home directory, or holds it
        workspace "BED/home" is refused: it is the home directory, or holds it
        workspace "BED/home/.ssh" is refused: it is, holds or lies in a directory of keys or of what starts by itself
        workspace "BED/home/.ssh/keys" is refused: it is, holds or lies in a directory of keys or of what starts by itself
        workspace "BED/home/.config" is refused: it is, holds or lies in a directory of keys or of what starts by itself
        workspace "BED/home/go" is refused: it is, holds or lies in a directory of PATH
        workspace "BED/policy" is refused: it is, holds or lies in a policy directory
        workspace "BED/policy/more" is refused: it is, holds or lies in a policy directory
        workspace "BED/run" is refused: it is, holds or lies in XDG_RUNTIME_DIR
        workspace "BED/run/x" is refused: it is, holds or lies in XDG_RUNTIME_DIR
        workspace "BED/tmp" is refused: it is, holds or lies in a directory of the broker's own
        workspace "BED/tmp/session" is refused: it is, holds or lies in a directory of the broker's own
        workspace "BED/programs" is refused: it holds the broker's own programs
        "#);
    for path in ["home/go/src", "home/.config/nvim", "work"] {
        assert_eq!(open_in(&bed, bed.path(path)).unwrap().path, bed.path(path));
    }
}

#[test]
fn what_is_not_there_yet_is_off_limits_too() {
    let mut bed = Bed::new();
    bed.surroundings.state_dirs.push(bed.path("work/later/state"));
    assert!(refusal(&bed, bed.path("work")).ends_with("a directory of the broker's own"));
}

#[test]
fn a_home_behind_a_symlink_is_still_home() {
    let mut bed = Bed::new();
    fs::create_dir(bed.path("elsewhere")).unwrap();
    bed.link("elsewhere", "alias");
    bed.surroundings.home = bed.path("alias");
    assert!(
        refusal(&bed, bed.path("elsewhere")).ends_with("it is the home directory, or holds it")
    );
    assert!(
        refusal(&bed, bed.path("home")).ends_with("it is the home directory, or holds it"),
        "the account's own"
    );
}

/// While another thread swaps the directory for a symlink to a secret one, what is opened is the
/// directory or nothing.
#[test]
fn a_symlink_swapped_in_while_it_is_opened_is_never_followed_out() {
    let bed = Bed::new();
    fs::create_dir_all(bed.path("work/a")).unwrap();
    fs::create_dir_all(bed.path("secret")).unwrap();
    bed.link("../secret", "work/evil");
    let secret = fs::metadata(bed.path("secret")).unwrap().ino();
    let done = AtomicBool::new(false);
    let (mut opened, mut refused) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                exchange(&bed.path("work/a"), &bed.path("work/evil"));
            }
        });
        let deadline = Instant::now() + Duration::from_secs(20);
        while (opened + refused < 2_000 || opened == 0 || refused == 0) && Instant::now() < deadline
        {
            match open_in(&bed, bed.path("work/a")) {
                Ok(workspace) => {
                    opened += 1;
                    assert_ne!(fstat(&workspace.fd).unwrap().st_ino, secret);
                }
                Err(
                    WorkspaceError::LeavesParent { .. }
                    | WorkspaceError::Changed(_)
                    | WorkspaceError::NotADirectory(_),
                ) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(opened > 0 && refused > 0, "{opened} opened, {refused} refused: nothing was swapped");
}

fn exchange(a: &Path, b: &Path) {
    let flags = nix::fcntl::RenameFlags::RENAME_EXCHANGE;
    nix::fcntl::renameat2(AT_FDCWD, a, AT_FDCWD, b, flags).unwrap();
}

#[test]
fn cwd_is_inside_or_refused() {
    let bed = Bed::new();
    fs::create_dir_all(bed.path("work/a/b")).unwrap();
    fs::create_dir_all(bed.path("workshop")).unwrap();
    bed.write("work/file", "");
    bed.link("a/b", "work/short");
    bed.link("../home", "work/out");
    bed.link("/", "work/root");
    bed.link("work", "named");
    let asked = bed.path("named");
    let workspace = open_in(&bed, &asked).unwrap();
    let cwd = |path: &Path| open_cwd(&workspace, &asked, path);

    for (path, expected) in [
        (".", "work"),
        ("", "work"),
        ("a", "work/a"),
        ("short", "work/a/b"),
        ("a/../a/b", "work/a/b"),
    ] {
        assert_eq!(cwd(Path::new(path)).unwrap().path, bed.path(expected), "{path}");
    }
    for path in ["work", "work/a", "named/a"] {
        assert!(cwd(&bed.path(path)).is_ok(), "{path}");
    }
    let words: Vec<String> =
        ["..", "a/../..", "out", "root", "a/../../work", "absent", "file", "a\0b"]
            .iter()
            .map(|path| bed.words(&cwd(Path::new(path)).unwrap_err()))
            .chain(
                ["home", "workshop", "work/../home"]
                    .map(|path| bed.words(&cwd(&bed.path(path)).unwrap_err())),
            )
            .collect();
    insta::assert_snapshot!(words.join("\n"), @r#"
        cwd ".." is not inside the workspace "BED/work"
        cwd "a/../.." is not inside the workspace "BED/work"
        cwd "out" is not inside the workspace "BED/work"
        cwd "root" is not inside the workspace "BED/work"
        cwd "a/../../work" is not inside the workspace "BED/work"
        cwd "absent" cannot be opened: no such file or directory
        cwd "file" cannot be opened: not a directory
        cwd "a\0b" is not inside the workspace "BED/work"
        cwd "BED/home" is not inside the workspace "BED/work"
        cwd "BED/workshop" is not inside the workspace "BED/work"
        cwd "BED/work/../home" is not inside the workspace "BED/work"
        "#);
}

#[test]
fn a_path_is_inside_as_the_kernel_follows_it() {
    let bed = Bed::new();
    fs::create_dir_all(bed.path("work/logs/deep")).unwrap();
    bed.write("work/logs/a.log", "");
    bed.write("home/secret", "");
    bed.link("logs/a.log", "work/inside");
    bed.link("../home/secret", "work/outside");
    bed.link("../home/absent", "work/dangling");
    bed.link(bed.path("work/logs"), "work/absolute");
    bed.link("/proc/self/root", "work/magic");
    let workspace = open_in(&bed, bed.path("work")).unwrap();
    let cwd = open_cwd(&workspace, &bed.path("work"), Path::new("logs")).unwrap();
    let holds = |path: &Path| workspace.holds(&cwd, &bed.path("work"), path);

    for path in
        ["a.log", "not-yet.log", "deep/not-yet/x", "../inside", "../logs/a.log", ".", "not-yet/x"]
    {
        assert!(holds(Path::new(path)), "{path}");
    }
    for path in [
        "../outside",
        "../dangling",
        "../absolute/a.log",
        "../..",
        "../../home/secret",
        "not-yet/../../x",
        "../magic/etc",
        "a\0b",
    ] {
        assert!(!holds(Path::new(path)), "{path}");
    }
    assert!(holds(&bed.path("work/logs/a.log")));
    for path in ["/etc/passwd", "/proc/self/cwd"] {
        assert!(!holds(Path::new(path)), "{path}");
    }
    assert!(!holds(&bed.path("home/secret")));
}

#[test]
fn a_descriptor_holds_the_directory_that_was_judged() {
    let bed = Bed::new();
    let opened = open_in(&bed, bed.path("work")).unwrap();
    fs::rename(bed.path("work"), bed.path("moved")).unwrap();
    mkdir(&bed.path("work"), Mode::S_IRWXU).unwrap();
    let (held, moved) = (fstat(&opened.fd).unwrap(), fs::metadata(bed.path("moved")).unwrap());
    assert_eq!(held.st_ino, moved.ino());
}
