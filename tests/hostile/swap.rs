//! A symlink put in the place of what is granted, while a session is opened.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use st2_tools::client::Dict;

use super::{
    attempt::Attempt,
    from::From,
    judge::Verdict,
    scene::{in_home, text},
    side::{Side, Stage},
};
use crate::support::{outcome, repository::Linked, within};

/// How often a session is opened in a tier.
const TIMES: usize = 40;

/// Rows for the table.
pub fn attempts() -> Vec<Attempt> {
    let names =
        ["a symlink swapped for the workspace", "a symlink swapped for a worktree's repository"];
    names.map(|name| Attempt::new(name, |_| vec!["swap".to_owned()])).into()
}

/// Makes them, in their order.
pub async fn try_all(stage: &Stage) -> Vec<Verdict> {
    vec![workspace(stage).await, repository(stage).await]
}

async fn workspace(stage: &Stage) -> Verdict {
    let bench = in_home("bench");
    let (place, target) =
        (bench.path().join("place"), PathBuf::from(stage.scene.directory("target")));
    fs::create_dir(&place).unwrap();
    let argv = ["touch", "mark"].map(str::to_owned);
    swapped(stage, &place, &target, || ("command", within(&place).with("argv", argv.to_vec())))
        .await
}

/// The target is a repository like the one that it stands in for.
async fn repository(stage: &Stage) -> Verdict {
    let linked = Linked::new();
    let (place, target) = (linked.common(), PathBuf::from(stage.scene.out("repository")));
    assert!(Command::new("cp").arg("-a").args([&place, &target]).status().unwrap().success());
    let argv = ["touch".to_owned(), text(&place.join("mark"))];
    let tool = From::Worktree.tool();
    swapped(stage, &place, &target, || (tool, within(&linked.path()).with("argv", argv.to_vec())))
        .await
}

/// Uses a place while it is swapped with a symlink to a target; looks for a mark there.
async fn swapped(
    stage: &Stage,
    place: &Path,
    target: &Path,
    request: impl Fn() -> (&'static str, Dict),
) -> Verdict {
    let swapping = Swapping::start(place, target);
    match stage.side {
        Side::Unconfined => enter(place, target),
        Side::Tier(_) => {
            for _ in 0..TIMES {
                open(stage, request()).await;
            }
        }
    }
    drop(swapping);
    Verdict::seen(target.join("mark").exists(), Vec::new())
}

/// Looks at the directory, then enters it, until that was once too late: what a launcher would do that goes by the path.
fn enter(place: &Path, target: &Path) {
    let script = "until [ -e \"$1/mark\" ]; do [ ! -L \"$0\" ] && cd \"$0\" && : >mark; done";
    let mut looking = Command::new("timeout");
    looking.args(["20", "sh", "-c", script]).args([place, target]);
    assert!(looking.status().unwrap().success(), "nobody was ever too late");
}

/// Opens a session there, which may be refused.
async fn open(stage: &Stage, (tool, options): (&str, Dict)) {
    if let Ok((session, _)) = stage.client.open(tool, options).await {
        outcome(&session).await;
    }
}

/// Swaps a directory and a symlink until it is dropped.
struct Swapping {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Swapping {
    fn start(place: &Path, target: &Path) -> Self {
        let link = place.with_file_name("link");
        symlink(target, &link).unwrap();
        let (place, done) = (place.to_owned(), Arc::new(AtomicBool::new(false)));
        let ended = Arc::clone(&done);
        let thread = thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let flags = RenameFlags::RENAME_EXCHANGE;
                renameat2(AT_FDCWD, &place, AT_FDCWD, &link, flags).unwrap();
                thread::yield_now();
            }
        });
        Self { done, thread: Some(thread) }
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
