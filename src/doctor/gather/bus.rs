//! What is on the user bus. Nothing is started: a broker that the bus could start is not asked.

use std::time::Duration;

use tokio::time::timeout;
use zbus::{Connection, fdo::DBusProxy};

use crate::{
    client::{BUS_NAME, Client},
    doctor::facts::{Broker, OnBus},
    host::systemd::look::UserManager,
};

/// How long the bus and the broker may take for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The user manager's name.
const MANAGER: &str = "org.freedesktop.systemd1";

pub(super) async fn look() -> Result<OnBus, String> {
    let connection = within(Connection::session()).await?;
    let bus = within(DBusProxy::new(&connection)).await?;
    let manager = match has_owner(&bus, MANAGER).await {
        Ok(true) => UserManager::look(&connection).await.map_err(|error| error.to_string()),
        Ok(false) => Err(format!("nobody owns {MANAGER} on this bus")),
        Err(error) => Err(error),
    };
    Ok(OnBus { manager, broker: broker(&connection, &bus).await? })
}

async fn broker(connection: &Connection, bus: &DBusProxy<'_>) -> Result<Broker, String> {
    if has_owner(bus, BUS_NAME).await? {
        return Ok(ask(connection).await.unwrap_or_else(Broker::Silent));
    }
    let names = within(bus.list_activatable_names()).await?;
    let is_known = names.iter().any(|name| name.as_str() == BUS_NAME);
    Ok(if is_known { Broker::Activatable } else { Broker::Absent })
}

async fn ask(connection: &Connection) -> Result<Broker, String> {
    let client = within(Client::over(connection.clone())).await?;
    let manager = client.manager();
    let version = within(manager.broker_version()).await?;
    let backend = within(manager.backend()).await?;
    let tier = within(manager.tier()).await?;
    Ok(Broker::Running { version, backend, tier })
}

async fn has_owner(bus: &DBusProxy<'_>, name: &str) -> Result<bool, String> {
    let name = name.try_into().map_err(|error: zbus::Error| error.to_string())?;
    within(bus.name_has_owner(name)).await
}

async fn within<T, E: ToString>(call: impl Future<Output = Result<T, E>>) -> Result<T, String> {
    match timeout(PATIENCE, call).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {PATIENCE:?}")),
    }
}
