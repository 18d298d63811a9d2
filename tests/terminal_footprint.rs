//! What a terminal costs the broker: descriptors, memory, processor time. Measured for the whole
//! program, and so one test at a time.
#![forbid(unsafe_code)]
// Beside tests too: an `unwrap` of a test is one of its assertions.
#![allow(clippy::unwrap_used)]

#[path = "terminal/tool.rs"]
mod tool;

use std::{
    fs::{read_dir, read_to_string},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use st2_tools::terminal::{Framing, Mode, Replay, RingPool, Terminal};
use tool::{PATIENCE, Tool, soon};

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn block_on<T>(happening: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(happening)
}

fn descriptors() -> usize {
    read_dir("/proc/self/fd").unwrap().count()
}

/// Resident memory in bytes.
fn resident() -> usize {
    let pages = read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// This thread and those of a runtime; those of other tests come and go.
fn threads() -> usize {
    let name = |task: &Path| read_to_string(task.join("comm")).unwrap_or_default();
    let own = name(Path::new("/proc/thread-self"));
    let tasks = read_dir("/proc/self/task").unwrap().flatten().map(|task| name(&task.path()));
    tasks.filter(|name| *name == own || name.starts_with("tokio-")).count()
}

#[test]
fn attaching_and_detaching_leaves_no_descriptor() {
    let _alone = alone();
    block_on(async {
        let before = descriptors();
        let mut tool = Tool::start("exec cat", Terminal::MIN_RING);
        let running = descriptors();
        for round in 0..500 {
            let mode = if round % 2 == 0 { Mode::Control } else { Mode::Observe };
            let stream = tool.terminal.attach("", mode, Framing::Raw(Replay::Retained)).unwrap();
            if round % 3 == 0 {
                tool.terminal.write(b"x").unwrap();
            }
            drop(stream);
            tool.attached(0).await;
        }
        assert_eq!(descriptors(), running);
        soon(tool.first(167)).await;
        tool.kill();
        tool.finished().await;
        assert_eq!(descriptors(), before, "an ended session keeps none");
        assert_eq!(tool.terminal.read(0, 999).unwrap().bytes.len(), 167);
    });
}

#[test]
fn dropping_a_running_session_leaves_no_descriptor() {
    let _alone = alone();
    block_on(async {
        let before = descriptors();
        for _ in 0..20 {
            let tool = Tool::start("exec cat", Terminal::MIN_RING);
            let _streams: Vec<_> = (0..4)
                .map(|_| {
                    tool.terminal.attach("", Mode::Control, Framing::Raw(Replay::Retained)).unwrap()
                })
                .collect();
            tool.terminal.write(b"x").unwrap();
            soon(tool.first(1)).await;
        }
        soon(async {
            while descriptors() != before {
                tokio::task::yield_now().await;
            }
        })
        .await;
    });
}

#[test]
fn a_flood_that_nobody_reads_stays_within_its_bounds() {
    let _alone = alone();
    block_on(async {
        let pool = RingPool::default();
        let mut tool =
            Tool::start_in("stty opost onlcr; yes | head -c 64M", Terminal::MAX_RING, &pool);
        let stalled: Vec<_> = (0..4)
            .map(|_| {
                tool.terminal.attach("", Mode::Observe, Framing::Raw(Replay::Retained)).unwrap()
            })
            .collect();
        let before = resident();
        let mut peak = 0;
        let terminal = tool.terminal.clone();
        let watch = async {
            let mut cursor = 0;
            loop {
                let chunk = terminal.read_wait(cursor, 1, PATIENCE).await.unwrap();
                peak = peak.max(resident().saturating_sub(before));
                assert!(pool.used() <= Terminal::MAX_RING);
                if chunk.eof {
                    break;
                }
                cursor = terminal.stats().bytes_out;
            }
        };
        tokio::join!(watch, tool.finished());
        let stats = tool.terminal.stats();
        assert_eq!(stats.bytes_out, 96 << 20, "each line got a carriage return");
        assert_eq!(stats.bytes_dropped, (96 << 20) - Terminal::MAX_RING as u64);
        let bound = Terminal::MAX_RING + 2 * Terminal::MAX_STREAM_LAG as usize + (2 << 20);
        assert!(peak < bound, "{peak} bytes more resident, {bound} allowed");
        tool.attached(0).await;
        assert_eq!(pool.backlog_used(), 0);
        drop((stalled, terminal, tool));
        soon(async {
            while pool.used() > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    });
}

#[test]
fn an_idle_session_costs_little_and_no_thread() {
    let _alone = alone();
    block_on(async {
        let warm = Tool::start("printf x; exec sleep 1000", Terminal::MAX_RING);
        soon(warm.first(1)).await;
        let (memory, running) = (resident(), threads());
        let mut idle = Vec::new();
        for _ in 0..64 {
            let tool = Tool::start("printf x; exec sleep 1000", Terminal::MAX_RING);
            soon(tool.first(1)).await;
            idle.push(tool);
        }
        let each = resident().saturating_sub(memory) / idle.len();
        assert!(each <= 64 << 10, "{each} bytes a session");
        assert_eq!(threads(), running);
    });
}

#[test]
fn a_session_without_output_uses_no_processor_time() {
    let _alone = alone();
    block_on(async {
        let tool = Tool::start("exec <&- >&- 2>&-; exec sleep 1000", Terminal::MIN_RING);
        let _observer =
            tool.terminal.attach("", Mode::Observe, Framing::Raw(Replay::Retained)).unwrap();
        let used = processor_time();
        let quiet = tool.terminal.read_wait(0, 1, Duration::from_millis(500)).await.unwrap();
        assert!(quiet.bytes.is_empty() && !quiet.eof);
        let used = processor_time() - used;
        assert!(used < Duration::from_millis(100), "{used:?} in half a second of nothing");
    });
}

/// Of this program, so far.
fn processor_time() -> Duration {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let (user, system) = (usage.user_time(), usage.system_time());
    let usec = (user.tv_sec() + system.tv_sec()) * 1_000_000 + user.tv_usec() + system.tv_usec();
    Duration::from_micros(u64::try_from(usec).unwrap())
}
