//! Serves one MCP client, from its first word to its last.

use std::sync::Arc;

use rmcp::{ServiceExt, service::ServerInitializeError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

pub use super::desk::Place;
use super::{desk::Desk, server::Server, settings::Settings, transport::Lines};
use crate::client::{Client, ClientError};

/// Why a client is not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The broker did not say what its limits are.
    #[error(transparent)]
    Broker(#[from] ClientError),
    /// The client and this server did not agree to begin.
    #[error("the MCP client did not begin: {source}")]
    Begin {
        /// What it did instead.
        source: Box<ServerInitializeError>,
    },
    /// The connection to the broker is gone, and the sessions with it.
    #[error("the connection to the broker is gone; the sessions of this server end")]
    Gone,
}

/// Serves the client at the other end of two streams until it closes its own, or until the broker is out of reach: who
/// started this server is to start another, which reaches it again.
///
/// # Errors
/// [`ServeError`]. A client that never says a word and goes is no error.
pub async fn serve<R, W>(
    client: Client,
    settings: Settings,
    place: Place,
    reader: R,
    writer: W,
) -> Result<(), ServeError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let longest = usize::try_from(settings.limits.message_bytes).unwrap_or(usize::MAX);
    let desk = Desk::new(client.clone(), settings, place).await?;
    let (server, stop) = (Server::new(Arc::new(desk)), CancellationToken::new());
    let conversation = converse(server, Lines::new(reader, writer, longest), stop.clone());
    tokio::pin!(conversation);
    tokio::select! {
        ended = &mut conversation => ended,
        () = client.gone() => {
            stop.cancel();
            // Calls that are being answered fail at once, and are told so first. How it quits makes no difference.
            let _ = conversation.await;
            Err(ServeError::Gone)
        }
    }
}

async fn converse<R, W>(
    server: Server,
    lines: Lines<R, W>,
    stop: CancellationToken,
) -> Result<(), ServeError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    match server.serve_with_ct(lines, stop).await {
        Ok(running) => {
            // How it quits makes no difference: the connection to the broker goes with this program.
            let _ = running.waiting().await;
            Ok(())
        }
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(source) => Err(ServeError::Begin { source: Box::new(source) }),
    }
}
