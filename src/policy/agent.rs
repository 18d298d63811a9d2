//! A tool that is an agent: which executable it is, and how it is given a prompt.
//!
//! # Which executable
//!
//! The first of these that names the agent; nothing is guessed, and what cannot be used is refused,
//! never passed over:
//!
//! 1. `.st2-tools/agents.toml` in the workspace. A tool that had the workspace may have written it,
//!    and an agent has more than the workspace: so it can only choose among the executables that the
//!    declaration lists, and gives them no arguments.
//! 2. `st2-tools/agents.toml` in the user's configuration, which nobody else may be able to write.
//! 3. The declaration's own command.

use std::{
    ffi::OsString,
    fmt,
    path::{Component, Path, PathBuf},
};

use serde::Deserialize;

use crate::policy::{
    overrides::{self, OverrideFault},
    surroundings::Surroundings,
    workspace::Opened,
};

/// Longest executable and longest argument of an override, bytes, and how many of them.
const WORD_MAX: usize = 4096;
/// Most words of an override's command.
const WORDS_MAX: usize = 64;
/// Most executables that a project may choose from.
const EXECUTABLES_MAX: usize = 64;

/// The `agent` table of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub struct Agent {
    /// How it is given a prompt; `None` is not at all.
    pub prompt: Option<Prompt>,
    /// Executables that a project may choose instead of the tool's own.
    pub project_executables: Vec<Executable>,
}

/// How a prompt reaches an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// As its last argument: after a word of its own, or joined to one that ends with `=`.
    Argument {
        /// What goes before it.
        option: Option<String>,
    },
    /// Written to its terminal once it is up: by who opens it.
    Terminal,
}

/// An absolute path without `.` and `..`, or a name to be found in `PATH`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Executable(PathBuf);

/// A command that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is neither an absolute path without '.' and '..' nor a name without '/', of 1 to {WORD_MAX} bytes"
)]
pub struct ExecutableError(String);

/// An `agent` table that contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum AgentTableError {
    /// An option for what is no argument.
    #[error("prompt_option needs prompt = \"argument\"")]
    OptionWithoutArgument,
    /// Not an option.
    #[error("prompt_option {0:?} is not 1 to 64 bytes beginning with '-'")]
    Option(String),
    /// Too many executables.
    #[error("{0} project_executables, at most {EXECUTABLES_MAX}")]
    Executables(usize),
}

/// Why an agent has no command that can be used, or no way for a prompt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// A file that cannot be used.
    #[error("agents file {file:?}: {fault}")]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        fault: OverrideFault,
    },
    /// A command of an override that is none.
    #[error("{file:?} names no command for agent {agent:?} that can be used: {rule}")]
    Command {
        /// The file.
        file: PathBuf,
        /// The agent.
        agent: String,
        /// What is broken.
        rule: CommandRule,
    },
    /// A prompt for a tool that takes none.
    #[error("tool {0:?} takes no prompt: its declaration has no agent.prompt")]
    NoPrompt(String),
    /// A prompt that is to be written instead.
    #[error("tool {0:?} takes its prompt on its terminal: write it there once the tool is up")]
    PromptOnTerminal(String),
    /// A prompt that would be an option: what the declaration says of arguments would not hold.
    #[error(
        "tool {0:?} takes a prompt that begins with '-' for an option: its declaration has no agent.prompt_option"
    )]
    PromptIsOption(String),
}

/// What the command of an override breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandRule {
    /// None, or too many words, or one that is too long.
    #[error("it is not 1 to {WORDS_MAX} words without NUL, of at most {WORD_MAX} bytes each")]
    Words,
    /// What is to be executed is ambiguous.
    #[error(transparent)]
    Executable(#[from] ExecutableError),
    /// A project gives arguments.
    #[error("a project chooses an executable, and gives no arguments")]
    ProjectArguments,
    /// A project chooses freely.
    #[error("{0:?} is not among the agent's project_executables")]
    NotListed(String),
    /// The tool could replace it.
    #[error("{0:?} lies in the workspace, where a tool can replace it")]
    InWorkspace(PathBuf),
}

/// The command of an agent, and the file that decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) argv: Vec<OsString>,
    pub(super) source: PathBuf,
}

impl Agent {
    /// What overrides the tool's own command, if anything does.
    pub(super) fn command(
        &self,
        agent: &str,
        workspace: &Opened,
        surroundings: &Surroundings,
    ) -> Result<Option<Command>, AgentError> {
        if let Some(found) = overrides::of_project(workspace, agent)? {
            let executable =
                self.of_project(&found.command).map_err(|rule| found.refuse(agent, rule))?;
            return Ok(Some(found.decides(vec![executable])));
        }
        let Some(found) = overrides::of_user(surroundings, agent)? else { return Ok(None) };
        let words = of_user(&found.command, workspace).map_err(|rule| found.refuse(agent, rule))?;
        Ok(Some(found.decides(words)))
    }

    /// The arguments that carry a prompt.
    pub(super) fn prompt(&self, agent: &str, prompt: &str) -> Result<Vec<OsString>, AgentError> {
        match &self.prompt {
            None => Err(AgentError::NoPrompt(agent.to_owned())),
            Some(Prompt::Terminal) => Err(AgentError::PromptOnTerminal(agent.to_owned())),
            Some(Prompt::Argument { option: None }) if prompt.starts_with('-') => {
                Err(AgentError::PromptIsOption(agent.to_owned()))
            }
            Some(Prompt::Argument { option: None }) => Ok(vec![prompt.into()]),
            Some(Prompt::Argument { option: Some(option) }) if option.ends_with('=') => {
                Ok(vec![format!("{option}{prompt}").into()])
            }
            Some(Prompt::Argument { option: Some(option) }) => {
                Ok(vec![option.into(), prompt.into()])
            }
        }
    }

    fn of_project(&self, command: &[String]) -> Result<OsString, CommandRule> {
        let [executable] = command else {
            let empty = command.is_empty();
            return Err(if empty { CommandRule::Words } else { CommandRule::ProjectArguments });
        };
        let listed = |it: &&Executable| it.0.as_os_str() == executable.as_str();
        match self.project_executables.iter().find(listed) {
            Some(executable) => Ok(executable.0.clone().into()),
            None => Err(CommandRule::NotListed(executable.chars().take(256).collect())),
        }
    }
}

fn of_user(command: &[String], workspace: &Opened) -> Result<Vec<OsString>, CommandRule> {
    let fits = |word: &String| word.len() <= WORD_MAX && !word.contains('\0');
    if command.is_empty() || command.len() > WORDS_MAX || !command.iter().all(fits) {
        return Err(CommandRule::Words);
    }
    let executable = Executable::try_from(command[0].clone())?;
    let settled = super::settled::settled(&executable.0);
    if executable.0.is_absolute() && settled.starts_with(&workspace.path) {
        return Err(CommandRule::InWorkspace(executable.0));
    }
    Ok(command.iter().map(OsString::from).collect())
}

impl TryFrom<String> for Executable {
    type Error = ExecutableError;

    fn try_from(text: String) -> Result<Self, ExecutableError> {
        let path = Path::new(&text);
        let normal: PathBuf = path.components().collect();
        let plain = |part| matches!(part, Component::Normal(_) | Component::RootDir);
        let is_path = path.is_absolute() && path.components().all(plain) && text.len() > 1;
        let is_name = !text.contains('/') && !matches!(text.as_str(), "" | "." | "..");
        let fits =
            text.len() <= WORD_MAX && !text.contains('\0') && normal.as_os_str() == text.as_str();
        if fits && (is_path || is_name) {
            return Ok(Self(normal));
        }
        Err(ExecutableError(text.chars().take(256).collect()))
    }
}

/// The table as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    prompt: Option<Way>,
    prompt_option: Option<String>,
    #[serde(default)]
    project_executables: Vec<Executable>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Way {
    Argument,
    Terminal,
}

impl TryFrom<Written> for Agent {
    type Error = AgentTableError;

    fn try_from(written: Written) -> Result<Self, AgentTableError> {
        let Written { prompt, prompt_option: option, project_executables } = written;
        if option.is_some() && prompt != Some(Way::Argument) {
            return Err(AgentTableError::OptionWithoutArgument);
        }
        let is_option = |option: &&String| {
            !option.starts_with('-') || option.len() > 64 || option.contains('\0')
        };
        if let Some(option) = option.as_ref().filter(is_option) {
            return Err(AgentTableError::Option(option.chars().take(64).collect()));
        }
        if project_executables.len() > EXECUTABLES_MAX {
            return Err(AgentTableError::Executables(project_executables.len()));
        }
        let prompt = prompt.map(|way| match way {
            Way::Argument => Prompt::Argument { option },
            Way::Terminal => Prompt::Terminal,
        });
        Ok(Self { prompt, project_executables })
    }
}

impl fmt::Display for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Argument { .. } => "argument",
            Self::Terminal => "terminal",
        })
    }
}

#[cfg(test)]
mod tests;
