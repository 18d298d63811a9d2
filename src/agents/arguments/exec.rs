//! Arguments of `exec`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Few, Label, Name, Whole, bounds::Bounded};

/// Runs a command, confined to a directory.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Exec {
    /// The command: a list of program and arguments, which no shell reads; or, with shell true, one string for
    /// `/bin/sh -c` inside the confinement.
    pub command: Command,
    /// Whether `command` is one string for a shell.
    #[serde(default)]
    pub shell: bool,
    /// Absolute path of an existing directory: the workspace, all that the command may read and write of the user's
    /// files. Default: the directory that this server was started for.
    #[serde(default)]
    pub workdir: Option<Name>,
    /// Environment variables. Only names that the policy lets pass are accepted.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// How long to wait for the command's end before the answer says that it is still running, milliseconds. Default
    /// 10000.
    #[serde(default)]
    pub yield_ms: Option<Whole<10, 120_000>>,
    /// Do not wait: answer as soon as it runs.
    #[serde(default)]
    pub background: bool,
    /// End it after so many seconds, whether or not anybody waits; 0 is never. Default 1800.
    #[serde(default)]
    pub timeout_sec: Option<Whole<0, 2_592_000>>,
    /// End it when it has written nothing for so many seconds; 0 is never.
    #[serde(default)]
    pub silence_timeout_sec: Option<Whole<0, 2_592_000>>,
    /// Give it a terminal. Default: pipes, with standard input closed.
    #[serde(default)]
    pub pty: bool,
    /// Without a terminal: leave standard input open for `process write`.
    #[serde(default)]
    pub stdin: bool,
    /// Where no pty can be had, use pipes instead; the answer then has backend "stdio-fallback".
    #[serde(default)]
    pub io_fallback: bool,
    /// A name for the session, as a label.
    #[serde(default)]
    pub name: Option<Label>,
    /// End a running session of this server with the same `name` first.
    #[serde(default)]
    pub replace_existing: bool,
    /// Task that the session belongs to: a label of its results and events.
    #[serde(default)]
    pub task: Option<Label>,
    /// Part of the task.
    #[serde(default)]
    pub subtask: Option<Label>,
}

/// A command.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Command {
    /// For a shell.
    Script(Bounded<131_072>),
    /// Program and arguments.
    Argv(Few<Bounded<131_072>, 1024>),
}
