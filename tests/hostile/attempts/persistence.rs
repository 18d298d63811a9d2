//! What would run later, outside, or would be believed: planted where programs of the user look.

use std::{fs, path::Path};

use crate::hostile::{
    attempt::{Attempt, words},
    from::From,
};

pub fn attempts() -> Vec<Attempt> {
    let mut attempts = vec![
        planted("shell start-up file", "~/", "profile-*"),
        planted("key that may log in", "~/.ssh", "authorized_keys_*"),
        planted("unit of the user manager", "~/.config/systemd/user", "by-tool-*.service"),
        planted(
            "unit in the runtime directory",
            "$XDG_RUNTIME_DIR/systemd/user",
            "by-tool-*.service",
        ),
        planted("program of the desktop's start", "~/.config/autostart", "by-tool-*.desktop"),
        planted("service of the bus", "~/.local/share/dbus-1/services", "by.tool-*.service"),
        planted("tool of the broker's policy", "~/.config/st2-tools/tools.d", "by-tool-*.toml"),
        planted("program of PATH", "~/.local/bin", "by-tool-*"),
        planted("message in the parent's store", "~/.local/state/st2/messages", "*.json"),
        planted("entry in the parent's catalogue", "~/.local/state/st2/catalog", "*.json"),
        planted("file in /tmp", "/tmp", "by-tool-*"),
        planted("file in /var/tmp", "/var/tmp", "by-tool-*"),
        planted("file in /dev/shm", "/dev/shm", "by-tool-*"),
        planted("file in the runtime directory", "$XDG_RUNTIME_DIR", "by-tool-*"),
        Attempt::new("append to a file granted for reading", |s| {
            words!["append", s.plant_treasure("~/.config/git", "ignore")]
        })
        .trace(|s| s.is_planted("~/.config/git", "ignore")),
        Attempt::new("read the parent's messages", |s| {
            let message = s.plant_treasure("~/.local/state/st2/inbox", "*.json");
            words!["read-has", message, "treasure"]
        }),
    ];
    attempts.extend(git().into_iter().map(|attempt| attempt.gap(&["git-hooks"])));
    attempts
        .extend(later().into_iter().map(|attempt| attempt.gap(&["git-hooks", "workspace-code"])));
    attempts
}

fn planted(name: &'static str, directory: &'static str, file: &'static str) -> Attempt {
    Attempt::new(name, move |s| words!["write", s.plant(directory, file)])
        .trace(move |s| s.is_planted(directory, file))
}

/// What git runs when the user next calls it in the workspace.
fn git() -> Vec<Attempt> {
    vec![
        Attempt::new("hook of git", |s| words!["write", s.inside(".git/hooks/pre-commit")])
            .trace(|s| Path::new(&s.inside(".git/hooks/pre-commit")).exists()),
        Attempt::new("program in git's configuration", |s| {
            words!["append", s.inside(".git/config")]
        })
        .trace(|s| fs::read_to_string(s.inside(".git/config")).unwrap().ends_with('x')),
        Attempt::new("hooks of git replaced whole", |s| {
            let git = s.replaced().join(".git");
            words!["rename", git.join("hooks").display(), git.join("hooks-of-before").display()]
        })
        .trace(|s| {
            ["", "-of-before"]
                .iter()
                .any(|rest| s.replaced().join(format!(".git{rest}/hooks-of-before")).exists())
        })
        .from(From::Replaced),
        Attempt::new("repository replaced whole", |s| {
            words!["replace-repository", s.replaced().display()]
        })
        .trace(|s| s.replaced().join(".git-of-before").exists())
        .from(From::Replaced),
    ]
}

/// What other programs of the user run in a workspace, or git where it finds a repository that was none.
fn later() -> Vec<Attempt> {
    vec![
        Attempt::new("repository where there was none", |s| {
            words!["plant-repository", s.plain().display()]
        })
        .trace(|s| s.plain().join(".git/config").exists())
        .from(From::Plain),
        Attempt::new("repository within the repository", |s| {
            fs::create_dir(s.inside("nested")).unwrap();
            words!["plant-repository", s.inside("nested")]
        })
        .trace(|s| Path::new(&s.inside("nested/.git/config")).exists()),
        Attempt::new("start-up file of the workspace (.envrc)", |s| {
            words!["write", s.inside(".envrc")]
        })
        .trace(|s| Path::new(&s.inside(".envrc")).exists()),
    ]
}
