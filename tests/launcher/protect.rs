//! What stays as it is in a writable workspace, and what of that is left open.

use std::{fs, os::unix::fs::symlink};

use st2_tools::launch::report::Gap;

use crate::{
    mounts::{report, repository, script, script_outside},
    session::Place,
};

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
