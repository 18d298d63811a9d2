//! The broker, as its client sees it.

use std::collections::BTreeMap;

use zbus::{Connection, proxy::CacheProperties};

use super::{
    BUS_NAME, ClientError, Dict, OpenOptions, Session, SessionId, Token, manager::ManagerProxy,
    sendable,
};

/// A client of one broker; cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    connection: Connection,
    manager: ManagerProxy<'static>,
}

/// What `Open` gave.
#[derive(Debug)]
pub struct Opened {
    /// The session.
    pub session: Session,
    /// What claims its lease, should this connection be lost.
    pub token: Token,
    /// Whether it was there already ([`OpenOptions::reuse`]).
    pub reused: bool,
    /// All of it, as the bus carries it: `unit`, `pid`, `token`, `confinement` and others.
    pub info: Dict,
}

/// A piece of the log of lifecycle events.
#[derive(Debug)]
pub struct Events {
    /// One row an event, the oldest first: `seq`, `at_usec`, `kind`, `session`, `tool`, `labels` and what its kind adds.
    pub rows: Vec<Dict>,
    /// What to go on after.
    pub next: u64,
}

/// What a claim gave.
#[derive(Debug)]
pub struct Claimed {
    /// What claims the lease the next time; the token that was shown is dead.
    pub token: Token,
    /// The lease's sessions, which are this connection's now.
    pub sessions: Vec<Session>,
}

/// Which sessions are meant: all of them where nothing is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those in this phase.
    pub phase: Option<String>,
    /// Only those of this tool.
    pub tool: Option<String>,
    /// Only those with these labels.
    pub labels: BTreeMap<String, String>,
}

impl Opened {
    /// Whether it has pipes because no pty could be opened ([`OpenOptions::io_fallback`]).
    #[must_use]
    pub fn fell_back(&self) -> bool {
        self.info.flag("io_fallback").unwrap_or_default()
    }
}

impl Client {
    /// A client over a connection that leads to a broker. Nothing is asked yet.
    ///
    /// # Errors
    /// [`ClientError::Protocol`] where the proxy cannot be made.
    pub async fn over(connection: Connection) -> Result<Self, ClientError> {
        let manager = ManagerProxy::builder(&connection)
            .destination(BUS_NAME)
            .cache_properties(CacheProperties::No)
            .build()
            .await?;
        Ok(Self { connection, manager })
    }

    /// The manager's proxy, for what has no method here.
    #[must_use]
    pub fn manager(&self) -> &ManagerProxy<'static> {
        &self.manager
    }

    /// Waits until the connection is gone: its sessions are in their grace then, and no call is answered any more.
    pub async fn gone(&self) {
        self.connection.closed().await;
    }

    /// The session of this id; whether there is one shows with the first call to it.
    ///
    /// # Errors
    /// [`ClientError::Protocol`] where the proxy cannot be made.
    pub async fn session(&self, id: SessionId) -> Result<Session, ClientError> {
        Session::over(&self.connection, id).await
    }

    /// Opens a tool.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn open(&self, tool: &str, options: &OpenOptions) -> Result<Opened, ClientError> {
        let options = sendable::dict(options.to_dict())?;
        let (path, info) = self.manager.open(sendable::text("tool", tool)?, &options).await?;
        let session = self.at("Open", path.as_str()).await?;
        let token =
            info.text("token").ok_or(ClientError::Missing { call: "Open", key: "token" })?;
        let reused = info.flag("reused").unwrap_or(false);
        Ok(Opened { session, token: token.into(), reused, info })
    }

    /// Makes this connection the owner of a lease and its sessions: one whose owner vanished and whose
    /// grace still runs, or one that another still has, who loses it.
    ///
    /// # Errors
    /// Any [`ClientError`]; [`super::Refusal::BadToken`] where it is none, or too late.
    pub async fn claim(&self, token: &Token) -> Result<Claimed, ClientError> {
        let (token, paths) = self.manager.claim_lease(token.sendable()?).await?;
        let mut sessions = Vec::with_capacity(paths.len());
        for path in &paths {
            sessions.push(self.at("ClaimLease", path.as_str()).await?);
        }
        Ok(Claimed { token: token.into(), sessions })
    }

    async fn at(&self, call: &'static str, path: &str) -> Result<Session, ClientError> {
        let key = "session path";
        let id = path.parse().map_err(|_| ClientError::Missing { call, key })?;
        self.session(id).await
    }

    /// The sessions that the filter means, one row each.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn sessions(&self, filter: &Filter) -> Result<Vec<Dict>, ClientError> {
        Ok(self.manager.list_sessions(&sendable::dict(filter.to_dict())?).await?)
    }

    /// The log of lifecycle events after this one (0: from the oldest kept), at most so many and never more than 1024. A
    /// gap in `seq` is of events that are dropped, or of others' private sessions.
    ///
    /// # Errors
    /// Any [`ClientError`]; [`super::Refusal::BadCursor`] where there was no such event, as after a broker's restart.
    pub async fn list_events(&self, after: u64, limit: u32) -> Result<Events, ClientError> {
        let (rows, next) = self.manager.list_events(after, limit).await?;
        Ok(Events { rows, next })
    }

    /// The catalogue, one row a tool.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn tools(&self) -> Result<Vec<Dict>, ClientError> {
        Ok(self.manager.list_tools().await?)
    }

    /// What `Open` would do.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn explain(&self, tool: &str, options: &OpenOptions) -> Result<Dict, ClientError> {
        let options = sendable::dict(options.to_dict())?;
        Ok(self.manager.explain(sendable::text("tool", tool)?, &options).await?)
    }

    /// Extends a token lease; this connection may control its sessions until it disconnects. Gives
    /// the new end, µs since the epoch.
    ///
    /// # Errors
    /// Any [`ClientError`]; [`super::Refusal::BadToken`] where it is none.
    pub async fn renew(&self, token: &Token) -> Result<u64, ClientError> {
        Ok(self.manager.renew_lease(token.sendable()?).await?)
    }
}

impl Filter {
    /// The filter as the bus carries it.
    #[must_use]
    pub fn to_dict(&self) -> Dict {
        self.labels.iter().fold(
            Dict::new().with_some("phase", self.phase.clone()).with_some("tool", self.tool.clone()),
            |dict, (name, value)| dict.with(&format!("label.{name}"), value.clone()),
        )
    }
}
