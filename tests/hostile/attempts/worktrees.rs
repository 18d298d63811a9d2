//! From a linked worktree: the repository that it is of, and the other worktrees.

use std::{fs, path::PathBuf};

use crate::hostile::{
    attempt::{Attempt, words},
    from::From,
    scene::Scene,
    victims::TREASURE,
};

pub fn attempts() -> Vec<Attempt> {
    [programs(), others()]
        .into_iter()
        .flatten()
        .map(|attempt| attempt.from(From::Worktree))
        .collect()
}

fn common(scene: &Scene, name: &str) -> PathBuf {
    scene.linked.common().join(name)
}

/// Writes a file of the common directory.
fn written(name: &'static str, file: &'static str) -> Attempt {
    let before = |s: &Scene| fs::read_to_string(common(s, file)).unwrap_or_default();
    Attempt::new(name, move |s| words!["write", common(s, file).display()])
        .trace(move |s| before(s) == "x")
}

/// What decides which programs git runs.
fn programs() -> Vec<Attempt> {
    let hooks = vec![
        Attempt::new("worktree: hook of the repository", |s| {
            words!["write", common(s, "hooks/post-commit").display()]
        })
        // The hooks are moved away by another attempt.
        .trace(|s| {
            ["hooks", "hooks-of-before"].iter().any(|at| common(s, at).join("post-commit").exists())
        }),
        Attempt::new("worktree: program in the repository's configuration", |s| {
            words!["append", common(s, "config").display()]
        })
        .trace(|s| fs::read_to_string(common(s, "config")).unwrap().ends_with('x')),
        Attempt::new("worktree: hooks replaced whole", |s| {
            words!["rename", common(s, "hooks").display(), common(s, "hooks-of-before").display()]
        })
        .trace(|s| common(s, "hooks-of-before").exists()),
        written("worktree: configuration of a submodule", "modules/any/config"),
        written("worktree: its own common directory", "worktrees/tree/commondir"),
        written("worktree: common directory of another worktree", "worktrees/other/commondir"),
        Attempt::new("worktree: its link to the repository", |s| {
            words!["write", s.place(From::Worktree).join(".git").display()]
        })
        .trace(|s| fs::read_to_string(s.place(From::Worktree).join(".git")).unwrap() == "x"),
    ];
    hooks.into_iter().map(|attempt| attempt.gap(&["git-hooks"])).collect()
}

/// What is another worktree's, or leads it elsewhere.
fn others() -> Vec<Attempt> {
    vec![
        written("worktree: HEAD of another worktree", "worktrees/other/HEAD")
            .gap(&["outside-code"]),
        written("worktree: index of another worktree", "worktrees/other/index")
            .gap(&["outside-code"]),
        written("worktree: configuration of another worktree", "worktrees/other/config.worktree")
            .gap(&["outside-code"]),
        Attempt::new("worktree: remove the link of another worktree", |s| {
            words!["remove", common(s, "worktrees/other/gitdir").display()]
        })
        .trace(|s| !common(s, "worktrees/other/gitdir").exists())
        .gap(&["outside-code"]),
        Attempt::new("worktree: read a file of another worktree", |s| {
            words!["read-has", s.linked.other().join("secret").display(), TREASURE]
        }),
        Attempt::new("worktree: write into another worktree", |s| {
            words!["write", s.linked.other().join("by-tool").display()]
        })
        .trace(|s| s.linked.other().join("by-tool").exists()),
        Attempt::new("worktree: write into the repository's own files", |s| {
            words!["write", s.linked.repository.join("by-tool").display()]
        })
        .trace(|s| s.linked.repository.join("by-tool").exists()),
        written("worktree: its own configuration", "worktrees/tree/config.worktree")
            .gap(&["outside-code"]),
    ]
}
