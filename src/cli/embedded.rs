//! A broker inside this program, for where no bus leads to one.
//!
//! Its bus is private: one connection, peer to peer, over a socket pair. It has the one client, and
//! ends its sessions when that client's end is closed.

use std::{error::Error, future::Future, os::unix::net::UnixStream, pin::Pin, time::Duration};

use tokio::{sync::oneshot, task::JoinHandle};
use zbus::{Connection, connection::Builder};

use super::error::CliError;

/// What ends an embedded broker early.
pub type EmbeddedError = Box<dyn Error + Send + Sync>;

/// The life of an embedded broker, over once its peer has disconnected and nothing of any session is left.
pub type EmbeddedLife = Pin<Box<dyn Future<Output = Result<(), EmbeddedError>> + Send>>;

/// Starts an embedded broker that serves the peer on this stream, as the server of the D-Bus handshake.
///
/// It says once its objects are there: a call that comes between the handshake and that moment is
/// answered by nobody.
pub type Embedded = fn(UnixStream, oneshot::Sender<()>) -> EmbeddedLife;

/// How long its end is waited for: above the longest gentle end of a session.
const END: Duration = Duration::from_secs(10);

/// An embedded broker and the one connection to it.
#[derive(Debug)]
pub(super) struct EmbeddedBroker {
    connection: Connection,
    life: JoinHandle<Result<(), EmbeddedError>>,
}

impl EmbeddedBroker {
    /// Starts one.
    pub(super) async fn start(embedded: Embedded) -> Result<Self, CliError> {
        let failed = |source: EmbeddedError| CliError::Embedded { source };
        let (ours, brokers) = UnixStream::pair().map_err(|error| failed(error.into()))?;
        let (ready, is_ready) = oneshot::channel();
        let mut life = tokio::spawn(embedded(brokers, ready));
        let connect = async {
            let connection = Builder::unix_stream(ours).p2p().build().await?;
            // A broker that ends without a word shows below.
            is_ready.await.map_err(|_| zbus::Error::InterfaceNotFound)?;
            Ok(connection)
        };
        tokio::select! {
            // A broker that ends before it serves says why; the connection only says that it broke.
            biased;
            ended = &mut life => Err(failed(why(ended))),
            connection = connect => match connection {
                Ok(connection) => Ok(Self { connection, life }),
                Err(error) => Err(failed(early(life, error).await)),
            },
        }
    }

    /// The connection to it.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Disconnects, and waits until nothing of it is left.
    pub(super) async fn end(self) -> Result<(), CliError> {
        // A broker that is gone already has nothing to disconnect from.
        let _ = self.connection.close().await;
        match tokio::time::timeout(END, self.life).await {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(ended) => Err(CliError::Embedded { source: why(ended) }),
            Err(elapsed) => Err(CliError::Embedded { source: elapsed.into() }),
        }
    }
}

type Ended = Result<Result<(), EmbeddedError>, tokio::task::JoinError>;

fn why(ended: Ended) -> EmbeddedError {
    match ended {
        Ok(Ok(())) => "it ended before it served".into(),
        Ok(Err(error)) => error,
        Err(error) => error.into(),
    }
}

/// Why the connection broke: the broker's own word, where it gives one.
async fn early(life: JoinHandle<Result<(), EmbeddedError>>, error: zbus::Error) -> EmbeddedError {
    match tokio::time::timeout(Duration::from_secs(1), life).await {
        Ok(ended) => why(ended),
        Err(_) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use zbus::Guid;

    use super::*;

    fn serves(stream: UnixStream, ready: oneshot::Sender<()>) -> EmbeddedLife {
        Box::pin(async move {
            let guid = Guid::generate();
            let connection = Builder::unix_stream(stream).server(guid).p2p().build().await?;
            let _ = ready.send(());
            connection.closed().await;
            Ok(())
        })
    }

    fn refuses(_: UnixStream, _: oneshot::Sender<()>) -> EmbeddedLife {
        Box::pin(async { Err("Landlock is not enabled in this kernel".into()) })
    }

    #[tokio::test]
    async fn a_broker_is_reached_over_a_connection_of_its_own() {
        let broker = EmbeddedBroker::start(serves).await.unwrap();
        assert!(!broker.connection().is_bus());
        broker.end().await.unwrap();
    }

    fn serves_nothing(stream: UnixStream, _: oneshot::Sender<()>) -> EmbeddedLife {
        Box::pin(async move {
            let guid = Guid::generate();
            drop(Builder::unix_stream(stream).server(guid).p2p().build().await?);
            Err("no objects".into())
        })
    }

    #[tokio::test]
    async fn a_broker_that_ends_after_the_handshake_is_not_waited_for() {
        let error = EmbeddedBroker::start(serves_nothing).await.unwrap_err();
        assert_eq!(error.to_string(), "the embedded broker failed: no objects");
    }

    #[tokio::test]
    async fn a_broker_that_cannot_start_says_why() {
        let error = EmbeddedBroker::start(refuses).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the embedded broker failed: Landlock is not enabled in this kernel"
        );
    }
}
