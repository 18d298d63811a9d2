//! The way to a broker: the user bus, and for what leaves no session behind also an embedded one.

use zbus::Connection;

use super::{
    embedded::{Embedded, EmbeddedBroker},
    error::{CliError, say},
    human::visible,
};
use crate::client::{Client, ClientError, Io, OpenOptions, Opened};

/// How a broker may be reached.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// The broker to fall back to where no session is to outlive the command.
    pub(super) embedded: Option<Embedded>,
}

/// A session opened for `run`, and the broker it lives in.
#[derive(Debug)]
pub(super) struct Reached {
    /// What `Open` gave.
    pub(super) opened: Opened,
    /// The broker, where it is ours.
    pub(super) embedded: Option<EmbeddedBroker>,
}

/// A broker that is there for as long as this program is.
#[derive(Debug)]
pub(super) struct Held {
    /// A client of it.
    pub(super) client: Client,
    /// The broker, where it is ours.
    embedded: Option<EmbeddedBroker>,
}

impl Held {
    /// Ends it, where it is ours; waits until nothing of it is left.
    pub(super) async fn end(self) -> Result<(), CliError> {
        match self.embedded {
            Some(broker) => broker.end().await,
            None => Ok(()),
        }
    }
}

impl Reach {
    /// Holds a broker: that on the user bus, or an embedded one where no bus leads to a broker.
    pub(super) async fn hold(&self) -> Result<Held, CliError> {
        let greet = async |client: &Client| {
            client.manager().version().await?;
            Ok(client.clone())
        };
        let failed = |source| CliError::Client(source);
        let absent = match self.ask_bus(greet, failed).await? {
            Asked::Answered(client) => return Ok(Held { client, embedded: None }),
            Asked::Absent(why) => why,
        };
        say(&format!("using an embedded broker: {}", visible(&absent.to_string())));
        let (client, broker) = self.ask_embedded(absent, greet, failed).await?;
        Ok(Held { client, embedded: Some(broker) })
    }

    /// A client of the broker on the user bus. It need not run: the bus may start it.
    pub(super) async fn bus(&self) -> Result<Client, CliError> {
        let connection =
            Connection::session().await.map_err(|source| CliError::NoBus { source })?;
        Ok(Client::over(connection).await?)
    }

    /// Opens a tool: in the broker on the user bus, or in an embedded one where no bus leads to a broker.
    /// `verbose` tells which, and how it confines.
    pub(super) async fn open(
        &self,
        tool: &str,
        options: &OpenOptions,
        verbose: bool,
    ) -> Result<Reached, CliError> {
        let open = async |client: &Client| {
            let ring_bytes = Some(ring(client, options).await?);
            let opened = client.open(tool, &OpenOptions { ring_bytes, ..options.clone() }).await?;
            if verbose {
                tell_confinement(client, &opened).await;
            }
            Ok(opened)
        };
        let failed = |source| CliError::Open { source };
        let absent = match self.ask_bus(&open, failed).await? {
            Asked::Answered(opened) => return Ok(Reached { opened, embedded: None }),
            Asked::Absent(why) => why,
        };
        // A broker that is installed and does not start is a fault somebody should hear of.
        let fault = matches!(absent, CliError::Client(ClientError::Activation { .. }));
        if self.embedded.is_some() && (verbose || fault) {
            say(&format!("using an embedded broker: {}", visible(&absent.to_string())));
        }
        let (opened, broker) = self.ask_embedded(absent, &open, failed).await?;
        Ok(Reached { opened, embedded: Some(broker) })
    }

    /// Asks what needs no session: the broker on the user bus, or an embedded one where there is none.
    pub(super) async fn ask<T>(
        &self,
        question: impl AsyncFn(&Client) -> Result<T, ClientError>,
        failed: impl Fn(ClientError) -> CliError,
    ) -> Result<T, CliError> {
        let absent = match self.ask_bus(&question, &failed).await? {
            Asked::Answered(answer) => return Ok(answer),
            // What is installed would have answered, and perhaps otherwise.
            Asked::Absent(why @ CliError::Client(ClientError::Activation { .. })) => {
                return Err(why);
            }
            Asked::Absent(why) => why,
        };
        let (answer, broker) = self.ask_embedded(absent, &question, failed).await?;
        broker.end().await?;
        Ok(answer)
    }

    async fn ask_bus<T>(
        &self,
        question: impl AsyncFn(&Client) -> Result<T, ClientError>,
        failed: impl Fn(ClientError) -> CliError,
    ) -> Result<Asked<T>, CliError> {
        let client = match self.bus().await {
            Ok(client) => client,
            Err(error @ CliError::NoBus { .. }) => return Ok(Asked::Absent(error)),
            Err(error) => return Err(error),
        };
        match question(&client).await {
            Ok(answer) => Ok(Asked::Answered(answer)),
            Err(error @ (ClientError::Absent { .. } | ClientError::Activation { .. })) => {
                Ok(Asked::Absent(error.into()))
            }
            Err(error) => Err(failed(error)),
        }
    }

    async fn ask_embedded<T>(
        &self,
        absent: CliError,
        question: impl AsyncFn(&Client) -> Result<T, ClientError>,
        failed: impl Fn(ClientError) -> CliError,
    ) -> Result<(T, EmbeddedBroker), CliError> {
        let Some(embedded) = self.embedded else {
            return Err(CliError::NoEmbedded { why: absent.to_string() });
        };
        let broker = EmbeddedBroker::start(embedded).await?;
        let client = Client::over(broker.connection().clone()).await?;
        match question(&client).await {
            Ok(answer) => Ok((answer, broker)),
            Err(source) => {
                broker.end().await?;
                Err(failed(source))
            }
        }
    }
}

/// The output ring of `run`: a tool may write much before its terminal is attached.
const RING: u64 = 1 << 20;

/// On pipes the largest there is: a tool's data, of which no byte is to be skipped where it can be helped.
const RING_OF_PIPES: u64 = 4 << 20;

/// What was asked for, or as much of [`RING`] as this broker allows.
async fn ring(client: &Client, options: &OpenOptions) -> Result<u64, ClientError> {
    match options.ring_bytes {
        Some(asked) => Ok(asked),
        None => {
            let limits = client.manager().limits().await?;
            let wanted = if options.io == Some(Io::Pipe) { RING_OF_PIPES } else { RING };
            Ok(limits.get("ring_max_bytes").map_or(wanted, |most| wanted.min(*most)))
        }
    }
}

/// Whether there was a broker on the user bus to ask.
enum Asked<T> {
    /// It answered.
    Answered(T),
    /// There is none, and why.
    Absent(CliError),
}

/// One line of where a session runs and what its confinement leaves open. No reason to fail where the broker is gone
/// already: the session tells.
async fn tell_confinement(client: &Client, opened: &Opened) {
    let Ok(backend) = client.manager().backend().await else { return };
    let Some(confinement) = opened.info.dict("confinement") else { return };
    let gaps = match confinement.texts("gaps").as_slice() {
        [] => "none".to_owned(),
        gaps => gaps.join(", "),
    };
    say(&visible(&format!(
        "session {}, backend {backend}, tier {}, Landlock ABI {}, gaps: {gaps}",
        opened.session.id(),
        confinement.text("tier").unwrap_or("unknown"),
        confinement.number("landlock_abi").unwrap_or_default(),
    )));
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, os::unix::net::UnixStream};

    use tokio::sync::oneshot;
    use zbus::{Guid, OwnedObjectPath, OwnedVariant, connection::Builder, fdo, interface};

    use super::*;
    use crate::{cli::embedded::EmbeddedLife, client::Dict};

    struct Manager;

    #[interface(name = "org.st2.Tools.Manager1")]
    impl Manager {
        fn open(
            &self,
            tool: &str,
            _options: HashMap<String, OwnedVariant>,
        ) -> fdo::Result<(OwnedObjectPath, HashMap<String, OwnedVariant>)> {
            match tool {
                "shell" => {
                    let path = OwnedObjectPath::try_from("/org/st2/Tools/session/e1").unwrap();
                    let info = Dict::new().with("token", "1-2").into_iter().collect();
                    Ok((path, info))
                }
                other => Err(fdo::Error::InvalidArgs(format!("no {other}"))),
            }
        }
    }

    /// Its one object comes after the handshake, as the real one's does.
    fn embedded(stream: UnixStream, ready: oneshot::Sender<()>) -> EmbeddedLife {
        Box::pin(async move {
            let builder = Builder::unix_stream(stream).server(Guid::generate()).p2p();
            let connection = builder.serve_at("/", fdo::ObjectManager).build().await?;
            tokio::task::yield_now().await;
            connection.object_server().at("/org/st2/Tools", Manager).await?;
            let _ = ready.send(());
            connection.closed().await;
            Ok(())
        })
    }

    fn absent() -> CliError {
        ClientError::Absent { reason: "nobody has the name".into() }.into()
    }

    async fn open_embedded(
        reach: &Reach,
        tool: &str,
    ) -> Result<(Opened, EmbeddedBroker), CliError> {
        let open = async |client: &Client| client.open(tool, &OpenOptions::default()).await;
        reach.ask_embedded(absent(), open, |source| CliError::Open { source }).await
    }

    #[tokio::test]
    async fn without_a_broker_on_the_bus_the_embedded_one_opens_the_tool() {
        let reach = Reach { embedded: Some(embedded) };
        let (opened, broker) = open_embedded(&reach, "shell").await.unwrap();
        assert_eq!(opened.session.id().as_str(), "e1");
        broker.end().await.unwrap();
        let refused = open_embedded(&reach, "nothing").await.unwrap_err();
        assert_eq!(refused.to_string(), "no nothing");
    }

    #[tokio::test]
    async fn without_any_broker_the_reason_is_that_of_the_bus() {
        let reach = Reach { embedded: None };
        let refused = open_embedded(&reach, "shell").await;
        assert_eq!(
            refused.unwrap_err().to_string(),
            "no broker is running: nobody has the name; this build has no embedded broker either"
        );
    }
}
