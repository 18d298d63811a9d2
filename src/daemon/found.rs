//! What the broker finds around it when it starts.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{DaemonError, environment};
use crate::{
    config::{Overrides, Settings},
    engine::Parts,
    host::{Host, probe, spawn, tmpdir::TmpRoot},
    launch::{self, report::Tier},
    policy::{
        catalogue::Catalogue,
        judge::Judge,
        search_path::SearchPath,
        surroundings::{Kernel, Surroundings},
    },
    terminal::RingPool,
};

/// Everything that outlives the start.
#[derive(Debug)]
pub struct Found {
    launcher: PathBuf,
    tmp_root: TmpRoot,
    settings: Arc<Settings>,
    judge: Arc<Judge>,
}

impl Found {
    /// Looks around, makes the directory for all `TMPDIR`s, reads the policy.
    ///
    /// # Errors
    /// [`DaemonError`].
    pub fn look(host: &impl Host) -> Result<Self, DaemonError> {
        let landlock_abi = launch::landlock_abi();
        let kernel = Kernel { landlock_abi, seccomp: launch::has_seccomp(), mounts: false };
        let mut surroundings = Surroundings::gather(kernel)?;
        let environment = environment();
        let search =
            SearchPath::find(&environment, surroundings.executable(), &surroundings.config_home)?;
        let settings = Settings::load(&search, Overrides::from_environment(&environment)?);
        if let Some(fault) = &settings.fault {
            tracing::error!("every request is refused until this is mended: {fault}");
        }
        let launcher = spawn::locate().map_err(DaemonError::Launcher)?;
        let wanted = settings.overrides.max_tier.admits(Tier::Mounts);
        surroundings.kernel.mounts = wanted && gives_mounts(&launcher);
        let temp_dir = surroundings.temp_dir.clone();
        if let Err(error) = TmpRoot::sweep(&temp_dir) {
            tracing::warn!(%error, "cannot remove what an earlier broker left");
        }
        let tmp_root = TmpRoot::create(&temp_dir)?;
        surroundings.programs.push(launcher.clone());
        surroundings.state_dirs.push(tmp_root.path().to_owned());
        surroundings.host_gaps = host.gaps();
        let settings = Arc::new(settings);
        let judge = Judge::new(
            Catalogue::load(search),
            surroundings,
            settings.clone(),
            tmp_root.path().to_owned(),
        );
        Ok(Self { launcher, tmp_root, settings, judge: Arc::new(judge) })
    }

    /// What the engine works with.
    pub fn parts<H: Host>(&self, host: Arc<H>) -> Parts<H> {
        let rings = usize::try_from(self.settings.limits.rings_bytes).unwrap_or(usize::MAX);
        Parts {
            host,
            launcher: self.launcher.clone(),
            tmp_root: self.tmp_root.clone(),
            rings: RingPool::new(rings),
            settings: self.settings.clone(),
        }
    }

    /// Removes the directory for all `TMPDIR`s, once no session is left.
    pub async fn leave(self) {
        // Blocks for as long as something is in it, and nothing else is to be done any more.
        let _ = tokio::task::spawn_blocking(move || self.tmp_root.remove()).await;
    }

    /// What judges requests.
    pub fn judge(&self) -> Arc<Judge> {
        self.judge.clone()
    }
}

/// Whether sessions get a root of their own; says in the log why not.
fn gives_mounts(launcher: &Path) -> bool {
    match probe::mounts(launcher) {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!("a lesser tier is used, tools get no root of their own: {error}");
            false
        }
    }
}
