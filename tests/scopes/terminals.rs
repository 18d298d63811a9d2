//! A machine that has no pseudoterminal left. The bed of this layer has few (`tests/bed/enter --ptys`).

use nix::{
    errno::Errno,
    fcntl::OFlag,
    pty::{PtyMaster, posix_openpt},
};
use st2_tools::client::Dict;

use crate::support::{Broker, error_of, manager, outcome, short, within, workspace};

/// More than the bed has, and no more: they are the machine's.
const MOST: usize = 200;

/// Takes every free pseudoterminal.
fn take_all() -> Vec<PtyMaster> {
    let mut taken = Vec::new();
    loop {
        match posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC) {
            Ok(pty) => taken.push(pty),
            Err(errno) => {
                assert_eq!(errno, Errno::ENOSPC);
                return taken;
            }
        }
        assert!(taken.len() < MOST, "the bed has no bound on pseudoterminals: use tests/run");
    }
}

#[tokio::test]
async fn without_a_free_pty_nothing_opens_and_nothing_is_left() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    outcome(&client.run(place.path(), &["true"]).await).await;
    let descriptors = broker.descriptors();
    let taken = take_all();
    let options = || within(place.path()).with("argv", vec!["true".to_owned()]);
    for _ in 0..3 {
        let refused = client.manager.open("command", &options()).await;
        let (name, text) = error_of(refused);
        assert_eq!(short(&name), "LaunchFailed");
        assert!(text.contains("pty") && text.contains("No space left"), "{text}");
    }
    assert_eq!(broker.descriptors(), descriptors);
    assert!(broker.tmpdirs().is_empty() && manager::session_units().is_empty());
    let closed = client.manager.list_sessions(&Dict::new()).await.unwrap();
    assert_eq!(closed.len(), 1, "only the first is remembered: {closed:?}");
    drop(taken);
    let (session, _) = client.open("command", options()).await.unwrap();
    assert_eq!(outcome(&session).await.text("reason"), Some("exit"));
}
