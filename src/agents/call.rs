//! One call of a client: its patience, and what it is told while it waits.

use std::time::Duration;

use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::{Peer, RequestContext},
};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_util::sync::CancellationToken;

use super::failure::{Code, Failure};

/// How often a client that asked for it is told that a wait goes on.
const PROGRESS: Duration = Duration::from_secs(1);

/// A call that is being answered. It may be cancelled: that ends its waits, and nothing else.
#[derive(Debug, Clone)]
pub struct Call {
    cancelled: CancellationToken,
    progress: Option<(Peer<RoleServer>, ProgressToken)>,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited<T> {
    /// What was waited for came.
    Came(T),
    /// It did not come in time.
    TimedOut,
    /// Nobody waits any more.
    Cancelled,
}

impl Call {
    /// The call of a request.
    #[must_use]
    pub fn of(context: &RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        Self {
            cancelled: context.ct.clone(),
            progress: token.map(|token| (context.peer.clone(), token)),
        }
    }

    /// Whether nobody waits for the answer any more.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Waits for an event, at most so long; tells the client that it does, once a second.
    pub async fn wait<T>(&self, most: Duration, event: impl Future<Output = T>) -> Waited<T> {
        match timeout(most, self.tell_until(Some(most), event)).await {
            Ok(Some(value)) => Waited::Came(value),
            Ok(None) => Waited::Cancelled,
            Err(_) => Waited::TimedOut,
        }
    }

    /// Waits for an event that comes by itself in a while; none where nobody waits any more.
    pub async fn wait_long<T>(&self, event: impl Future<Output = T>) -> Option<T> {
        self.tell_until(None, event).await
    }

    /// Waits for what goes on to its end whether or not anybody waits: a session is not lost half-way, and no message to
    /// the bus is cut, which would cost the connection.
    ///
    /// # Errors
    /// Its own; `code`, saying `what` was being done, where nobody waits any more.
    pub async fn see_through<T: Send + 'static>(
        &self,
        code: Code,
        what: &str,
        doing: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        match self.wait_long(tokio::spawn(doing)).await {
            Some(Ok(done)) => done,
            Some(Err(_)) => Err(Failure::recoverable(code, format!("{what} broke off"))),
            None => Err(Failure::recoverable(code, format!("cancelled while {what}"))),
        }
    }

    async fn tell_until<T>(
        &self,
        most: Option<Duration>,
        event: impl Future<Output = T>,
    ) -> Option<T> {
        let begun = Instant::now();
        let mut ticks = interval_at(begun + PROGRESS, PROGRESS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        tokio::pin!(event);
        loop {
            tokio::select! {
                biased;
                value = &mut event => return Some(value),
                () = self.cancelled.cancelled() => return None,
                _ = ticks.tick() => self.tell(begun.elapsed(), most).await,
            }
        }
    }

    async fn tell(&self, elapsed: Duration, most: Option<Duration>) {
        let Some((peer, token)) = &self.progress else { return };
        let mut told = ProgressNotificationParam::new(token.clone(), elapsed.as_secs_f64());
        told.total = most.map(|most| most.as_secs_f64());
        // A client that is gone needs no word.
        let _ = peer.notify_progress(told).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Call {
        Call { cancelled: CancellationToken::new(), progress: None }
    }

    #[tokio::test]
    async fn a_wait_ends_with_its_event_its_time_or_its_call() {
        let patient = Duration::from_secs(60);
        assert_eq!(call().wait(patient, async { 7 }).await, Waited::Came(7));
        let never = std::future::pending::<()>;
        let impatient = Duration::from_millis(1);
        assert_eq!(call().wait(impatient, never()).await, Waited::TimedOut);
        let cancelled = call();
        cancelled.cancelled.cancel();
        assert_eq!(cancelled.wait(patient, never()).await, Waited::Cancelled);
        assert_eq!(cancelled.wait_long(never()).await, None);
    }

    #[tokio::test]
    async fn what_is_seen_through_goes_on_when_nobody_waits() {
        let code = Code::SessionRuntimeError;
        assert_eq!(call().see_through(code, "counting", async { Ok(7) }).await, Ok(7));
        let cancelled = call();
        cancelled.cancelled.cancel();
        let (told, hears) = tokio::sync::oneshot::channel();
        let doing = async move {
            tokio::task::yield_now().await;
            told.send("done").map_err(|_| Failure::lasting(code, "nobody hears"))
        };
        let failure = cancelled.see_through(code, "counting", doing).await.unwrap_err();
        assert_eq!(failure, Failure::recoverable(code, "cancelled while counting"));
        assert_eq!(hears.await, Ok("done"));
    }
}
