//! Attaching from code that blocks and knows nothing of tasks.

use std::{
    os::unix::net::UnixStream,
    sync::mpsc::{RecvTimeoutError, sync_channel},
    time::Duration,
};

use tokio::runtime::Handle;

use super::{AttachOptions, ClientError, Session};

/// Attaches to one session as often as it is asked to, from any thread.
///
/// For a widget that takes a closure which gives it a connected socket, and calls it again at every
/// reconnect:
///
/// ```no_run
/// # use st2_tools::client::{AttachOptions, Connector, Framing, Session};
/// # fn attach_with_connector<F>(_: F)
/// # where F: FnMut() -> std::io::Result<std::os::unix::net::UnixStream> + Send + 'static {}
/// # async fn example(session: &Session) {
/// let options = AttachOptions { framing: Framing::Pty, ..AttachOptions::default() };
/// let connector = session.connector(options);
/// attach_with_connector(move || Ok(connector.connect()?));
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Connector {
    session: Session,
    options: AttachOptions,
    runtime: Handle,
    at_most: Duration,
}

impl Connector {
    /// How long [`Self::connect`] waits for the broker unless told otherwise.
    pub const AT_MOST: Duration = Duration::from_secs(10);

    /// Attaches with these options, over the connection that drives `session`.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub(super) fn new(session: Session, options: AttachOptions) -> Self {
        Self { session, options, runtime: Handle::current(), at_most: Self::AT_MOST }
    }

    /// Waits for the broker at most so long.
    #[must_use]
    pub fn within(self, at_most: Duration) -> Self {
        Self { at_most, ..self }
    }

    /// Attaches, and gives a fresh stream in blocking mode. Blocks; the runtime that the connector was made
    /// on does the work, so call it from no thread that this runtime needs for that.
    ///
    /// # Errors
    /// Any [`ClientError`]: [`super::Refusal::Closed`] or [`super::Refusal::NoSuchSession`] where there is
    /// nothing left to attach to, and [`ClientError::Gone`] where no answer came in time or the runtime
    /// ended.
    pub fn connect(&self) -> Result<UnixStream, ClientError> {
        let (answer, answered) = sync_channel(1);
        let Self { session, options, .. } = self.clone();
        self.runtime.spawn(async move {
            // Whoever asked may have stopped waiting; a stream that nobody takes is closed.
            let _ = answer.send(session.attach_socket(&options).await.map(|(stream, _)| stream));
        });
        answered.recv_timeout(self.at_most).unwrap_or_else(|error| {
            let reason = match error {
                RecvTimeoutError::Timeout => format!("no answer within {:?}", self.at_most),
                RecvTimeoutError::Disconnected => "the runtime of its client ended".to_owned(),
            };
            Err(ClientError::Gone { reason })
        })
    }
}
