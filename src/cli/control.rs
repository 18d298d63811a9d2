//! One session, as the subcommands that name it reach it.

use std::time::Duration;

use clap::Args;
use tokio::task::JoinHandle;

use super::{connect::Reach, error::CliError, human, tokens};
use crate::client::{Client, ClientError, Dict, Refusal, Session, SessionId, Token};

/// Which session, and by what right.
#[derive(Debug, Args)]
pub(super) struct Target {
    /// The session's id, or the path of its object
    #[arg(value_name = "ID")]
    id: SessionId,

    /// A token of its lease [default: the one that `open` kept]
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

/// A session, reached.
#[derive(Debug)]
pub(super) struct Reached {
    /// The session.
    pub(super) session: Session,
    /// Keeps its lease while it is used.
    lease: Option<Holder>,
}

impl Target {
    /// Reaches the session. With a token, this connection becomes a holder of its lease: it may control the
    /// session, and observe a private one.
    ///
    /// A token that is given must be right; one that was kept may have been claimed by another since.
    pub(super) async fn reach(self, reach: &Reach) -> Result<Reached, CliError> {
        let client = reach.bus().await?;
        let mut reached = Reached { session: client.session(self.id).await?, lease: None };
        let kept = tokens::find(reached.session.id());
        let is_given = self.token.is_some();
        let Some(token) = self.token.or(kept).map(Token::from) else { return Ok(reached) };
        match client.renew(&token).await {
            Ok(expires) => reached.lease = Some(Holder::hold(client, token, expires)),
            Err(error) if is_given => return reached.told(Err(error)).await,
            Err(error) if error.refusal() == Some(Refusal::BadToken) => {
                tokens::forget(reached.session.id());
            }
            // The call that follows says what is wrong.
            Err(_) => {}
        }
        Ok(reached)
    }
}

/// Renews a token lease in time, for as long as it is there.
#[derive(Debug)]
struct Holder(JoinHandle<()>);

/// The shortest time between two renewals.
const RENEWAL_MIN: Duration = Duration::from_millis(250);

impl Holder {
    fn hold(client: Client, token: Token, expires_usec: u64) -> Self {
        Self(tokio::spawn(async move {
            let mut expires = expires_usec;
            loop {
                let left = Duration::from_micros(expires.saturating_sub(human::now_usec()));
                tokio::time::sleep((left / 2).max(RENEWAL_MIN)).await;
                match client.renew(&token).await {
                    Ok(renewed) => expires = renewed,
                    // Claimed by another, or gone with its sessions: theirs to notice.
                    Err(_) => return,
                }
            }
        }))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Reached {
    /// The result of a call to the session; a failure names the session, and its unit for who may not control it.
    pub(super) async fn told<T>(&self, result: Result<T, ClientError>) -> Result<T, CliError> {
        let source = match result {
            Ok(value) => return Ok(value),
            Err(source) => source,
        };
        let unit = match source.refusal() {
            Some(Refusal::NotOwner) => self.unit().await,
            _ => None,
        };
        Err(CliError::Session { id: self.session.id().clone(), unit, source })
    }

    /// The outcome that ending the session gave. One that is over has its outcome for everybody, whoever
    /// owned it.
    pub(super) async fn ended(&self, result: Result<Dict, ClientError>) -> Result<Dict, CliError> {
        if let Err(error) = &result
            && error.refusal() == Some(Refusal::NotOwner)
            && let Ok(properties) = self.session.properties().await
            && properties.text("Phase") == Some("closed")
            && let Some(outcome) = properties.dict("Outcome")
        {
            return Ok(outcome);
        }
        self.told(result).await
    }

    async fn unit(&self) -> Option<String> {
        let properties = self.session.properties().await.ok()?;
        properties.text("Unit").map(str::to_owned)
    }

    /// Lets go of a session that is over: its lease, and the token that was kept.
    pub(super) fn over(self) {
        drop(self.lease);
        tokens::forget(self.session.id());
    }
}
