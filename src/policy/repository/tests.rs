use std::{fs, os::unix::fs::symlink, process::Command};

use nix::{
    sys::stat::Mode,
    unistd::{geteuid, mkfifo},
};

use super::*;
use crate::{
    launch::spec::{Access, Target},
    policy::{
        bed::{Bed, PROFILE, refusal, resolved},
        workspace,
    },
};

/// A bed with a repository `main`, its worktrees `tree` and `other`, and a repository `second`.
fn bed() -> Bed {
    let bed = Bed::new();
    let path = |name: &str| bed.path(name).to_string_lossy().into_owned();
    git(&bed, &["init", "-q", &path("main")]);
    git(&bed, &["init", "-q", &path("second")]);
    git(&bed, &["-C", &path("main"), "commit", "-q", "--allow-empty", "-m", "x"]);
    for tree in ["tree", "other"] {
        git(&bed, &["-C", &path("main"), "worktree", "add", "-q", &path(tree)]);
    }
    fs::create_dir(bed.path("home/.ssh")).unwrap();
    bed
}

fn git(bed: &Bed, arguments: &[&str]) {
    let status = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", bed.path("home"))
        .status()
        .unwrap();
    assert!(status.success(), "git {arguments:?}");
}

fn linked_at(bed: &Bed, workspace: &str, user: Uid) -> Result<Option<Linked>, String> {
    let off_limits = OffLimits::of(&bed.surroundings, &bed.search(), &[]);
    let workspace = workspace::open(&bed.path(workspace), &off_limits).unwrap();
    linked(&workspace, user, &off_limits).map_err(|error| bed.words(&error))
}

fn link(bed: &Bed, workspace: &str) -> Result<Option<Linked>, String> {
    linked_at(bed, workspace, geteuid())
}

#[test]
fn a_real_worktree_gets_its_common_directory() {
    let bed = bed();
    let linked = link(&bed, "tree").unwrap().unwrap();
    assert_eq!(linked.common, bed.path("main/.git"));
    let protected: Vec<String> = linked
        .protect
        .iter()
        .map(|it| {
            let beneath = it.beneath.as_deref().map_or("WORKSPACE".into(), Path::to_string_lossy);
            let slash = if it.directory { "/" } else { "" };
            bed.words(&format!("{beneath}: {}{slash}", it.path.display()))
        })
        .collect();
    insta::assert_snapshot!(protected.join("\n"), @r"
        WORKSPACE: .git
        BED/main/.git: hooks/
        BED/main/.git: modules/
        BED/main/.git: config
        BED/main/.git: worktrees/other/commondir
        BED/main/.git: worktrees/tree/commondir
        ");
}

#[test]
fn every_worktree_that_is_there_keeps_its_name() {
    let bed = bed();
    let admin = bed.path("main/.git/worktrees");
    let names = |bed: &Bed| {
        let names = link(bed, "tree").unwrap().unwrap().names;
        names.iter().map(|name| bed.words(&name.display().to_string())).collect::<Vec<_>>()
    };
    assert_eq!(names(&bed), ["BED/other/.git", "BED/tree/.git"]);
    fs::write(admin.join("other/gitdir"), "../../../../other/.git\n").unwrap();
    assert_eq!(names(&bed), ["BED/other/.git", "BED/tree/.git"]);
    let ssh = bed.path("home/.ssh");
    for bad in [ssh.display().to_string(), "/no/such/.git".into(), "/../.git".into(), "x".into()] {
        fs::write(admin.join("other/gitdir"), bad).unwrap();
        assert_eq!(names(&bed), ["BED/tree/.git"]);
    }
}

#[test]
fn links_may_be_relative() {
    let bed = bed();
    // As `git worktree add --relative-paths` writes them.
    bed.write("tree/.git", "gitdir: ../main/.git/worktrees/tree\n");
    bed.write("main/.git/worktrees/tree/gitdir", "../../../../tree/.git\n");
    assert_eq!(link(&bed, "tree").unwrap().unwrap().common, bed.path("main/.git"));
    bed.write("main/.git/worktrees/tree/gitdir", "../../../../other/.git\n");
    assert!(link(&bed, "tree").unwrap_err().contains("does not point back"));
}

#[test]
fn what_is_no_linked_worktree_gets_nothing() {
    let bed = bed();
    assert_eq!(link(&bed, "main"), Ok(None), "a repository");
    assert_eq!(link(&bed, "work"), Ok(None), "no repository");
    bed.write("work/.git", "gitdir: .real\n");
    fs::create_dir(bed.path("work/.real")).unwrap();
    assert_eq!(link(&bed, "work"), Ok(None), "all of it inside");
    fs::remove_file(bed.path("work/.git")).unwrap();
    bed.link(".real", "work/.git");
    assert_eq!(link(&bed, "work"), Ok(None), "by a symlink inside");
}

/// A repository's shape around a directory that is none, as a tool could forge it where it can
/// write.
fn forge(bed: &Bed, common: &str) {
    for directory in ["objects", "refs", "worktrees/x"] {
        fs::create_dir_all(bed.path(common).join(directory)).unwrap();
    }
    bed.write(&format!("{common}/HEAD"), "ref: refs/heads/x\n");
    bed.write(&format!("{common}/worktrees/x/commondir"), "../..\n");
    let back = bed.path("tree/.git").display().to_string();
    bed.write(&format!("{common}/worktrees/x/gitdir"), &back);
    bed.write(
        "tree/.git",
        &format!("gitdir: {}\n", bed.path(common).join("worktrees/x").display()),
    );
}

fn relink(bed: &Bed, git_file: &str) {
    bed.write("tree/.git", &git_file.replace("BED", &bed.root.to_string_lossy()));
}

#[test]
fn a_hostile_link_is_refused_by_what_does_not_fit() {
    type Attempt = (&'static str, fn(&Bed));
    let attempts: [Attempt; 21] = [
        ("keys", |bed| relink(bed, "gitdir: BED/home/.ssh\n")),
        ("keys, forged", |bed| forge(bed, "home/.ssh")),
        ("the home directory, forged", |bed| forge(bed, "home")),
        ("a repository", |bed| relink(bed, "gitdir: BED/second/.git\n")),
        ("another's", |bed| relink(bed, "gitdir: BED/main/.git/worktrees/other\n")),
        ("another's, around", |bed| relink(bed, "gitdir: ../other/../main/.git/worktrees/other\n")),
        ("the parent", |bed| relink(bed, "gitdir: ..\n")),
        ("nowhere", |bed| relink(bed, "gitdir: BED/main/.git/worktrees/gone\n")),
        ("a symlink on the way", |bed| {
            bed.link("main", "way");
            relink(bed, "gitdir: BED/way/.git/worktrees/tree\n");
        }),
        ("a symlink itself", |bed| {
            fs::remove_file(bed.path("tree/.git")).unwrap();
            bed.link(bed.path("main/.git/worktrees/tree"), "tree/.git");
        }),
        ("a pipe", |bed| {
            fs::remove_file(bed.path("tree/.git")).unwrap();
            mkfifo(&bed.path("tree/.git"), Mode::S_IRWXU).unwrap();
        }),
        ("huge", |bed| relink(bed, &format!("gitdir: /{}", "x".repeat(4088)))),
        ("NUL", |bed| relink(bed, "gitdir: BED/main/.git/worktrees/tree\0")),
        ("two lines", |bed| relink(bed, "gitdir: BED/main/.git/worktrees/tree\n\n/etc\n")),
        ("another word", |bed| relink(bed, "gitdir:BED/main/.git/worktrees/tree\n")),
        ("empty", |bed| relink(bed, "gitdir: \n")),
        ("commondir elsewhere", |bed| {
            let elsewhere = bed.path("second/.git").display().to_string();
            bed.write("main/.git/worktrees/tree/commondir", &elsewhere);
        }),
        ("gitdir a symlink", |bed| {
            let gitdir = bed.path("main/.git/worktrees/tree/gitdir");
            fs::rename(&gitdir, bed.path("gitdir")).unwrap();
            symlink(bed.path("gitdir"), gitdir).unwrap();
        }),
        ("no repository", |bed| {
            fs::rename(bed.path("main/.git/refs"), bed.path("main/.git/no-refs")).unwrap()
        }),
        ("objects elsewhere", |bed| {
            fs::rename(bed.path("main/.git/objects"), bed.path("objects")).unwrap();
            bed.link(bed.path("objects"), "main/.git/objects");
        }),
        ("moved", |bed| fs::rename(bed.path("tree"), bed.path("moved")).unwrap()),
    ];
    let words = attempts.map(|(name, attempt)| {
        let bed = bed();
        attempt(&bed);
        let workspace = if name == "moved" { "moved" } else { "tree" };
        let refused = link(&bed, workspace).map(|linked| linked.map(|linked| linked.common));
        format!("{name}: {}", refused.expect_err(name).replace(&"x".repeat(4088), "x…"))
    });
    insta::assert_snapshot!(words.join("\n"), @r#"
        keys: "BED/home/.ssh" is not REPOSITORY/worktrees/NAME, the git directory of a linked worktree
        keys, forged: "BED/home/.ssh" is refused: it is, holds or lies in a directory of keys or of what starts by itself
        the home directory, forged: "BED/home" is refused: it is the home directory, or holds it
        a repository: "BED/second/.git" is not REPOSITORY/worktrees/NAME, the git directory of a linked worktree
        another's: "BED/main/.git/worktrees/other" does not point back: its "gitdir" names "BED/other/.git", not this workspace (git worktree repair mends what was moved)
        another's, around: "BED/main/.git/worktrees/other" does not point back: its "gitdir" names "BED/other/.git", not this workspace (git worktree repair mends what was moved)
        the parent: "BED" is not REPOSITORY/worktrees/NAME, the git directory of a linked worktree
        nowhere: "BED/tree/.git" leads to "BED/main/.git/worktrees/gone", which cannot be opened without following symlinks: no such file or directory
        a symlink on the way: "BED/tree/.git" leads to "BED/way/.git/worktrees/tree", which cannot be opened without following symlinks: filesystem loop or indirection limit (e.g. symlink loop)
        a symlink itself: "BED/tree/.git" is a symlink, which leads out of the workspace
        a pipe: "BED/tree/.git" is not a regular file
        huge: "BED/tree/.git" is not one line with a path, of at most 4096 bytes
        NUL: "BED/tree/.git" is not one line with a path, of at most 4096 bytes
        two lines: "BED/tree/.git" is not one line with a path, of at most 4096 bytes
        another word: "BED/tree/.git" does not begin with "gitdir: " and a path
        empty: "BED/tree/.git" does not begin with "gitdir: " and a path
        commondir elsewhere: "BED/main/.git/worktrees/tree" is in "BED/main/.git", but its "commondir" names "BED/second/.git"
        gitdir a symlink: "BED/main/.git/worktrees/tree/gitdir" cannot be read: filesystem loop or indirection limit (e.g. symlink loop)
        no repository: "BED/main/.git" is not a repository: refs is not there, or not what git makes it
        objects elsewhere: "BED/main/.git" is not a repository: objects is not there, or not what git makes it
        moved: "BED/main/.git/worktrees/tree" does not point back: its "gitdir" names "BED/tree/.git", not this workspace (git worktree repair mends what was moved)
        "#);
}

#[test]
fn a_repository_around_its_worktree_is_not_granted() {
    let bed = bed();
    let bare = bed.path("bare");
    git(
        &bed,
        &["clone", "-q", "--bare", &bed.path("main").to_string_lossy(), &bare.to_string_lossy()],
    );
    git(&bed, &["-C", &bare.to_string_lossy(), "worktree", "add", "-q", "-b", "in", "in"]);
    assert_eq!(link(&bed, "bare/in").unwrap_err(), "\"BED/bare\" holds the workspace itself");
}

#[test]
fn another_users_files_count_for_nothing() {
    let bed = bed();
    let stranger = Uid::from_raw(geteuid().as_raw() + 1);
    assert_eq!(
        linked_at(&bed, "tree", stranger).unwrap_err(),
        "\"BED/tree/.git\" belongs to another user"
    );
    let off_limits = OffLimits::of(&bed.surroundings, &bed.search(), &[]);
    let opened =
        |path| Directory::opened(&workspace::open(&bed.path(path), &off_limits).unwrap()).unwrap();
    for directory in ["main/.git/worktrees/tree", "main/.git"] {
        assert!(opened(directory).check_owner(geteuid()).is_ok());
        let error = opened(directory).check_owner(stranger).unwrap_err();
        assert_eq!(bed.words(&error), format!("\"BED/{directory}\" belongs to another user"));
    }
}

#[test]
fn configurations_of_worktrees_are_protected_where_git_reads_them() {
    let bed = bed();
    let named = |bed: &Bed| {
        let protect = link(bed, "tree").unwrap().unwrap().protect;
        protect.iter().filter(|it| it.path.ends_with("config.worktree")).count()
    };
    assert_eq!(named(&bed), 0);
    let main = bed.path("main");
    git(&bed, &["-C", &main.to_string_lossy(), "config", "extensions.worktreeConfig", "true"]);
    assert_eq!(named(&bed), 3, "of the main worktree, and of both others");
    bed.write("main/.git/config", &"#".repeat(64 * 1024 + 1));
    assert_eq!(named(&bed), 3, "too long to tell");
}

#[test]
fn only_a_profile_that_says_so_grants_it_and_as_the_workspace() {
    let bed = bed();
    let grant = |profile: &str, text: &str| {
        bed.write(&format!("policy/profiles.d/{profile}.toml"), text);
        let tool = format!("title = \"t\"\ncommand = [\"true\"]\nprofile = \"{profile}\"");
        bed.tool("git", &tool);
        let resolved = resolved(&bed, "git", |request| request.workspace = Some(bed.path("tree")));
        let confinement = resolved.spec.confinement;
        let common = Target::Path(bed.path("main/.git"));
        let grant = confinement.grants.iter().find(|grant| grant.target == common);
        let protects = confinement.root.protect.iter().any(|it| it.beneath.is_some());
        assert_eq!(protects, grant.is_some());
        grant.map(|grant| grant.access)
    };
    let key = format!("git_common_dir = true\n{PROFILE}");
    let read_only = key
        .replace("read = [\"/proc\"]", "read = [\"/proc\", \"${WORKSPACE}\"]")
        .replace("write = [\"${WORKSPACE}\", ", "write = [");
    assert_eq!(grant("none", PROFILE), None);
    let write = Access { read: true, write: true, ..Access::default() };
    assert_eq!(grant("git", &key), Some(write));
    assert_eq!(grant("read", &read_only), Some(Access { read: true, ..Access::default() }));
    relink(&bed, "gitdir: BED/home/.ssh\n");
    assert_eq!(
        refusal(&bed, "git", |request| request.workspace = Some(bed.path("tree"))),
        "NotPermitted: git_common_dir: \"BED/home/.ssh\" is not REPOSITORY/worktrees/NAME, \
         the git directory of a linked worktree"
    );
}
