//! Composition: what the broker is made of, in the order in which it comes to life and goes.

#![forbid(unsafe_code)]

mod embedded;
mod found;
mod logging;

use std::{collections::BTreeMap, env, sync::Arc};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
    task::JoinHandle,
};
use zbus::{
    Connection as Bus,
    connection::Builder,
    fdo::{DBusProxy, ObjectManager, RequestNameFlags, RequestNameReply},
};

use self::found::Found;
pub use self::{embedded::serve_peer, logging::log};
use crate::{
    bus::{self, Callers, Guarded, Manager, Surface},
    config::OverrideError,
    engine,
    host::{Host, HostError, hardening, portable::Portable, systemd::Systemd},
    launch::spec::Failure,
    policy::{search_path::SearchPathError, surroundings::SurroundingsError},
};

/// Why the broker does not start, or did not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// No bus.
    #[error("cannot reach the user bus: {0}")]
    Bus(#[source] zbus::Error),
    /// The name is another's.
    #[error("{} is owned by {owner}: a broker runs already", bus::NAME)]
    NameTaken {
        /// The connection that has it.
        owner: String,
    },
    /// The bus refused something.
    #[error("the user bus refused to {what}: {source}")]
    Refused {
        /// What was asked, as a verb and its object.
        what: &'static str,
        /// Its answer.
        source: zbus::Error,
    },
    /// The bus went away.
    #[error("the user bus is gone; every session was ended")]
    BusGone,
    /// The environment asks for what is not understood.
    #[error(transparent)]
    Override(#[from] OverrideError),
    /// The policy cannot be looked for.
    #[error(transparent)]
    SearchPath(#[from] SearchPathError),
    /// Something about the user or the broker could not be learnt.
    #[error(transparent)]
    Surroundings(#[from] SurroundingsError),
    /// The launcher is not to be found.
    #[error("{0}")]
    Launcher(Failure),
    /// The system refused something.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A signal handler could not be installed.
    #[error("cannot wait for signals: {0}")]
    Signal(#[source] std::io::Error),
}

/// Runs the broker on the user bus until SIGTERM or SIGINT, or until the bus is gone.
///
/// # Errors
/// [`DaemonError`].
pub async fn run() -> Result<(), DaemonError> {
    close_to_others()?;
    if let Err(error) = crate::host::limits::raise_descriptors() {
        tracing::warn!(%error, "cannot raise the limit of open files; fewer sessions may fit");
    }
    let callers = Arc::new(Callers::on_bus(Box::new(crate::host::origin::is_inside)));
    let builder = answering(Builder::session(), callers.clone());
    let bus = builder.build().await.map_err(DaemonError::Bus)?;
    callers.ask(&bus).await.map_err(DaemonError::Bus)?;
    match Systemd::connect(&bus).await {
        Ok(systemd) => run_on(bus, callers, systemd).await,
        Err(error) => {
            tracing::warn!("no user manager answers, sessions get no scope: {error}");
            run_on(bus, callers, Portable::new()).await
        }
    }
}

/// Before anything is in memory that others of the user's programs should not read.
fn close_to_others() -> Result<(), HostError> {
    hardening::close().map_err(|source| HostError::system("close the broker to others", source))
}

/// A broker that answers.
struct Served {
    engine: engine::Handle,
    /// Whether sessions may open: what an earlier broker left is swept.
    swept: watch::Sender<bool>,
}

async fn run_on<H: Host>(bus: Bus, callers: Arc<Callers>, host: H) -> Result<(), DaemonError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(DaemonError::Signal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(DaemonError::Signal)?;
    let host = Arc::new(host);
    let (served, owners) = serve_on_bus(&bus, callers, host.clone()).await?;
    take_name(&bus).await?;
    // Only who has the name may sweep: otherwise it would be another broker's sessions.
    match host.sweep().await {
        Ok(0) => {}
        Ok(units) => tracing::warn!(units, "ended what an earlier broker had left"),
        Err(error) => tracing::warn!(%error, "cannot look for what an earlier broker left"),
    }
    served.swept.send_replace(true);
    notify(sd_notify::NotifyState::Ready);
    tracing::info!(backend = host.backend(), "broker started");
    let gone = tokio::select! {
        _ = terminate.recv() => false,
        _ = interrupt.recv() => false,
        _ = owners => true,
    };
    notify(sd_notify::NotifyState::Stopping);
    tracing::info!("ending every session");
    served.engine.shut_down().await;
    tracing::info!("broker stopped");
    if gone { Err(DaemonError::BusGone) } else { Ok(()) }
}

/// Subscribes to vanishing owners, then serves: in this order, and both before the name is taken, so that no caller
/// can come and go unseen, and none finds the name without its objects.
async fn serve_on_bus<H: Host>(
    bus: &Bus,
    callers: Arc<Callers>,
    host: Arc<H>,
) -> Result<(Served, JoinHandle<()>), DaemonError> {
    let refused = |what| move |source| DaemonError::Refused { what, source };
    let found = Found::look(&*host)?;
    let backend = host.backend();
    let (engine, notices) = engine::start(found.parts(host));
    let owners = bus::watch_owners(bus, engine.clone(), callers.clone())
        .await
        .map_err(refused("watch owners"))?;
    let bus_id = match DBusProxy::new(bus).await {
        Ok(proxy) => proxy.get_id().await.map(|id| id.to_string()).unwrap_or_default(),
        Err(_) => String::new(),
    };
    let (swept, may_open) = watch::channel(false);
    let surface = Surface {
        engine: engine.clone(),
        callers,
        judge: found.judge(),
        publisher: bus::publish(bus, notices),
        backend,
        bus_id,
        may_open,
    };
    serve(bus, surface).await.map_err(refused("serve objects"))?;
    Ok((Served { engine, swept }, owners))
}

/// A connection that dispatches calls from its first message on. With no object at that moment zbus begins to listen
/// for calls in a task of its own, some time later, and what comes before that is answered by nobody.
fn answering(builder: Builder<'_>, callers: Arc<Callers>) -> Builder<'_> {
    builder.serve_at(bus::ROOT, Guarded::new(ObjectManager, callers))
}

/// Serves the root object on a connection made by [`answering`].
async fn serve(bus: &Bus, surface: Surface) -> zbus::Result<()> {
    let server = bus.object_server();
    server.at(bus::ROOT, Manager::guarded(surface)).await?;
    Ok(())
}

/// Takes the name, or finds out who has it.
async fn take_name(bus: &Bus) -> Result<(), DaemonError> {
    let refused = |what| move |source| DaemonError::Refused { what, source };
    let flags = RequestNameFlags::DO_NOT_QUEUE;
    match bus.request_name_with_flags(bus::NAME, flags).await {
        Ok(RequestNameReply::PrimaryOwner) => Ok(()),
        Ok(_) | Err(zbus::Error::NameTaken) => {
            Err(DaemonError::NameTaken { owner: owner(bus).await })
        }
        Err(error) => Err(refused("give the name")(error)),
    }
}

async fn owner(bus: &Bus) -> String {
    let found = async {
        let proxy = DBusProxy::new(bus).await?;
        let name = bus::NAME.try_into()?;
        zbus::Result::Ok(proxy.get_name_owner(name).await?.to_string())
    };
    found.await.unwrap_or_else(|_| "another connection".to_owned())
}

/// Tells the service manager, if there is one that listens (sd_notify(3)).
fn notify(state: sd_notify::NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::debug!(%error, "cannot notify the service manager");
    }
}

/// The broker's own environment.
fn environment() -> BTreeMap<std::ffi::OsString, std::ffi::OsString> {
    env::vars_os().collect()
}
