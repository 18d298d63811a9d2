//! A broker inside another program: for one client, over a private connection, where there is no bus.

use std::{os::unix::net::UnixStream, sync::Arc};

use tokio::sync::{oneshot, watch};
use zbus::{Connection, Guid, connection::Builder};

use super::{DaemonError, answering, close_to_others, found::Found, serve};
use crate::{
    bus::{self, Callers, Surface},
    engine,
    host::{Host, portable::Portable},
};

/// Serves the one client at the other end of a stream, as the server of the D-Bus handshake, until it disconnects;
/// returns when nothing of any session is left. Says when its objects are there: calls before that stay unanswered.
///
/// Its backend is `portable`, whatever service manager there may be: an embedded broker is for where there is none.
///
/// # Errors
/// [`DaemonError`].
pub async fn serve_peer(stream: UnixStream, ready: oneshot::Sender<()>) -> Result<(), DaemonError> {
    let refused = |what| move |source| DaemonError::Refused { what, source };
    close_to_others()?;
    let host = Arc::new(Portable::new());
    let found = Found::look(&*host)?;
    // Only what is of brokers that are gone: others may run beside this one.
    if let Err(error) = host.sweep().await {
        tracing::warn!(%error, "cannot look for what an earlier broker left");
    }
    let guid = Guid::generate();
    let bus_id = guid.to_string();
    let callers = Arc::new(Callers::of_peer());
    let connection = answering(Builder::unix_stream(stream), callers.clone())
        .server(guid)
        .p2p()
        .build()
        .await
        .map_err(refused("take the client's connection"))?;
    let engine = serve_engine(&connection, callers, host, &found, bus_id)
        .await
        .map_err(refused("serve objects"))?;
    // A client that is gone already needs no word.
    let _ = ready.send(());
    connection.closed().await;
    engine.shut_down().await;
    found.leave().await;
    Ok(())
}

async fn serve_engine(
    connection: &Connection,
    callers: Arc<Callers>,
    host: Arc<Portable>,
    found: &Found,
    bus_id: String,
) -> zbus::Result<engine::Handle> {
    let backend = host.backend();
    let (engine, notices) = engine::start(found.parts(host));
    let (_, may_open) = watch::channel(true);
    let surface = Surface {
        engine: engine.clone(),
        callers,
        judge: found.judge(),
        publisher: bus::publish(connection, notices),
        backend,
        bus_id,
        may_open,
    };
    serve(connection, surface).await?;
    Ok(engine)
}
