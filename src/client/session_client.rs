//! One session, as its client sees it.

use std::{
    os::{fd::OwnedFd, unix::net::UnixStream},
    time::Duration,
};

use serde_bytes::Bytes;
use zbus::{
    Connection,
    fdo::PropertiesProxy,
    proxy::{CacheProperties, MethodFlags},
};

use super::{
    AttachOptions, Attached, BUS_NAME, Chunk, ClientError, Connector, Dict, Held, Mode, Outcome,
    ReadOptions, SessionId, Token, open::milliseconds, sendable, session::SessionProxy,
};

/// The interface of a session's object.
const INTERFACE: &str = "org.st2.Tools.Session1";

/// How a text is pasted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Bracketed {
    /// Between marks where the tool has asked for them.
    #[default]
    Auto,
    /// Between marks.
    On,
    /// As if it were typed.
    Off,
}

impl Bracketed {
    fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

/// Longest single `Wait`: a longer wait is many.
const WAIT: Duration = Duration::from_secs(60);

/// A session of the broker; cheap to clone.
#[derive(Debug, Clone)]
pub struct Session {
    id: SessionId,
    proxy: SessionProxy<'static>,
    token: Option<Token>,
}

impl Session {
    /// The session of this id, over a connection that leads to its broker. Nothing is asked yet.
    pub(super) async fn over(connection: &Connection, id: SessionId) -> Result<Self, ClientError> {
        let proxy = SessionProxy::builder(connection)
            .destination(BUS_NAME)
            .path(id.path())
            .cache_properties(CacheProperties::No)
            .build()
            .await?;
        Ok(Self { id, proxy, token: None })
    }

    /// The same session, whose calls show a token: that of its lease, or one that its owner gave ([`Self::share`]).
    /// Calls that take no token are as before: `signal`, `interrupt`, `kill`, `submit` and others.
    #[must_use]
    pub fn with_token(&self, token: Token) -> Self {
        Self { token: Some(token), ..self.clone() }
    }

    /// The options of a call, with the token.
    fn shown(&self, options: Dict) -> Result<Dict, ClientError> {
        let token = self.token.as_ref().map(|token| token.reveal().to_owned());
        sendable::dict(options.with_some("token", token))
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Its proxy, for what has no method here.
    #[must_use]
    pub fn proxy(&self) -> &SessionProxy<'static> {
        &self.proxy
    }

    /// Every property, by name.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn properties(&self) -> Result<Dict, ClientError> {
        let properties = PropertiesProxy::builder(self.proxy.inner().connection())
            .destination(BUS_NAME)
            .path(self.id.path())
            .build()
            .await?;
        let flags = MethodFlags::NO_AUTO_START;
        let reply: Option<Dict> =
            properties.inner().call_with_flags("GetAll", flags, &(INTERFACE,)).await?;
        reply.ok_or(ClientError::Missing { call: "GetAll", key: "reply" })
    }

    /// Attaches a stream.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn attach(&self, options: &AttachOptions) -> Result<Attached, ClientError> {
        let (stream, info) = self.attach_socket(options).await?;
        Attached::new(stream, &info)
    }

    /// Attaches from code that blocks, as often as it wants.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn connector(&self, options: AttachOptions) -> Connector {
        Connector::new(self.clone(), options)
    }

    /// Holds the controller end of the terminal itself, where the tool declares it (`direct = true`): for a
    /// terminal that needs the descriptor. All other streams end.
    ///
    /// # Errors
    /// Any [`ClientError`]; [`super::Refusal::NotPermitted`] where it is not declared, and
    /// [`super::Refusal::LimitReached`] where another holds it.
    pub async fn hold(&self) -> Result<Held, ClientError> {
        let options = self.shown(Dict::new().with("framing", "direct"))?;
        let (stream, info) = self.proxy.attach(&options).await?;
        Held::new(OwnedFd::from(stream).into(), &info)
    }

    /// A fresh stream in blocking mode, and the answer's info.
    pub(super) async fn attach_socket(
        &self,
        options: &AttachOptions,
    ) -> Result<(UnixStream, Dict), ClientError> {
        let options = options.to_dict();
        let options = match options.get("token") {
            Some(_) => sendable::dict(options)?,
            None => self.shown(options)?,
        };
        let (stream, info) = self.proxy.attach(&options).await?;
        Ok((OwnedFd::from(stream).into(), info))
    }

    /// Reads output from an absolute offset on, at most `max` bytes.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn read(
        &self,
        cursor: u64,
        max: u32,
        options: &ReadOptions,
    ) -> Result<Chunk, ClientError> {
        let (data, begin, next, eof) =
            self.proxy.read(cursor, max, &self.shown(options.to_dict())?).await?;
        Ok(Chunk { data: data.into_vec(), begin, next, eof })
    }

    /// Writes input, at most [`super::WRITE_MAX`] bytes; gives how many were accepted since it began.
    ///
    /// # Errors
    /// Any [`ClientError`]; nothing of the input was accepted then.
    pub async fn write(&self, data: &[u8]) -> Result<u64, ClientError> {
        Ok(self.proxy.write(Bytes::new(data), &self.shown(Dict::new())?).await?)
    }

    /// Presses keys by name (`enter`, `C-c`, `M-x`, `f5`, `a`), at most 1024, all or none.
    ///
    /// # Errors
    /// Any [`ClientError`], with [`super::Refusal::InvalidArgs`] for what is no key; nothing was pressed then.
    pub async fn send_keys(&self, keys: &[impl AsRef<str>]) -> Result<(), ClientError> {
        let keys = keys.iter().map(|key| sendable::text("a key", key.as_ref()));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        Ok(self.proxy.send_keys(&keys, &self.shown(Dict::new())?).await?)
    }

    /// Pastes a text, at most [`super::PASTE_MAX`] bytes.
    ///
    /// # Errors
    /// Any [`ClientError`], with [`super::Refusal::InvalidArgs`] for a text that holds NUL or the end of a paste;
    /// nothing was pasted then.
    pub async fn paste(&self, text: &str, bracketed: Bracketed) -> Result<(), ClientError> {
        let options = Dict::new().with("bracketed", bracketed.as_str());
        let text = sendable::text("the text", text)?;
        Ok(self.proxy.paste(text, &self.shown(options)?).await?)
    }

    /// Presses Enter in a write of its own, after everything written before. Only for who may control the session
    /// without a token.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn submit(&self) -> Result<(), ClientError> {
        Ok(self.proxy.submit().await?)
    }

    /// Makes a token with which others may observe or control this session, until it is forgotten or its lease
    /// claimed. Only its owner may.
    ///
    /// # Errors
    /// Any [`ClientError`]; [`super::Refusal::LimitReached`] where there are 16.
    pub async fn share(&self, mode: Mode) -> Result<Token, ClientError> {
        Ok(self.proxy.share(mode.as_str()).await?.into())
    }

    /// Writes input, at most [`super::WRITE_MAX`] bytes, and ends it: standard input of a session on pipes is closed
    /// after them, a terminal gets its end-of-file character. Gives how many bytes were accepted since it began.
    ///
    /// # Errors
    /// Any [`ClientError`]; where it is [`super::Refusal::NotPermitted`] of a terminal in raw mode, the input itself was
    /// accepted.
    pub async fn write_last(&self, data: &[u8]) -> Result<u64, ClientError> {
        Ok(self.proxy.write(Bytes::new(data), &self.shown(Dict::new().with("eof", true))?).await?)
    }

    /// Sets the terminal's size.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn resize(&self, columns: u16, rows: u16) -> Result<(), ClientError> {
        Ok(self.proxy.resize(columns, rows, &self.shown(Dict::new())?).await?)
    }

    /// Ends it gently, at most so long before it is killed; gives the outcome.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn close(&self, timeout: Option<Duration>) -> Result<Dict, ClientError> {
        let options = Dict::new().with_some("timeout_ms", timeout.map(milliseconds));
        Ok(self.proxy.close(&self.shown(options)?).await?)
    }

    /// Ends it at once; gives the outcome.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn kill(&self) -> Result<Dict, ClientError> {
        Ok(self.proxy.kill().await?)
    }

    /// Waits for its end, however long; gives how it ended and why.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn ended(&self) -> Result<Outcome, ClientError> {
        Outcome::try_from(&self.wait().await?)
    }

    /// Waits for its end, however long; gives the outcome as the bus carries it.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn wait(&self) -> Result<Dict, ClientError> {
        loop {
            if let (true, outcome) = self.proxy.wait(milliseconds(WAIT)).await? {
                return Ok(outcome);
            }
        }
    }
}
