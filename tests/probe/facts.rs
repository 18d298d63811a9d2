//! What a program finds when it starts.

use std::{collections::BTreeMap, fs, os::fd::AsFd};

use nix::{
    sys::resource::{Resource, getrlimit},
    unistd::{getpgrp, getpid, getsid, tcgetpgrp},
};
use serde_json::{Value, json};

pub fn facts() -> Value {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("limits");
    json!({
        "argv": std::env::args_os().map(|a| a.as_encoded_bytes().to_vec()).collect::<Vec<_>>(),
        "env": std::env::vars().collect::<BTreeMap<_, _>>(),
        "cwd": std::env::current_dir().expect("cwd"),
        "pid": getpid().as_raw(),
        "sid": getsid(None).expect("sid").as_raw(),
        "pgid": getpgrp().as_raw(),
        "foreground": tcgetpgrp(std::io::stdin().as_fd()).map_or(-1, |pid| pid.as_raw()),
        "controlling_terminal": fs::File::open("/dev/tty").is_ok(),
        "size": size(),
        "descriptors": descriptors(),
        "status": status(),
        "umask": umask(),
        "nofile": [soft, hard],
        "oom_score_adj": fs::read_to_string("/proc/self/oom_score_adj").unwrap_or_default().trim(),
        "cgroup": fs::read_to_string("/proc/self/cgroup").unwrap_or_default(),
        "securebits": securebits(),
    })
}

/// Rows, then columns.
fn size() -> [u16; 2] {
    // SAFETY: all zeroes is a valid winsize.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: TIOCGWINSZ fills the structure that it is given.
    unsafe { libc::ioctl(0, libc::TIOCGWINSZ, &raw mut size) };
    [size.ws_row, size.ws_col]
}

/// Open descriptors and where they lead, without the one that lists them.
fn descriptors() -> BTreeMap<u32, String> {
    let name = |entry: fs::DirEntry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let target = fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned();
        Some((number, target))
    };
    let entries = fs::read_dir("/proc/self/fd").expect("/proc");
    let mut found: BTreeMap<u32, String> = entries.flatten().filter_map(name).collect();
    found.retain(|_, target| !target.ends_with("/fd"));
    found
}

/// Capabilities, signals and restrictions, as proc_pid_status(5) prints them.
fn status() -> BTreeMap<String, String> {
    let text = fs::read_to_string("/proc/self/status").expect("/proc");
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let wanted = |name: &str| {
        ["Cap", "Sig", "Shd", "NoNewPrivs", "Seccomp", "Uid"].iter().any(|w| name.starts_with(w))
    };
    lines
        .filter(|(name, _)| wanted(name))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

fn umask() -> u32 {
    let mask = nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    nix::sys::stat::umask(mask);
    mask.bits()
}

fn securebits() -> i32 {
    // SAFETY: PR_GET_SECUREBITS takes nothing and returns a number.
    unsafe { libc::prctl(libc::PR_GET_SECUREBITS, 0, 0, 0, 0) }
}
