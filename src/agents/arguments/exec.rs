//! Arguments of `exec`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use super::{Argument, Few, Label, Name, Whole};

/// Runs a command, confined to a directory.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Exec {
    /// The command: a list of program and arguments, which no shell reads; or, with shell true, one string for
    /// `/bin/sh -c` inside the confinement. With the environment it may take 128 KiB: what is longer belongs in a file.
    pub command: Command,
    /// Whether `command` is one string for a shell.
    #[serde(default)]
    pub shell: bool,
    /// Absolute path of an existing directory: the workspace, all that the command may read and write of the user's
    /// files. Default: the directory that this server was started for.
    #[serde(default)]
    pub workdir: Option<Name>,
    /// Environment variables. Only names that the policy lets pass are accepted, as shipped: CI, CLICOLOR, CLICOLOR_FORCE,
    /// COLORTERM, FORCE_COLOR, LANG, LC_ALL, LC_COLLATE, LC_CTYPE, LC_MESSAGES, LC_MONETARY, LC_NUMERIC, LC_TIME,
    /// NO_COLOR, TZ. For any other, let the command set it: ["env", "name=value", "program"].
    #[serde(default, deserialize_with = "variables")]
    pub env: BTreeMap<String, String>,
    /// How long to wait for the command's end before the answer says that it is still running, milliseconds. Default
    /// 10000.
    #[serde(default)]
    pub yield_ms: Option<Whole<10, 120_000>>,
    /// Do not wait: answer as soon as it runs.
    #[serde(default)]
    pub background: bool,
    /// End it after so many seconds, whether or not anybody waits; 0 is never. Default 1800, or what the catalogue entry
    /// allows where that is less.
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
    /// A name for the session, as a label of at most 256 bytes.
    #[serde(default)]
    pub name: Option<Label>,
    /// End a running session of this server with the same `name` first.
    #[serde(default)]
    pub replace_existing: bool,
    /// Task that the session belongs to: a label of its results and events, at most 256 bytes.
    #[serde(default)]
    pub task: Option<Label>,
    /// Part of the task, at most 256 bytes.
    #[serde(default)]
    pub subtask: Option<Label>,
}

/// A command.
#[derive(Debug, JsonSchema)]
#[schemars(untagged, inline)]
pub enum Command {
    /// For a shell.
    Script(Argument),
    /// Program and arguments.
    Argv(Few<Argument, 1024>),
}

impl<'de> Deserialize<'de> for Command {
    /// By hand: what is derived says of any fault only that nothing fits.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let command = match Value::deserialize(deserializer)? {
            script @ Value::String(_) => serde_json::from_value(script).map(Self::Script),
            argv @ Value::Array(_) => serde_json::from_value(argv).map(Self::Argv),
            _ => {
                return Err(de::Error::custom("command is neither a string nor a list of strings"));
            }
        };
        command.map_err(|error| de::Error::custom(format_args!("command: {error}")))
    }
}

fn variables<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let variables = BTreeMap::<Name, Argument>::deserialize(deserializer)?;
    Ok(variables.into_iter().map(|(name, value)| (name.0, value.0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Exec, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_wrong_command_says_what_is_wrong_with_it() {
        assert!(parse(r#"{"command":"ls -l","shell":true}"#).is_ok());
        assert!(parse(r#"{"command":["ls","-l"]}"#).is_ok());
        let long = format!(r#"{{"command":"{}"}}"#, "x".repeat(131_073));
        for (command, why) in [
            (r#"{"command":7}"#, "neither a string nor a list of strings"),
            (r#"{"command":["ls",7]}"#, "command: invalid type: integer `7`, expected a string"),
            (r#"{"command":"a\u0000"}"#, "command: NUL, at byte 1"),
            (&long, "command: 131073 bytes are more than 131072"),
        ] {
            let error = parse(command).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn no_nul_is_in_the_environment() {
        assert_eq!(parse(r#"{"command":[],"env":{"A":"b"}}"#).unwrap().env["A"], "b");
        for env in [r#"{"A\u0000":"b"}"#, r#"{"A":"b\u0000"}"#] {
            let error = parse(&format!(r#"{{"command":[],"env":{env}}}"#)).unwrap_err();
            assert!(error.contains("NUL, at byte 1"), "{error}");
        }
    }
}
