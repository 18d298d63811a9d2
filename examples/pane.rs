//! A pane of a terminal program, without the drawing: it shows a shell, takes lines for it, and after a crash comes back
//! to the same shell.
//!
//! ```text
//! cargo run --example pane DIR                 # opens a shell in DIR, and tells the token that claims it
//! cargo run --example pane -- --claim TOKEN    # after that one was killed, within its grace of ten seconds
//! ```

use st2_tools::client::{
    AttachOptions, Client, ClientError, OpenOptions, Outcome, Refusal, Session, Start, Token,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy};
use zbus::Connection;

/// A session that this program shows, and what it must not lose.
#[derive(Debug)]
pub struct Pane {
    /// The session.
    pub session: Session,
    /// What claims the session after a crash of this program. To be kept where only its user can read it.
    pub token: Token,
}

impl Pane {
    /// Opens a shell in a workspace. It lives for this connection, and a grace after that.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn open(connection: Connection, workspace: &str) -> Result<Self, ClientError> {
        let client = Client::over(connection).await?;
        let options = OpenOptions { workspace: Some(workspace.into()), ..OpenOptions::default() };
        let opened = client.open("shell", &options).await?;
        Ok(Self { session: opened.session, token: opened.token })
    }

    /// Comes back to what another run opened. It lives for this connection from now on.
    ///
    /// # Errors
    /// Any [`ClientError`]; [`Refusal::BadToken`] where it is too late.
    pub async fn claim(connection: Connection, token: &Token) -> Result<Option<Self>, ClientError> {
        let claimed = Client::over(connection).await?.claim(token).await?;
        let session = claimed.sessions.into_iter().next();
        Ok(session.map(|session| Self { session, token: claimed.token }))
    }

    /// Shows the session until it ends, beginning with its screen, and types what it is given; gives how it ended.
    ///
    /// To begin with older output instead would show the terminal what the tool has asked of terminals before, and have
    /// it answered once more.
    ///
    /// # Errors
    /// Any [`ClientError`]; [`ClientError::Stream`] where `typed` or `shown` fails.
    pub async fn carry(
        &self,
        mut typed: impl AsyncRead + Unpin,
        mut shown: impl AsyncWrite + Unpin,
    ) -> Result<Outcome, ClientError> {
        let options = AttachOptions { start: Start::Screen, ..AttachOptions::default() };
        let (mut from, mut to) = match self.session.attach(&options).await {
            Ok(attached) => attached.into_split(),
            Err(error) if error.refusal() == Some(Refusal::Closed) => {
                return self.session.ended().await;
            }
            Err(error) => return Err(error),
        };
        let show = async {
            copy(&mut from, &mut shown).await?;
            shown.flush().await
        };
        let typing = async {
            copy(&mut typed, &mut to).await?;
            // The end of what is typed is not the end of the session.
            std::future::pending().await
        };
        tokio::select! {
            shown = show => shown,
            typed = typing => typed,
        }
        .map_err(|source| ClientError::Stream { source })?;
        self.session.ended().await
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let connection = Connection::session().await?;
    let pane = match &arguments[..] {
        [claim, token] if claim == "--claim" => {
            let claimed = Pane::claim(connection, &token.as_str().into()).await?;
            claimed.ok_or("the lease has no session any more")?
        }
        [workspace] => Pane::open(connection, workspace).await?,
        _ => return Err("usage: pane DIR | pane --claim TOKEN".into()),
    };
    eprintln!("should this program be killed: pane --claim {}", pane.token.reveal());
    let outcome = pane.carry(tokio::io::stdin(), tokio::io::stdout()).await?;
    eprintln!("{:?} ({})", outcome.ending, outcome.reason);
    // A read of standard input cannot be given up, and would hold up the runtime's own end.
    std::process::exit(0)
}
