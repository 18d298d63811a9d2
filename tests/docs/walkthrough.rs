//! The README's commands, run as the user of a machine with a user manager and a bus.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    bash::Bash,
    markdown::{blocks, root, text},
};

/// Commands that are not run here, and what runs them instead.
const ELSEWHERE: [(&str, &str); 3] = [
    ("cargo build --locked", "tests/run builds the programs"),
    ("cargo build --release --locked", "likewise, in debug"),
    ("tests/run", "it runs this"),
];

/// How long the journal may take to have what was logged.
const JOURNAL: Duration = Duration::from_secs(10);

/// A command of a block, and the lines that it is shown to print.
struct Step {
    command: String,
    shown: Vec<String>,
}

/// A directory that is to the commands what the checkout is: with the programs under test where cargo would leave them.
fn checkout() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let link = |from: &Path, to: &str| symlink(from, directory.path().join(to)).unwrap();
    for name in ["packaging", "policy", "units", "README.md"] {
        link(&root().join(name), name);
    }
    fs::create_dir(directory.path().join("target")).unwrap();
    for profile in ["target/debug", "target/release"] {
        link(&programs(), profile);
    }
    directory
}

fn programs() -> PathBuf {
    let beside = || Path::new(env!("CARGO_BIN_EXE_st2-tools")).parent().unwrap().to_owned();
    env::var_os("ST2_TOOLS_BIN_DIR").map_or_else(beside, PathBuf::from)
}

fn steps(block: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => {
                steps.push(Step { command: command.to_owned(), shown: Vec::new() });
            }
            (None, Some(step)) => step.shown.push(line.to_owned()),
            (None, None) => panic!("{line:?} is shown before any command"),
        }
    }
    steps
}

/// Whether lines are what is shown: `…` is any text, and by itself any lines; white space may be of any width.
fn is_shown(shown: &[String], lines: &[String]) -> bool {
    match shown {
        [] => lines.is_empty(),
        [any, rest @ ..] if any == "…" => {
            (0..=lines.len()).any(|skipped| is_shown(rest, &lines[skipped..]))
        }
        [line, rest @ ..] => {
            lines.first().is_some_and(|first| is_line(line, first)) && is_shown(rest, &lines[1..])
        }
    }
}

fn is_line(shown: &str, line: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (shown, line) = (words(shown), words(line));
    let pieces: Vec<&str> = shown.split('…').map(str::trim).collect();
    let [first, between @ .., last] = &pieces[..] else { return shown == line };
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    for piece in between {
        let Some((_, after)) = rest.split_once(piece) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

/// What a person sees of it: without carriage returns and without what a terminal obeys.
fn visible(output: &str) -> Vec<String> {
    let mut text = String::new();
    let mut characters = output.chars();
    while let Some(c) = characters.next() {
        match c {
            '\u{1b}' => drop(characters.find(|c| c.is_ascii_alphabetic())),
            '\r' => {}
            c => text.push(c),
        }
    }
    text.lines().map(str::to_owned).collect()
}

/// Runs one step. What reads the journal may be early, and is run again.
fn perform(bash: &mut Bash, step: &Step) {
    let deadline = Instant::now() + JOURNAL;
    loop {
        let (status, output) = bash.run(&step.command);
        let lines = visible(&output);
        if status == 0 && is_shown(&step.shown, &lines) {
            return;
        }
        assert!(
            step.command.starts_with("journalctl") && Instant::now() < deadline,
            "$ {}\nstatus {status}, printed:\n{}\nshown:\n{}",
            step.command,
            lines.join("\n"),
            step.shown.join("\n"),
        );
    }
}

/// One test, because the steps are one story; the code's example needs the broker that it installs.
#[test]
fn every_command_of_the_readme_does_what_it_shows() {
    let readme = text("README.md");
    let checkout = checkout();
    let mut bash = Bash::start(checkout.path());
    let elsewhere = |command: &str| ELSEWHERE.iter().any(|(known, _)| *known == command);
    for command in blocks(&readme, "sh").iter().flat_map(|block| block.lines()) {
        let here = match command.split_once(" && ") {
            Some((first, rest)) if elsewhere(first) => rest,
            _ if elsewhere(command) => continue,
            _ => command,
        };
        let (status, output) = bash.run(here);
        assert_eq!(status, 0, "{here}: {output}");
        let lines = visible(&output);
        assert!(lines[0].starts_with("/dev/pts/"), "{output}");
        assert_eq!(lines[1], "note");
        assert_eq!(output.matches("Permission denied").count(), 2, "{output}");
    }
    for step in blocks(&readme, "console").iter().flat_map(|block| steps(block)) {
        if !elsewhere(&step.command) {
            perform(&mut bash, &step);
        }
    }
    for (command, _) in ELSEWHERE {
        assert!(readme.contains(command), "{command} is not in the README");
    }
    the_example_asks_a_shell();
    bash.run("systemctl --user stop st2-tools.service");
}

fn the_example_asks_a_shell() {
    let workspace = tempfile::Builder::new().prefix("workspace").tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let path = workspace.path().to_str().unwrap();
    let shown = runtime.block_on(crate::ask::ask_a_shell(path, "echo $((6 * 7))")).unwrap();
    assert!(shown.contains("\r42\r\n") || shown.contains("\n42\r\n"), "{shown:?}");
}

#[test]
fn what_is_shown_is_compared_as_it_is_meant() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let is = |shown: &str, printed: &str| is_shown(&lines(shown), &lines(printed));
    assert!(is("", "") && !is("", "x") && !is("x", ""));
    assert!(is("a …b… d", "a  xb y   d") && !is("a …b… d", "a x y d"));
    assert!(is("a…", "a") && is("…", "x\ny") && is("…\nz", "x\ny\nz") && !is("…\nz", "z\nx"));
    assert!(!is("ab…b", "ab"), "a piece is not used twice");
    assert_eq!(visible("\u{1b}[?2004ha\r\nb\u{1b}[m\n"), ["a", "b"]);
}
