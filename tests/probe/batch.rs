//! Many attempts one after the other, each in a process of its own.

use std::{
    env, fs,
    io::{Read, Write},
    os::fd::AsFd,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::json;

/// How long an attempt may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads the attempts from a file, a list of lists of words in JSON, and prints a line of JSON for each: its number, what
/// it said, and what it complained of.
pub fn run(file: &str) {
    let text = fs::read(file).expect("the file of attempts");
    let attempts: Vec<Vec<String>> = serde_json::from_slice(&text).expect("attempts");
    for (number, words) in attempts.iter().enumerate() {
        let (said, why) = attempt(words);
        // Begins on a line of its own, wherever an attempt has left the cursor.
        println!("\n{}", json!({ "attempt": number, "said": said, "why": why }));
        std::io::stdout().flush().expect("a terminal");
    }
}

fn attempt(words: &[String]) -> (String, String) {
    let program = env::current_exe().expect("a program");
    let mut command = Command::new(program);
    command.arg("try").args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("one more process");
    let said = read_until_end(&mut child);
    let mut why = String::new();
    if said.is_none() {
        child.kill().expect("a child");
    } else if let Some(mut errors) = child.stderr.take() {
        let _ = errors.read_to_string(&mut why);
    }
    let status = child.wait().expect("a child");
    let said = said.map_or("timeout".to_owned(), |said| verdict(&said, status));
    (said, why.chars().take(200).collect())
}

/// The verdict of a child that lived to give one.
fn verdict(said: &str, status: ExitStatus) -> String {
    let line = said.lines().last().unwrap_or_default();
    if status.success() && !line.is_empty() { line.to_owned() } else { status.to_string() }
}

/// Reads what a child prints until nobody can print any more; nothing where that takes too long.
fn read_until_end(child: &mut Child) -> Option<String> {
    let deadline = Instant::now() + PATIENCE;
    let mut output = child.stdout.take().expect("a pipe");
    let mut text = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).expect("seconds");
        let mut ready = [PollFd::new(output.as_fd(), PollFlags::POLLIN)];
        if poll(&mut ready, timeout).expect("poll") == 0 {
            return None;
        }
        let mut piece = [0; 256];
        match output.read(&mut piece).expect("a pipe") {
            0 => return Some(String::from_utf8_lossy(&text).into_owned()),
            count => text.extend_from_slice(&piece[..count]),
        }
    }
}
