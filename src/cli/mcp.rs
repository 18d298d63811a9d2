//! `st2-tools mcp`.

use std::path::{Path, PathBuf};

use super::{
    connect::Reach,
    error::CliError,
    open_args::{declared, labels, pair},
    status::Status,
};
use crate::{
    agents::{
        identity::Identity,
        serve::{Place, serve},
        settings::{FILE_NAME, Settings, SettingsError},
    },
    daemon, launch,
    policy::{
        file::{self, FileError},
        search_path::{self, SearchPath, SearchPathError},
        surroundings::{Kernel, Surroundings},
    },
};

/// Serve an agent host: an MCP server over standard input and output
///
/// Its sessions live for it: they end, after their grace, when it does. What it shows and how much it lets a call ask
/// for is said by mcp.toml, in the directories of the policy. It logs to standard error.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where `exec` runs what names no directory [default: that of --agent in its catalogue, else the current directory]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,

    /// Attribute every session to an identity of Agent Spec: sets the labels host and agent
    #[arg(long, value_name = "HOST.IDENTITY")]
    agent: Option<Identity>,

    /// Attribution of every session, such as purpose=review; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    label: Vec<(String, String)>,

    /// The task that sessions belong to where a call names none
    #[arg(long, value_name = "TASK")]
    task: Option<String>,

    /// The part of the task
    #[arg(long, value_name = "SUBTASK")]
    subtask: Option<String>,
}

/// Why what an MCP server may do is not known; then it does nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum McpSettingsError {
    /// Where the file would be.
    #[error(transparent)]
    SearchPath(#[from] SearchPathError),
    /// The file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A number in it.
    #[error("{}: {source}", file.display())]
    Number { file: PathBuf, source: SettingsError },
}

/// Serves until standard input ends.
pub(super) async fn mcp(args: Args, reach: &Reach) -> Result<Status, CliError> {
    daemon::log();
    let settings = settings()?;
    let place = args.place()?;
    let held = reach.hold().await?;
    let (input, output) = rmcp::transport::io::stdio();
    let served = serve(held.client.clone(), settings, place, input, output).await;
    let ended = held.end().await;
    // Where both failed, the first is why.
    served?;
    ended.map(|()| Status::SUCCESS)
}

impl Args {
    fn place(self) -> Result<Place, CliError> {
        let path = match self.root {
            Some(root) => root,
            None => declared(self.agent.as_ref())?.unwrap_or_else(|| PathBuf::from(".")),
        };
        let root = path.canonicalize().map_err(|source| CliError::Path { path, source })?;
        if root.to_str().is_none() {
            return Err(CliError::PathNotUtf8 { path: root });
        }
        let mut labels = labels(self.label, self.agent.as_ref())?;
        let task = [("task", self.task), ("subtask", self.subtask)];
        labels.extend(task.into_iter().filter_map(|(name, label)| Some((name.to_owned(), label?))));
        Ok(Place { root, labels })
    }
}

/// What `mcp.toml` says; the defaults where there is none.
fn settings() -> Result<Settings, CliError> {
    let kernel = Kernel {
        landlock_abi: launch::landlock_abi(),
        seccomp: launch::has_seccomp(),
        mounts: false,
    };
    let found = Surroundings::gather(kernel).map_err(|source| CliError::Surroundings { source })?;
    let search = SearchPath::find(&found.environment, found.executable(), &found.config_home);
    let settings = search.map_err(McpSettingsError::from).and_then(|search| {
        search_path::strongest(&search, FILE_NAME)
            .map_or_else(|| Ok(Settings::default()), |file| read(&file))
    });
    settings.map_err(CliError::McpSettings)
}

fn read(file: &Path) -> Result<Settings, McpSettingsError> {
    let settings: Settings = file::read(file)?;
    let number = |source| McpSettingsError::Number { file: file.to_owned(), source };
    settings.check().map_err(number)?;
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_not_passed_over() {
        let bench = tempfile::tempdir().unwrap();
        let file = bench.path().join(FILE_NAME);
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            read(&file).map_err(|error| error.to_string())
        };
        assert_eq!(read("tools = [\"exec\"]").unwrap().tools.len(), 1);
        assert!(read("tools = [\"rm\"]").unwrap_err().contains("mcp.toml:1:10"));
        assert!(
            read("[limits]\ncalls = 0")
                .unwrap_err()
                .ends_with("mcp.toml: limits.calls 0 is outside 1..=256")
        );
    }
}
