//! Owners that vanish: every connection that leaves the bus is told to the engine, in order.

use std::{num::NonZeroUsize, sync::Arc};

use futures_util::StreamExt;
use tokio::task::JoinHandle;
use zbus::{MatchRule, MessageStream, message::Type};

use super::Callers;
use crate::{broker::lease::Connection, engine};

/// Signals that may wait; the bus holds back what comes faster.
const QUEUE: usize = 1024;

/// Watches connections leave. It is subscribed when this returns, which must be before the name is taken: a caller
/// cannot be missed then.
///
/// The task ends with the bus: every owner has vanished then.
///
/// # Errors
/// Where the bus refuses the match.
pub async fn watch_owners(
    bus: &zbus::Connection,
    engine: engine::Handle,
    callers: Arc<Callers>,
) -> zbus::Result<JoinHandle<()>> {
    // Only disappearances: the new owner (third argument) is empty.
    let rule = MatchRule::builder()
        .msg_type(Type::Signal)
        .sender("org.freedesktop.DBus")
        .interface("org.freedesktop.DBus")
        .member("NameOwnerChanged")
        .arg(2, "")
        .build()?;
    let mut vanished = MessageStream::for_match_rule(rule, bus, NonZeroUsize::new(QUEUE)).await?;
    Ok(tokio::spawn(async move {
        while let Some(Ok(message)) = vanished.next().await {
            let Ok((name, _, _)) = message.body().deserialize::<(String, String, String)>() else {
                continue;
            };
            if name.starts_with(':') {
                let connection = Connection::new(name);
                callers.forget(&connection);
                engine.vanished(connection).await;
            }
        }
    }))
}
