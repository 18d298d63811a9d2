//! A client of the broker: typed proxies of the bus contract and a small asynchronous client over them.
//!
//! It stands alone: nothing here knows how the broker is built. A [`Client`] works over any
//! [`zbus::Connection`] that leads to a broker: the user bus, or a private peer-to-peer one.
//!
//! ```no_run
//! use st2_tools::client::{AttachOptions, Client, OpenOptions};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::over(zbus::Connection::session().await?).await?;
//! let options = OpenOptions { workspace: Some("/home/me/project".into()), ..Default::default() };
//! let opened = client.open("shell", &options).await?;
//!
//! // The terminal's bytes, both ways.
//! let mut terminal = opened.session.attach(&AttachOptions::default()).await?;
//! terminal.write_all(b"git status; exit\r").await?;
//! let mut shown = Vec::new();
//! terminal.read_to_end(&mut shown).await?;
//! println!("{:?}", opened.session.ended().await?.ending);
//!
//! // Had this program crashed before, its next run would have had the grace to come back:
//! let claimed = client.claim(&opened.token).await?;
//! # Ok(())
//! # }
//! ```
//!
//! A [`Session`] lives as long as its lease: by default that of the connection that opened it. To drop a
//! stream, a [`Session`] or a [`Client`] ends nothing; to lose the connection begins the grace, in which
//! the [`Token`] of the lease claims it ([`Client::claim`]).
#![forbid(unsafe_code)]

mod attach;
mod broker;
mod connector;
mod dict;
mod error;
mod held;
mod id;
pub mod manager;
mod open;
mod outcome;
mod read;
mod sendable;
pub mod session;
mod session_client;
mod token;

pub use self::{
    attach::{AttachOptions, Attached, Framing, Mode, Start},
    broker::{Claimed, Client, Events, Filter, Opened},
    connector::Connector,
    dict::Dict,
    error::{ClientError, Refusal, Step},
    held::Held,
    id::{SessionId, SessionIdError},
    open::{Io, Lease, OpenOptions, Stdin},
    outcome::{Ending, Outcome},
    read::{Chunk, PASTE_MAX, READ_MAX, ReadOptions, Stream, WRITE_MAX},
    session_client::{Bracketed, Session},
    token::Token,
};

/// The broker's well-known name.
pub const BUS_NAME: &str = "org.st2.Tools";
/// The root object.
pub const ROOT_PATH: &str = "/org/st2/Tools";
/// Under which each session has its object.
pub const SESSION_PATH: &str = "/org/st2/Tools/session";
