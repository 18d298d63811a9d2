//! What stays as it is in a writable workspace, and what of that is left open.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use st2_tools::launch::{
    report::Gap,
    spec::{Access, LaunchSpec, Protected},
};

use crate::{
    mounts::{READ, granted, report, repository, script, script_of, script_outside, text},
    session::Place,
};

const WRITE: Access = Access { write: true, ..READ };

#[test]
fn the_repository_takes_commits_and_no_hooks() {
    let place = Place::new();
    repository(&place);
    let commit = "echo 1 >>file && git add file && \
        git -c user.name=a -c user.email=a@b commit -qm 2 && git --no-pager log --format=%s";
    assert_eq!(script(&place, commit), "2\n1\nend\n");
    let attacks = [
        "echo 'touch /tmp/planted' >.git/hooks/pre-commit",
        "ln -s /bin/true .git/hooks/pre-push",
        "git config core.hooksPath evil",
        "echo '[core] fsmonitor=evil' >>.git/config",
        "cp .git/config new && mv -f new .git/config || { rm new && false; }",
        "chmod 777 .git/config",
        "mv -f .git/hooks .git/other",
        "mv -f .git/config .git/other",
        "rm -rf .git/hooks",
        "mv -f .git moved",
        "mkdir .git/hooks/inner",
    ];
    for attack in attacks {
        let refused = script(&place, &format!("{{ {attack}; }} 2>/dev/null && echo open"));
        assert_eq!(refused, "end\n", "{attack}");
    }
    assert_eq!(script_outside(&place, "git -c core.fsmonitor= status -s"), "end\n");
    for attack in attacks {
        let fresh = Place::new();
        repository(&fresh);
        let open = script_outside(&fresh, &format!("{{ {attack}; }} 2>/dev/null && echo open"));
        assert_eq!(open, "open\nend\n", "{attack} without the launcher");
    }
}

#[test]
fn missing_hooks_are_made_so_that_they_can_be_protected() {
    let place = Place::new();
    repository(&place);
    fs::remove_dir_all(place.workspace().join(".git/hooks")).unwrap();
    assert_eq!(script(&place, "mkdir -p .git/hooks/x 2>/dev/null && echo open"), "end\n");
    assert_eq!(fs::read_dir(place.workspace().join(".git/hooks")).unwrap().count(), 0);
    assert!(!report(&place, |spec| spec).gaps.contains(&Gap::GitHooks));
}

#[test]
fn what_cannot_be_protected_is_a_gap() {
    let place = Place::new();
    assert!(report(&place, |spec| spec).gaps.contains(&Gap::GitHooks), "no repository");
    repository(&place);
    assert!(!report(&place, |spec| spec).gaps.contains(&Gap::GitHooks));
    let (git, real) = (place.workspace().join(".git"), place.workspace().join("real"));
    fs::rename(&git, &real).unwrap();
    symlink("real", &git).unwrap();
    assert!(report(&place, |spec| spec).gaps.contains(&Gap::GitHooks), "a symlink");
    fs::remove_file(&git).unwrap();
    fs::write(&git, "gitdir: real\n").unwrap();
    assert!(report(&place, |spec| spec).gaps.contains(&Gap::GitHooks), "a file");
    // The file itself is protected: no repository takes its place.
    assert_eq!(script(&place, "{ rm -f .git || mv -f .git x; } 2>/dev/null && echo open"), "end\n");
}

/// The one that is listed: git takes configuration and hooks from where `commondir` says.
#[test]
fn code_that_the_workspace_runs_by_other_names_is_a_listed_gap() {
    let place = Place::new();
    repository(&place);
    assert!(report(&place, |spec| spec).gaps.contains(&Gap::WorkspaceCode));
    let plant = "cp -r .git evil && rm -rf evil/hooks && mkdir evil/hooks && \
        echo 'echo planted >&2; exit 1' >evil/hooks/pre-commit && chmod +x evil/hooks/pre-commit && \
        echo ../evil >.git/commondir && echo open";
    assert_eq!(script(&place, plant), "open\nend\n");
    let runs = "git -c user.name=a -c user.email=a@b commit --allow-empty -m 2 2>&1 | tail -n 1";
    assert_eq!(script_outside(&place, runs), "planted\nend\n");
}

/// A repository outside the workspace that the workspace is a worktree of.
fn worktree(place: &Place) -> PathBuf {
    let common = place.outside().join("group/main/.git");
    let made = script_outside(
        place,
        &format!(
            "mkdir -p {0} && git init -q {0}/main && cd {0}/main && git -c user.name=a -c user.email=a@b \
             commit -q --allow-empty -m 1 && git worktree add -q -f {1} -b work",
            text(place.outside().join("group")),
            text(place.workspace())
        ),
    );
    assert_eq!(made, "end\n");
    assert!(place.workspace().join(".git").is_file() && common.join("config").is_file());
    common
}

/// With this directory writable, and protected what decides what git runs there.
fn shared(spec: LaunchSpec, directory: &Path, common: &Path) -> LaunchSpec {
    let mut spec = granted(spec, directory, WRITE);
    let ours = "worktrees/workspace/commondir";
    for (path, directory) in [("hooks", true), ("config", false), (ours, false)] {
        let beneath = Some(common.to_owned());
        spec.confinement.root.protect.push(Protected { beneath, path: path.into(), directory });
    }
    spec
}

#[test]
fn a_shared_repository_takes_commits_and_no_hooks() {
    let place = Place::new();
    let common = worktree(&place);
    let git = |spec| shared(spec, &common, &common);
    let commit = "echo 1 >>file && git add file && \
        git -c user.name=a -c user.email=a@b commit -qm 2 && git --no-pager log --format=%s";
    assert_eq!(script_of(&place, git, commit), "2\n1\nend\n");
    let report = report(&place, git);
    assert!(!report.gaps.contains(&Gap::GitHooks) && report.gaps.contains(&Gap::OutsideCode));
    let expected = ["config", "hooks", "worktrees/workspace/commondir"].map(|it| common.join(it));
    let expected = expected.into_iter().chain([place.workspace().join(".git")]).map(text);
    assert_eq!(report.protect, expected.collect::<Vec<_>>());
}

/// On a repository C that worktrees share, and the directories that it is in.
const ATTACKS: [&str; 13] = [
    "echo 'touch planted' >$C/hooks/pre-commit",
    "mv -f $C/hooks $C/other",
    "echo '[core] fsmonitor=evil' >>$C/config",
    "git -C $C config core.hooksPath evil",
    "mv -f $C/config $C/other",
    "echo /evil >$C/worktrees/workspace/commondir",
    "mv -f $C/worktrees/workspace $C/worktrees/other",
    "mv -f $C/worktrees $C/other",
    "mv -f $C $MAIN/other",
    "mv -f $MAIN $GROUP/other",
    "mv -f $GROUP $GROUP-other",
    "echo 'gitdir: evil' >.git",
    "mv -f .git other",
];

/// The common directory granted itself, and beneath others that can be written, one in the other.
#[test]
fn a_shared_repository_is_kept_wherever_it_lies_among_what_is_written() {
    let fresh = || {
        let place = Place::new();
        let common = worktree(&place);
        (place, common)
    };
    let with = |attack: &str, common: &Path| {
        let names = "MAIN=${C%/.git}; GROUP=${MAIN%/main}";
        format!("C={}; {names}; {{ {attack}; }} 2>/dev/null && echo open", text(common))
    };
    for attack in ATTACKS {
        let (place, common) = fresh();
        let open = script_outside(&place, &with(attack, &common));
        assert_eq!(open, "open\nend\n", "{attack} without the launcher");
    }
    let (place, common) = fresh();
    let outer = |spec| shared(spec, &place.outside(), &common);
    let both = |spec| granted(outer(spec), &common, WRITE);
    let all: [&dyn Fn(LaunchSpec) -> LaunchSpec; 2] = [&outer, &both];
    for change in all {
        for attack in ATTACKS {
            let refused = script_of(&place, change, &with(attack, &common));
            assert_eq!(refused, "end\n", "{attack}");
        }
        let ordinary =
            "echo 1 >$C/new && mv $C/new $C/newer && mv $C/newer $GROUP && rm $GROUP/newer";
        assert_eq!(script_of(&place, change, &with(ordinary, &common)), "open\nend\n");
        assert!(!report(&place, change).gaps.contains(&Gap::GitHooks));
    }
}

#[test]
fn a_shared_repository_that_cannot_be_protected_is_a_gap() {
    let place = Place::new();
    let common = worktree(&place);
    let git = |spec| shared(spec, &common, &common);
    assert!(!report(&place, git).gaps.contains(&Gap::GitHooks));
    fs::rename(common.join("hooks"), common.join("real")).unwrap();
    symlink("real", common.join("hooks")).unwrap();
    let report = report(&place, git);
    assert!(report.gaps.contains(&Gap::GitHooks), "{report:?}");
    assert!(!report.protect.contains(&text(common.join("hooks"))), "{report:?}");
}
