//! One session, as the subcommands that name it reach it.

use std::time::Duration;

use clap::Args;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

use super::{connect::Reach, error::CliError, human, tokens};
use crate::client::{Client, ClientError, Dict, Refusal, Session, SessionId, Token};

/// How long a session that does not read its input is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is tried meanwhile.
const RETRY: Duration = Duration::from_millis(50);

/// Which session, and by what right.
#[derive(Debug, Args)]
pub(super) struct Target {
    /// The session's id, or the path of its object
    #[arg(value_name = "ID")]
    id: SessionId,

    /// A token of its lease, or one of `share` [default: the one that `open` kept]
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

/// How the token of a share begins.
const SHARE: &str = "share-";

/// Does what gives a session input, as soon as it has room for it.
pub(super) async fn patiently<T>(
    give: impl AsyncFn() -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match give().await {
            Err(error)
                if error.refusal() == Some(Refusal::InputFull) && Instant::now() < deadline =>
            {
                sleep(RETRY).await;
            }
            result => return result,
        }
    }
}

/// A session, reached.
#[derive(Debug)]
pub(super) struct Reached {
    /// The session.
    pub(super) session: Session,
    /// Keeps its lease while it is used.
    lease: Option<Holder>,
    /// Whether it is reached by a share, which each call shows.
    shared: bool,
}

impl Target {
    /// Reaches the session. With a token, this connection becomes a holder of its lease: it may control the
    /// session, and observe a private one.
    ///
    /// A token that is given must be right; one that was kept may have been claimed by another since.
    pub(super) async fn reach(self, reach: &Reach) -> Result<Reached, CliError> {
        let client = reach.bus().await?;
        let session = client.session(self.id).await?;
        if let Some(token) = self.token.as_deref().filter(|token| token.starts_with(SHARE)) {
            let session = session.with_token(Token::from(token));
            return Ok(Reached { session, lease: None, shared: true });
        }
        let mut reached = Reached { session, lease: None, shared: false };
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
                sleep((left / 2).max(RENEWAL_MIN)).await;
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

    /// Presses Enter, once the session has room for it. `Submit` takes no token; on pipes there are no keys.
    pub(super) async fn press_enter(&self) -> Result<(), CliError> {
        let press = async || {
            if !self.shared {
                return self.session.submit().await;
            }
            match self.session.send_keys(&["enter"]).await {
                Err(error) if error.refusal() == Some(Refusal::NotATerminal) => {
                    self.session.write(b"\n").await.map(drop)
                }
                pressed => pressed,
            }
        };
        self.told(patiently(press).await).await
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
