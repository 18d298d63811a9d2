//! One declared tool: the typed form of a file of `tools.d`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

use crate::{
    broker::name::ToolName,
    launch::spec::Io,
    policy::{
        agent::Agent,
        arguments::Arguments,
        composition::Composition,
        file::{within, within_option},
        profile::{Grants, ProfileNames},
        socket::DeclaredSocket,
        template::{FixedPath, Text},
        variable::VariableName,
    },
};

/// A tool of the catalogue, ready to be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Its name: that of its file.
    pub name: ToolName,
    /// The file that declares it.
    pub source: PathBuf,
    /// What the file says.
    pub declaration: Declaration,
    /// The profiles that the declaration names, as far as they are there, joined.
    pub profile: Composition,
}

/// What a file of `tools.d` says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// One line for a person.
    pub title: String,
    /// Program and fixed arguments; empty where the request gives the whole argv (`arguments =
    /// "any"`).
    pub command: Spanned<Vec<Text>>,
    /// What arguments a request may add.
    #[serde(default)]
    pub arguments: Arguments,
    /// What makes an agent of it.
    pub agent: Option<Agent>,
    /// How input and output may be carried.
    #[serde(default = "only_pty", deserialize_with = "some_io")]
    pub io: Vec<Io>,
    /// Whether an owner may have the terminal's controller end itself; then what it reads is known to it alone.
    #[serde(default)]
    pub direct: bool,
    /// The names of its profiles; `workspace` where absent.
    #[serde(default = "default_profile")]
    pub profile: ProfileNames,
    /// What this tool may touch beyond its profiles.
    #[serde(default)]
    pub grants: Grants,
    /// Sockets of others that this tool may connect to, beyond those of its profiles.
    #[serde(default)]
    pub sockets: Vec<DeclaredSocket>,
    /// Directories searched after those of the settings, granted read and execute.
    #[serde(default)]
    pub path: Vec<FixedPath>,
    /// Variables that are set.
    #[serde(default)]
    pub environment: BTreeMap<VariableName, Text>,
    /// Variables that may pass, from the broker's environment or a request.
    #[serde(default)]
    pub pass_environment: BTreeSet<VariableName>,
    /// The workspace where a request names none.
    pub workspace: Option<FixedPath>,
    /// How long a session outlives a vanished owner, milliseconds, 0..=86 400 000; 10 000.
    #[serde(default = "default_grace", deserialize_with = "within::<_, 0, 86_400_000>")]
    pub grace_ms: u64,
    /// Longest life of a session, milliseconds, 0 is no bound, 0..=2 592 000 000; 0.
    #[serde(default, deserialize_with = "within::<_, 0, 2_592_000_000>")]
    pub timeout_ms: u64,
    /// Longest time without output, milliseconds, 0 is no bound, 0..=2 592 000 000; 0.
    #[serde(default, deserialize_with = "within::<_, 0, 2_592_000_000>")]
    pub silence_timeout_ms: u64,
    /// From the first gentle signal to SIGKILL, milliseconds, 0..=60 000; 2 000.
    #[serde(default = "default_stop_timeout", deserialize_with = "within::<_, 0, 60_000>")]
    pub stop_timeout_ms: u64,
    /// Most memory, bytes, 1 MiB..=2^53; no bound where absent.
    #[serde(default, deserialize_with = "within_option::<_, 1_048_576, 9_007_199_254_740_992>")]
    pub memory_max: Option<u64>,
    /// Most processes and threads, 1..=4 194 304 (proc(5), `pid_max`); no bound where absent.
    #[serde(default, deserialize_with = "within_option::<_, 1, 4_194_304>")]
    pub tasks_max: Option<u64>,
    /// Soft limit on open files, 64..=1 048 576; 1024.
    #[serde(default = "default_open_files", deserialize_with = "within::<_, 64, 1_048_576>")]
    pub open_files: u64,
    /// File mode creation mask, octal text, `000`..=`777`; `022`.
    #[serde(default = "default_umask", deserialize_with = "octal")]
    pub umask: u32,
}

fn only_pty() -> Vec<Io> {
    vec![Io::Pty]
}

fn default_profile() -> ProfileNames {
    ProfileNames::one("workspace")
}

fn default_grace() -> u64 {
    10_000
}

fn default_stop_timeout() -> u64 {
    2_000
}

/// What a service manager gives a service: many programs size tables by it, and select(2) ends at
/// 1024.
fn default_open_files() -> u64 {
    1024
}

fn default_umask() -> u32 {
    0o022
}

fn some_io<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Io>, D::Error> {
    let io = Vec::<Io>::deserialize(deserializer)?;
    if io.is_empty() {
        Err(de::Error::invalid_length(0, &"at least one of \"pty\" and \"pipe\""))
    } else {
        Ok(io)
    }
}

fn octal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let written = String::deserialize(deserializer)?;
    let octal = (written.len() == 3).then(|| u32::from_str_radix(&written, 8).ok()).flatten();
    octal.ok_or_else(|| {
        de::Error::invalid_value(
            de::Unexpected::Str(&written),
            &"three octal digits such as \"022\"",
        )
    })
}

#[cfg(test)]
mod tests;
