//! `st2-tools explain`.

use super::{
    confinement,
    connect::Reach,
    error::CliError,
    human, json,
    open_args::OpenArgs,
    output::Output,
    render,
    sheet::{Section, Sheet},
    status::Status,
};
use crate::client::{Client, Dict};

/// Show what a tool would run and may touch, and which files say so, or why it is refused; opens
/// nothing
///
/// The exit status is 1 where it is refused.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The tool
    #[arg(value_name = "TOOL")]
    tool: String,

    #[command(flatten)]
    open: OpenArgs,
}

/// Who decided, and what would run.
const HEAD: [&str; 17] = [
    "title",
    "source",
    "profiles",
    "profile_sources",
    "settings",
    "command_source",
    "argv",
    "program",
    "workspace",
    "cwd",
    "environment",
    "io",
    "stdin",
    "io_fallback",
    "columns",
    "rows",
    "refusal",
];

/// Bounds and times, by the names of the policy.
const BOUNDS: [&str; 7] = [
    "grace_ms",
    "timeout_ms",
    "silence_timeout_ms",
    "stop_timeout_ms",
    "memory_max",
    "tasks_max",
    "ring_bytes",
];

/// Explains a tool.
pub(super) async fn explain(args: Args, reach: &Reach, output: Output) -> Result<Status, CliError> {
    let options = args.open.options()?;
    let explain = async |client: &Client| client.explain(&args.tool, &options).await;
    let explanation = reach.ask(explain, |source| CliError::Open { source }).await?;
    output.print(|| json::object(&explanation), || text(&args.tool, &explanation))?;
    let refused = explanation.text("refusal").is_some_and(|refusal| !refusal.is_empty());
    Ok(if refused { Status::FAILURE } else { Status::SUCCESS })
}

fn text(tool: &str, dict: &Dict) -> String {
    if dict.get("refusal").is_some() {
        return render::fields(dict, &["refusal", "message"]);
    }
    let mut bounds = Section::new("within");
    for key in BOUNDS {
        bounds = bounds.row(key, render::value(dict, key));
    }
    let mut others = Section::new("and");
    let shown = |key: &str| {
        HEAD.contains(&key) || BOUNDS.contains(&key) || confinement::KEYS.contains(&key)
    };
    for (key, _) in dict.iter().filter(|(key, _)| !shown(key)) {
        others = others.row(key, render::value(dict, key));
    }
    Sheet::default()
        .with(declaration(tool, dict))
        .with(command(dict))
        .with(confinement::grants(dict))
        .with(confinement::enforcement(dict))
        .with(bounds)
        .with(others)
        .text()
}

/// Which files decided.
fn declaration(tool: &str, dict: &Dict) -> Section {
    let title = match dict.text("title") {
        Some(title) => format!("{tool}: {title}"),
        None => tool.to_owned(),
    };
    // Of most tools the declaration itself.
    let command_source = dict
        .text("command_source")
        .filter(|file| Some(*file) != dict.text("source"))
        .unwrap_or_default();
    let (names, files) = (dict.texts("profiles"), dict.texts("profile_sources"));
    let widest = names.iter().map(|name| name.len()).max().unwrap_or(0);
    let profiles = names.iter().zip(files).map(|(name, file)| format!("{name:widest$}  {file}"));
    Section::new(title)
        .row("declared in", dict.text("source").unwrap_or_default())
        .row("command from", command_source)
        .lines("profiles", profiles.collect())
        .row("settings", dict.text("settings").unwrap_or_default())
}

/// What would run.
fn command(dict: &Dict) -> Section {
    let text = |key| dict.text(key).unwrap_or_default();
    let cwd = if text("cwd") == text("workspace") { "" } else { text("cwd") };
    let program = match (dict.text("program"), dict.texts("argv").first()) {
        (Some(""), _) => "not found: it would fail",
        (Some(program), Some(&first)) if program == first => "",
        (program, _) => program.unwrap_or_default(),
    };
    Section::new("runs")
        .lines("command", command_lines(&dict.texts("argv")))
        .row("program", program)
        .row("workspace", text("workspace"))
        .row("in", cwd)
        .row("environment", dict.texts("environment").join(" "))
        .row("terminal", carried(dict))
}

/// Its terminal, or what it has instead.
fn carried(dict: &Dict) -> String {
    let pipes = format!("pipes, stdin {}", dict.text("stdin").unwrap_or_default());
    if dict.text("io") == Some("pipe") {
        return format!("none: {pipes}");
    }
    let (Some(columns), Some(rows)) = (dict.number("columns"), dict.number("rows")) else {
        return String::new();
    };
    let falls_back = dict.flag("io_fallback").unwrap_or_default();
    let instead = if falls_back { ", or pipes where none can be had" } else { "" };
    format!("{columns} columns, {rows} rows{instead}")
}

/// The command as a shell reads it; of a script among its words, each line.
fn command_lines(words: &[&str]) -> Vec<String> {
    let mut lines = vec![human::command_summary(words)];
    for script in words.iter().filter(|word| word.contains('\n')) {
        let script: Vec<&str> = script.lines().filter(|line| !line.trim().is_empty()).collect();
        let depth = |line: &&str| line.len() - line.trim_start().len();
        let indent = script.iter().map(depth).min().unwrap_or(0);
        lines.extend(script.iter().map(|line| format!("  {}", &line[indent..])));
    }
    lines.retain(|line| !line.is_empty());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn it_reads_from_who_decides_to_what_is_bounded() {
        let dict = Dict::new()
            .with("title", "lazygit")
            .with("source", "/usr/share/st2-tools/tools.d/lazygit.toml")
            .with("profiles", list(&["git", "workspace"]))
            .with("profile_sources", list(&["/p/git.toml", "/p/workspace.toml"]))
            .with("settings", "")
            .with("argv", list(&["sh", "-c", "\n  if a\n    exec lazygit\n"]))
            .with("program", "/usr/bin/sh")
            .with("workspace", "/w")
            .with("cwd", "/w")
            .with("environment", list(&["HOME", "PATH"]))
            .with("columns", 80_u16)
            .with("rows", 24_u16)
            .with("read", list(&["/w"]))
            .with("write", list(&["/w"]))
            .with("network", "none")
            .with("tier", "seccomp")
            .with("landlock_abi", 7_u32)
            .with("gaps", list(&["disk-space"]))
            .with("grace_ms", 10_000_u64)
            .with("memory_max", 0_u64)
            .with("of_tomorrow", true);
        insta::assert_snapshot!(text("lazygit", &dict), @r"
        lazygit: lazygit
          declared in      /usr/share/st2-tools/tools.d/lazygit.toml
          profiles         git        /p/git.toml
                           workspace  /p/workspace.toml

        runs
          command          sh -c …
                             if a
                               exec lazygit
          program          /usr/bin/sh
          workspace        /w
          environment      HOME PATH
          terminal         80 columns, 24 rows

        may
          read, write      /w
          use the network  none

        confined by
          tier             seccomp, Landlock ABI 7
          gaps             disk-space  nothing bounds how much it writes

        within
          grace_ms         10s
          memory_max       none

        and
          of_tomorrow      yes
        ");
    }

    #[test]
    fn pipes_are_told_in_the_place_of_a_terminal() {
        let size = |columns: u16| Dict::new().with("columns", columns).with("rows", columns);
        let pipe = size(0).with("io", "pipe").with("stdin", "closed").with("io_fallback", false);
        let either = size(9).with("io", "pty").with("stdin", "open").with("io_fallback", true);
        assert_eq!(carried(&pipe), "none: pipes, stdin closed");
        assert_eq!(carried(&either), "9 columns, 9 rows, or pipes where none can be had");
        assert!(!text("x", &either).contains("and\n"), "nothing is told twice");
    }

    #[test]
    fn a_refusal_is_told_and_nothing_else() {
        let dict =
            Dict::new().with("refusal", "org.st2.Tools.Error.NotPermitted").with("message", "m");
        assert_eq!(text("x", &dict), "refusal  org.st2.Tools.Error.NotPermitted\nmessage  m\n");
    }
}
