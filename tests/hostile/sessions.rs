//! Other sessions of the same broker, to be attacked.

use std::{
    fs,
    path::{Path, PathBuf},
};

use st2_tools::client::session::SessionProxy;
use tempfile::TempDir;

use super::victims::TREASURE;
use crate::support::{Broker, Client, manager::group, output_until, workspace};

/// Another session.
pub struct OtherSession {
    _session: SessionProxy<'static>,
    /// Its leader.
    pub pid: i32,
    /// Its private directory.
    pub tmpdir: PathBuf,
    /// The path of its terminal.
    pub terminal: String,
    /// Its control group.
    pub group: PathBuf,
    workspace: TempDir,
}

impl OtherSession {
    /// Opens one that has hidden its treasure in its workspace, its private directory and its environment.
    pub async fn open(broker: &Broker, client: &Client) -> Self {
        let before = broker.tmpdirs();
        let workspace = workspace();
        let script = format!(
            "echo {TREASURE} | tee file >$TMPDIR/file; export SECRET={TREASURE}; \
             exec sh -c 'echo ready; read line'"
        );
        let argv = ["sh", "-c", &script];
        let session = client.run(workspace.path(), &argv).await;
        output_until(&session, "ready").await;
        let group = group(&session.unit().await.unwrap());
        let pid = crate::support::manager::members(&group)[0];
        let tmpdir = broker.tmpdirs().into_iter().find(|path| !before.contains(path)).unwrap();
        let terminal = fs::read_link(format!("/proc/{pid}/fd/0")).unwrap();
        let terminal = terminal.to_str().unwrap().to_owned();
        Self { _session: session, pid, tmpdir, terminal, group, workspace }
    }

    /// Its workspace.
    pub fn workspace(&self) -> &Path {
        self.workspace.path()
    }
}
