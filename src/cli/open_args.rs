//! The options that `run`, `open` and `explain` share: those of `Open` on the bus.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, time::Duration};

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};

use super::{
    duration::{duration, size},
    error::CliError,
};
use crate::{
    agents::identity::{self, Identity},
    client::{Io, Lease, OpenOptions, Stdin},
};

/// What to open, where, and within which bounds.
#[derive(Debug, Args)]
pub(super) struct OpenArgs {
    /// Directory that the tool may change [default: that of --agent in its catalogue, else the current directory]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Where the tool starts: a directory inside the workspace, relative to it [default: the workspace]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Set an environment variable that the tool declares as passable; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,

    /// How input and output are carried: by a terminal, or by pipes, standard output and error apart [default: pty]
    #[arg(long, value_name = "IO", value_parser = io())]
    io: Option<Io>,

    /// What a tool on pipes reads: nothing, or what is written [default: closed; of `run`: open]
    #[arg(long, value_name = "STDIN", value_parser = stdin())]
    stdin: Option<Stdin>,

    /// Use pipes where no terminal can be had
    #[arg(long)]
    io_fallback: bool,

    /// How long it outlives its owner [default: the tool's; 0 is not at all]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    grace: Option<Duration>,

    /// End it after so long [default: the tool's; 0 is never]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,

    /// End it after so long without output [default: the tool's; 0 is never]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    silence_timeout: Option<Duration>,

    /// Output that is kept for `read`, 4K to 4M [default: 256K; of `run`: 1M, on pipes 4M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    ring: Option<u64>,

    /// Narrow the tool's limit on memory
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory_max: Option<u64>,

    /// Narrow the tool's limit on processes and threads
    #[arg(long, value_name = "N")]
    tasks_max: Option<u64>,

    /// Attribution, such as agent=NAME; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    label: Vec<(String, String)>,

    /// Attribute it to an identity of Agent Spec: sets the labels host and agent
    #[arg(long, value_name = "HOST.IDENTITY")]
    agent: Option<Identity>,

    /// What an agent is told to begin with, where its declaration takes that as an argument
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,

    /// End it when this unit of the user manager stops
    #[arg(long, value_name = "UNIT")]
    bind_unit: Option<String>,

    /// Nobody but the owner may observe it
    #[arg(long)]
    private: bool,

    /// Arguments of the tool; for `command`, the command and its arguments
    #[arg(value_name = "ARGV", trailing_var_arg = true, allow_hyphen_values = true)]
    argv: Vec<OsString>,
}

impl OpenArgs {
    /// The tool that is meant: the one named, else `command` where there is an argv, else `shell`.
    pub(super) fn tool(&self, named: Option<&str>) -> String {
        match named {
            Some(tool) => tool.to_owned(),
            None if self.argv.is_empty() => "shell".into(),
            None => "command".into(),
        }
    }

    /// The options as the client takes them.
    pub(super) fn options(self) -> Result<OpenOptions, CliError> {
        let labels = labels(self.label, self.agent.as_ref())?;
        let workspace = match self.workspace {
            Some(workspace) => workspace,
            None => declared(self.agent.as_ref())?.unwrap_or_else(|| PathBuf::from(".")),
        };
        let workspace = absolute(workspace)?;
        let cwd = self.cwd.map(|cwd| workspace.join(cwd)).map(text).transpose()?;
        Ok(OpenOptions {
            argv: self.argv,
            prompt: self.prompt,
            workspace: Some(text(workspace)?),
            cwd,
            env: self.env.into_iter().collect::<BTreeMap<_, _>>(),
            io: self.io,
            stdin: self.stdin,
            io_fallback: self.io_fallback,
            size: None,
            term: None,
            lease: Lease::Caller,
            grace: self.grace,
            timeout: self.timeout,
            silence_timeout: self.silence_timeout,
            ring_bytes: self.ring,
            memory_max: self.memory_max,
            tasks_max: self.tasks_max,
            labels,
            bind_unit: self.bind_unit,
            private: self.private,
            reuse: false,
        })
    }
}

fn io() -> impl TypedValueParser<Value = Io> {
    let words = PossibleValuesParser::new([Io::Pty, Io::Pipe].map(Io::as_str));
    words.map(|word| if word == Io::Pipe.as_str() { Io::Pipe } else { Io::Pty })
}

fn stdin() -> impl TypedValueParser<Value = Stdin> {
    let words = PossibleValuesParser::new([Stdin::Closed, Stdin::Open].map(Stdin::as_str));
    words.map(|word| if word == Stdin::Open.as_str() { Stdin::Open } else { Stdin::Closed })
}

/// The workspace that an agent's catalogue declares, where there is a catalogue.
pub(super) fn declared(agent: Option<&Identity>) -> Result<Option<PathBuf>, CliError> {
    let Some(agent) = agent else { return Ok(None) };
    let catalog = identity::catalog()?;
    Ok(catalog.map(|catalog| identity::workspace(&catalog, agent)).transpose()?)
}

/// The labels that are given, with those of an identity.
pub(super) fn labels(
    given: Vec<(String, String)>,
    agent: Option<&Identity>,
) -> Result<BTreeMap<String, String>, CliError> {
    let mut labels: BTreeMap<_, _> = given.into_iter().collect();
    let Some(Identity { host, name }) = agent else { return Ok(labels) };
    for (label, value) in [("host", host), ("agent", name)] {
        let before = labels.insert(label.to_owned(), value.clone());
        if before.is_some_and(|before| before != *value) {
            return Err(CliError::AgentLabel { label });
        }
    }
    Ok(labels)
}

/// Symbolic links are left to the broker, which judges them. Without this, `.` would stay at the end.
fn absolute(path: PathBuf) -> Result<PathBuf, CliError> {
    match std::path::absolute(&path) {
        Ok(absolute) => Ok(absolute.components().collect()),
        Err(source) => Err(CliError::Path { path, source }),
    }
}

fn text(path: PathBuf) -> Result<String, CliError> {
    path.into_os_string()
        .into_string()
        .map_err(|path| CliError::PathNotUtf8 { path: PathBuf::from(path) })
}

/// A text without `=`, or with nothing before it.
#[derive(Debug, thiserror::Error)]
#[error("expected NAME=VALUE")]
pub(super) struct PairError;

/// Reads `NAME=VALUE`.
pub(super) fn pair(text: &str) -> Result<(String, String), PairError> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(PairError),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: OpenArgs,
    }

    fn parse(words: &[&str]) -> OpenArgs {
        Line::try_parse_from(["x"].iter().chain(words)).unwrap().args
    }

    #[test]
    fn a_command_without_a_tool_is_the_tool_command() {
        assert_eq!(parse(&[]).tool(None), "shell");
        assert_eq!(parse(&["ls"]).tool(None), "command");
        assert_eq!(parse(&["ls"]).tool(Some("lazygit")), "lazygit");
    }

    #[test]
    fn everything_after_the_first_argument_is_the_tool_s() {
        let options = parse(&["--private", "ls", "--env", "--", "-l"]).options().unwrap();
        assert_eq!(options.argv, ["ls", "--env", "--", "-l"]);
        let options = parse(&["--", "--private"]).options().unwrap();
        assert_eq!((options.argv, options.private), (vec!["--private".into()], false));
    }

    #[test]
    fn directories_are_made_absolute_and_cwd_is_inside_the_workspace() {
        let options = parse(&["--workspace", "/w/", "--cwd", "src"]).options().unwrap();
        assert_eq!(options.workspace.as_deref(), Some("/w"));
        assert_eq!(options.cwd.as_deref(), Some("/w/src"));
        let here = std::env::current_dir().unwrap();
        assert_eq!(parse(&[]).options().unwrap().workspace.as_deref(), here.to_str());
    }

    #[test]
    fn an_agent_sets_its_labels_and_no_label_says_otherwise() {
        let here = ["--workspace", "/w", "--agent", "demo.planner"];
        let options = parse(&here).options().unwrap();
        let expected = [("agent", "planner"), ("host", "demo")].map(|(k, v)| (k.into(), v.into()));
        assert_eq!(options.labels, BTreeMap::from(expected));
        let options = parse(&[&here[..], &["--label", "agent=planner"]].concat()).options();
        assert!(options.is_ok());
        let error = parse(&[&here[..], &["--label", "host=x"]].concat()).options().unwrap_err();
        assert_eq!(error.line(), "--agent sets the label host, and --label gives it another value");
        assert!(Line::try_parse_from(["x", "--agent", "../x.y"]).is_err());
    }

    #[test]
    fn pairs_need_a_name() {
        assert!(pair("=x").is_err());
        assert!(pair("x").is_err());
        assert_eq!(pair("a=b=c").unwrap(), ("a".into(), "b=c".into()));
    }
}
