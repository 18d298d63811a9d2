//! Who waits for input and who is paused, as a real manager's sessions show it.

use std::time::Duration;

use futures_util::future::join_all;
use st2_tools::client::{Dict, session::SessionProxy};
use tokio::time::{Instant, sleep};

use crate::support::{Broker, Start, outcome, output_until, tiers, within, workspace};

/// How long a session that waits for input has been quiet.
const QUIET: Duration = Duration::from_secs(15);

async fn all(sessions: &[SessionProxy<'_>]) -> Vec<bool> {
    join_all(sessions.iter().map(async |it| it.waiting_for_input().await.unwrap())).await
}

#[tokio::test]
async fn who_waits_for_input_is_seen_in_each_tier() {
    for tier in tiers().await {
        let start = Start::default().env("ST2_TOOLS_MAX_TIER", tier.clone());
        let (broker, place) = (start.unit().await, workspace());
        let client = broker.client().await;
        let wait: [&[&str]; 5] = [
            &["cat"],
            &["sh", "-c", "read -r line"],
            &["bash", "--norc", "-i"],
            &["python3", "-q"],
            &["sh", "-c", "sleep 1000 & cat"],
        ];
        let do_not: [&[&str]; 3] =
            [&["sleep", "1000"], &["sh", "-c", "sleep 1000; true"], &["sh", "-c", "cat & wait"]];
        let open = |argv: &'static [&'static str]| client.run(place.path(), argv);
        let (waiting, others) = (join_all(wait.map(open)).await, join_all(do_not.map(open)).await);
        let paused = client.run(place.path(), &["cat"]).await;
        paused.pause().await.unwrap();
        assert_eq!(all(&waiting).await, [false; 5], "none has been quiet for long: {tier}");
        let until = Instant::now() + QUIET + Duration::from_secs(10);
        while all(&waiting).await != [true; 5] && Instant::now() < until {
            sleep(Duration::from_millis(250)).await;
        }
        assert_eq!(all(&waiting).await, [true; 5], "{tier}");
        assert_eq!(all(&others).await, [false; 3], "{tier}");
        assert!(!paused.waiting_for_input().await.unwrap(), "{tier}");
        waiting[0].kill().await.unwrap();
        assert!(!waiting[0].waiting_for_input().await.unwrap(), "it has ended: {tier}");
    }
}

#[tokio::test]
async fn a_paused_session_is_not_silent() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let argv = ["sh", "-c", "echo up; exec sleep 1000"].map(str::to_owned).to_vec();
    let silence = Duration::from_millis(4000);
    let options = within(place.path())
        .with("argv", argv)
        .with("silence_timeout_ms", u64::try_from(silence.as_millis()).unwrap());
    let (session, _) = client.open("command", options).await.unwrap();
    output_until(&session, "up").await;
    session.pause().await.unwrap();
    let (closed, _) = session.wait(2 * u64::try_from(silence.as_millis()).unwrap()).await.unwrap();
    assert!(!closed, "it was ended while it could not write");
    let resumed = Instant::now();
    session.resume().await.unwrap();
    let outcome: Dict = outcome(&session).await;
    assert_eq!(outcome.text("reason"), Some("silence-timeout"));
    assert!(resumed.elapsed() >= silence, "the time it was paused counted");
}
