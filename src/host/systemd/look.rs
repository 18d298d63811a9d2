//! What a user manager can do, learnt without becoming a unit of it.

use zbus::{Connection, proxy::CacheProperties};

use super::manager::{ManagerProxy, within};
use crate::host::{HostError, cgroup::Cgroup};

/// The controllers that the limits of a session need.
pub const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// A user manager that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserManager {
    /// Its version, as it tells.
    pub version: String,
    /// The controllers that were delegated to it.
    pub controllers: Vec<String>,
}

impl UserManager {
    /// Asks the user manager on this bus.
    ///
    /// # Errors
    /// [`HostError`] where none answers, or its control group cannot be looked at.
    pub async fn look(connection: &Connection) -> Result<Self, HostError> {
        let proxy = ManagerProxy::builder(connection).cache_properties(CacheProperties::No).build();
        Self::of(&within("be found", proxy).await?).await
    }

    pub(super) async fn of(proxy: &ManagerProxy<'_>) -> Result<Self, HostError> {
        let version = within("tell its version", proxy.version()).await?;
        let name = within("name its control group", proxy.control_group()).await?;
        let controllers = Cgroup::open(name.into()).and_then(|group| group.controllers());
        let controllers = controllers
            .map_err(|source| HostError::system("look at the manager's control group", source))?;
        Ok(Self { version, controllers })
    }

    /// Those of [`CONTROLLERS`] that it was not given. It accepts limits without them, too.
    #[must_use]
    pub fn missing_controllers(&self) -> Vec<&'static str> {
        let given = |needed: &&str| self.controllers.iter().any(|given| given == needed);
        CONTROLLERS.into_iter().filter(|needed| !given(needed)).collect()
    }
}
