//! A session shared with others.

use serde_bytes::Bytes;
use st2_tools::client::{Dict, Mode, Token};

use crate::support::{Broker, error_of, outcome, output_until, short, soon, within, workspace};

fn shown(token: &str) -> Dict {
    Dict::new().with("token", token.to_owned())
}

/// Options of a private session that echoes.
fn private(place: &std::path::Path) -> Dict {
    within(place).with("argv", vec!["cat".to_owned()]).with("private", true)
}

#[tokio::test]
async fn a_share_lets_others_do_what_it_was_made_for_and_no_more() {
    let (broker, place) = (Broker::private().await, workspace());
    let (client, other) = (broker.client().await, broker.client().await);
    let (session, _) = client.open("command", private(place.path())).await.unwrap();
    let (second, _) = client.open("command", private(place.path())).await.unwrap();
    let theirs = other.session(session.inner().path().as_str()).await;
    let nothing = Dict::new();
    for refused in [
        error_of(theirs.read(0, 10, &nothing).await),
        error_of(theirs.screen(&nothing).await),
        error_of(theirs.attach(&Dict::new().with("mode", "observe")).await),
        error_of(theirs.share("observe").await),
    ] {
        assert_eq!(short(&refused.0), "NotOwner", "{}", refused.1);
    }
    let observe = session.share("observe").await.unwrap();
    let id = session.id().await.unwrap();
    assert!(observe.starts_with(&format!("share-{id}-")), "{observe}");
    theirs.read(0, 10, &shown(&observe)).await.unwrap();
    theirs.screen(&shown(&observe)).await.unwrap();
    theirs.attach(&shown(&observe).with("mode", "observe")).await.unwrap();
    for refused in [
        error_of(theirs.write(Bytes::new(b"x"), &shown(&observe)).await),
        error_of(theirs.send_keys(&["x"], &shown(&observe)).await),
        error_of(theirs.paste("x", &shown(&observe)).await),
        error_of(theirs.resize(90, 30, &shown(&observe)).await),
        error_of(theirs.attach(&shown(&observe)).await),
        error_of(theirs.close(&shown(&observe)).await),
    ] {
        assert_eq!(short(&refused.0), "NotOwner");
        assert!(refused.1.contains("observed only"), "{}", refused.1);
    }
    assert_eq!(session.bytes_in().await.unwrap(), 0);
    let control = session.share("control").await.unwrap();
    for token in [&control, &format!("{observe}0"), &observe.replace("share-", "share")] {
        let wrong = other.session(second.inner().path().as_str()).await;
        let (name, text) = error_of(wrong.read(0, 10, &shown(token)).await);
        assert_eq!(short(&name), "BadToken", "{text}");
        assert!(!text.contains(token.as_str()), "{text}");
    }
    theirs.write(Bytes::new(b"hello\n"), &shown(&control)).await.unwrap();
    theirs.resize(90, 30, &shown(&control)).await.unwrap();
    output_until(&session, "hello\r\nhello").await;
    assert_eq!(short(&error_of(other.manager.claim_lease(&control).await).0), "BadToken");
    assert_eq!(short(&error_of(other.manager.renew_lease(&control).await).0), "BadToken");
    let outcome = theirs.close(&shown(&control)).await.unwrap();
    assert_eq!(outcome.text("requester"), Some(other.name().as_str()));
}

#[tokio::test]
async fn shares_are_bounded_and_end_with_a_claim_or_the_session() {
    let (broker, place) = (Broker::private().await, workspace());
    let (client, other) = (broker.client().await, broker.client().await);
    let (session, info) = client.open("command", private(place.path())).await.unwrap();
    let mut shares = Vec::new();
    for _ in 0..16 {
        shares.push(session.share("control").await.unwrap());
    }
    let (name, text) = error_of(session.share("observe").await);
    assert_eq!(short(&name), "LimitReached");
    assert!(text.contains("16") && text.contains("shares_per_session"), "{text}");
    assert!(error_of(session.share("own").await).0.ends_with("InvalidArgs"));
    let theirs = other.session(session.inner().path().as_str()).await;
    theirs.read(0, 1, &shown(&shares[7])).await.unwrap();
    other.manager.claim_lease(info.text("token").unwrap()).await.unwrap();
    for share in &shares {
        assert_eq!(short(&error_of(session.read(0, 1, &shown(share)).await).0), "BadToken");
    }
    let share = theirs.share("observe").await.unwrap();
    theirs.kill().await.unwrap();
    outcome(&theirs).await;
    session.read(0, 1, &shown(&share)).await.unwrap();
    theirs.forget().await.unwrap();
    assert!(session.read(0, 1, &shown(&share)).await.is_err());
}

#[tokio::test]
async fn the_client_library_shows_a_share_with_each_call() {
    let (broker, place) = (Broker::private().await, workspace());
    let owner = st2_tools::client::Client::over(broker.bus.connect().await).await.unwrap();
    let guest = st2_tools::client::Client::over(broker.bus.connect().await).await.unwrap();
    let options = st2_tools::client::OpenOptions {
        argv: vec!["cat".into()],
        workspace: Some(place.path().to_str().unwrap().into()),
        private: true,
        ..Default::default()
    };
    let opened = owner.open("command", &options).await.unwrap();
    let session = guest.session(opened.session.id().clone()).await.unwrap();
    let token: Token = opened.session.share(Mode::Control).await.unwrap();
    assert!(session.write(b"x").await.is_err());
    assert!(session.write_last(b"x").await.is_err());
    let session = session.with_token(token);
    session.send_keys(&["x", "Enter"]).await.unwrap();
    let options = Default::default();
    let read = session.read(0, 100, &options);
    soon("the read", read).await.unwrap();
    session.write_last(b"").await.unwrap();
    session.close(None).await.unwrap();
}
