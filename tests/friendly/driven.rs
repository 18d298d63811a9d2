//! Programs for a person at a terminal, driven by keys: what they draw, and what they leave.

use std::{
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    path::Path,
};

use st2_tools::config::MAX_TIER_VARIABLE;

use crate::support::{
    Broker, Start, outcome, screen::Screen, tiers, tools::policy_with, within, workspace,
};

/// One thing that a person does or sees.
enum Step {
    Shows(&'static str),
    Hides(&'static str),
    /// A line that is this and nothing else.
    Line(&'static str),
    Press(&'static str),
}

use Step::{Hides, Line, Press, Shows};

/// A program, and its use.
struct Driven {
    name: &'static str,
    tool: &'static str,
    argv: &'static [&'static str],
    steps: &'static [Step],
    /// A file that is there then, and what is in it.
    leaves: Option<(&'static str, &'static str)>,
}

/// The file that all find in their workspace.
const PAGE: &str =
    ".TH EXAMPLE 1\n.SH NAME\nexample \\- shows a page\n.SH DESCRIPTION\nThe very end.\n";

const ALL: [Driven; 6] = [
    Driven {
        name: "nano: edits a file",
        tool: "command",
        argv: &["nano", "--ignorercfiles", "letter"],
        steps: &[
            Shows("New File"),
            Press("written in nano"),
            Shows("written in nano"),
            Press("\x0f"),
            Shows("File Name to Write: letter"),
            Press("\r"),
            Shows("Wrote 1 line"),
            Press("\x18"),
        ],
        leaves: Some(("letter", "written in nano\n")),
    },
    Driven {
        name: "less: pages, searches, marks",
        tool: "command",
        argv: &["less", "page.1"],
        steps: &[Shows("EXAMPLE"), Press("/very\r"), Shows("The very end."), Press("q")],
        leaves: None,
    },
    Driven {
        name: "man: a page of the workspace, in its pager",
        tool: "command",
        argv: &["man", "./page.1"],
        steps: &[Shows("The very end."), Press("q")],
        leaves: None,
    },
    Driven {
        name: "htop: draws, opens a menu, quits",
        tool: "command",
        argv: &["htop"],
        steps: &[
            Shows("PID"),
            Press("h"),
            Shows("hide/show header meters"),
            Press(" "),
            Hides("hide/show header meters"),
            Press("q"),
        ],
        leaves: None,
    },
    Driven {
        name: "bash: job control",
        tool: "shell",
        argv: &[],
        steps: &[
            Shows("$"),
            Press("clear; echo be''gin; tee kept\r"),
            Shows("begin"),
            Press("typed\r"),
            Shows("typed\ntyped"),
            Press("\x1a"),
            Shows("[1]+  Stopped"),
            Press("clear; jobs; fg\r"),
            Line("tee kept"),
            Press("more\r"),
            Shows("more\nmore"),
            Press("\x04"),
            Press("clear; echo back''again\r"),
            Shows("backagain"),
            Press("exit 0\r"),
        ],
        leaves: Some(("kept", "typed\nmore\n")),
    },
    Driven {
        name: "tmux: splits its window",
        tool: "tmux",
        argv: &[],
        steps: &[
            Shows("$"),
            Press("echo fir''st\r"),
            Shows("first"),
            Press("\x02\""),
            Shows("────"),
            Press("echo sec''ond; tty >kept\r"),
            Shows("second"),
            Press("exit\r"),
            Hides("────"),
            Press("exit\r"),
        ],
        leaves: None,
    },
];

/// The tiers in which a program does not even begin: only in a root of its own has a session terminals of its own.
const BROKEN: [(&str, &str); 2] = [("tmux", "resolve-unix"), ("tmux", "seccomp")];

/// Keys that come fast are no text that is pasted.
const TMUX: &str = "title = 'tmux'\n\
    command = ['tmux', '-f', '/dev/null', '-S', '${TMPDIR}/socket', 'new', 'sh', ';', \
    'set', '-g', 'assume-paste-time', '0']\n\
    environment = { PS1 = '$ ' }\n[grants]\ndevices = ['/dev/ptmx']\n";

async fn drive(broker: &Broker, tier: &str, driven: &Driven, place: &Path) {
    let client = broker.client().await;
    fs::write(place.join("page.1"), PAGE).unwrap();
    let argv: Vec<String> = driven.argv.iter().map(|word| (*word).to_owned()).collect();
    let options = if argv.is_empty() { within(place) } else { within(place).with("argv", argv) };
    let (session, _) = client.open(driven.tool, options).await.unwrap();
    assert_eq!(session.confinement().await.unwrap().text("tier"), Some(tier));
    let mut screen = Screen::attach(&session).await;
    for step in driven.steps {
        match step {
            Shows(text) => drop(screen.shows(text).await),
            Hides(text) => drop(screen.hides(text).await),
            Line(text) => drop(screen.line(text).await),
            Press(keys) => screen.press(keys).await,
        }
    }
    assert_eq!(outcome(&session).await.signed("code"), Some(0), "{tier}: {}", driven.name);
    if let Some((file, text)) = driven.leaves {
        assert_eq!(fs::read_to_string(place.join(file)).unwrap(), text, "{tier}: {}", driven.name);
    }
}

#[tokio::test]
async fn programs_at_a_terminal_work_in_every_tier() {
    let policy = policy_with(&[("tmux", TMUX)]);
    let mut table = String::from("\n");
    for tier in tiers().await {
        let start = Start::default().policy(policy.path()).env(MAX_TIER_VARIABLE, &tier);
        let broker = start.unit().await;
        for driven in &ALL {
            if BROKEN.contains(&(driven.tool, tier.as_str())) {
                continue;
            }
            drive(&broker, &tier, driven, workspace().path()).await;
            let _ = writeln!(table, "{tier:<12} {:<14} {}", "works", driven.name);
        }
    }
    io::stderr().write_all(table.as_bytes()).unwrap();
}
