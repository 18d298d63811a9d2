//! A symlink put in the place of the workspace while it is opened.

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

use super::{
    attempt::Attempt,
    judge::Verdict,
    scene::in_home,
    side::{Side, Stage},
};
use crate::support::{outcome, within};

/// How often the workspace is opened.
const TIMES: usize = 40;

/// A row for the table.
pub fn attempt() -> Attempt {
    Attempt::new("a symlink swapped for the workspace", |_| vec!["swap".to_owned()])
}

/// Tries it.
pub async fn try_it(stage: &Stage) -> Verdict {
    let bench = in_home("bench");
    let (place, target) =
        (bench.path().join("place"), PathBuf::from(stage.scene.directory("target")));
    fs::create_dir(&place).unwrap();
    let swapping = Swapping::start(&place, &target);
    let mark = target.join("mark");
    for _ in 0..TIMES {
        match stage.side {
            Side::Unconfined => enter(&place),
            Side::Tier(_) => open(stage, &place).await,
        }
    }
    drop(swapping);
    Verdict::seen(mark.exists(), Vec::new())
}

/// Looks at the directory, then enters it: what a launcher would do that goes by the path.
fn enter(place: &Path) {
    let script = "[ ! -L \"$0\" ] && cd \"$0\" && touch mark; true";
    assert!(Command::new("sh").args(["-c", script]).arg(place).status().unwrap().success());
}

/// Opens a session there, which may be refused.
async fn open(stage: &Stage, place: &Path) {
    let options = within(place).with("argv", ["touch", "mark"].map(str::to_owned).to_vec());
    if let Ok((session, _)) = stage.client.open("command", options).await {
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
