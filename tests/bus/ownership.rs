//! Who a session lives for.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use st2_tools::client::Dict;

use crate::support::{
    Broker, Bus, Start, error_of, outcome, output_until, owner_state, short, soon, until, within,
    workspace,
};

/// A script that is executed in place of the launcher: it waits until a file is there, then becomes the launcher.
fn slow_launcher(directory: &std::path::Path) -> String {
    let script = directory.join("slow");
    let launcher = crate::support::program("st2-tools-launch");
    let text = format!(
        "#!/bin/sh\necho $$ >>{0}/spawned\nuntil [ -e {0}/go ]; do sleep 0.01; done\nexec {1}\n",
        directory.display(),
        launcher.display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script.to_str().unwrap().to_owned()
}

/// The pids of the slow launchers so far.
fn spawned(directory: &std::path::Path) -> Vec<i32> {
    let text = fs::read_to_string(directory.join("spawned")).unwrap_or_default();
    text.lines().map(|pid| pid.parse().unwrap()).collect()
}

#[tokio::test]
async fn a_caller_that_vanishes_during_open_leaves_nothing() {
    let bench = workspace();
    let broker =
        Start::default().env("ST2_TOOLS_LAUNCHER", slow_launcher(bench.path())).private().await;
    let (client, watcher) = (broker.client().await, broker.client().await);
    let (manager, place) = (client.manager.clone(), workspace());
    let options = within(place.path()).with("argv", vec!["sleep".to_owned(), "100".to_owned()]);
    let call = tokio::spawn(async move { manager.open("command", &options).await });
    until("the launcher's spawn", || !spawned(bench.path()).is_empty()).await;
    client.vanish().await;
    call.abort();
    // A launcher that answers nothing is waited for as long as one may take.
    tokio::time::timeout(Duration::from_secs(60), async {
        while !watcher.manager.list_sessions(&Dict::new()).await.unwrap().is_empty() {}
    })
    .await
    .unwrap();
    let launcher = spawned(bench.path())[0];
    until("the launcher's death", || !crate::support::lives(launcher)).await;
    assert_eq!(broker.tmpdirs(), Vec::<std::path::PathBuf>::new());
}

#[tokio::test]
async fn a_caller_gone_before_the_session_is_inserted_is_noticed() {
    let broker = Broker::private().await;
    let watcher = broker.client().await;
    let place = workspace();
    // The call is on its way when the connection closes: the signal may well come first.
    for _ in 0..50 {
        let client = broker.client().await;
        let (manager, options) =
            (client.manager.clone(), within(place.path()).with("argv", vec!["cat".to_owned()]));
        let call = tokio::spawn(async move { manager.open("command", &options).await });
        tokio::task::yield_now().await;
        client.vanish().await;
        call.abort();
    }
    let live = async || {
        let all = watcher.manager.list_sessions(&Dict::new()).await.unwrap();
        all.iter().filter(|row| row.text("Phase") != Some("closed")).count()
    };
    // Those whose answer had been sent have their grace of ten seconds.
    soon("the end of every session", async { while live().await > 0 {} }).await;
    assert_eq!(broker.tmpdirs().len(), 0);
}

#[tokio::test]
async fn a_claim_inside_the_grace_keeps_the_process_and_fences_the_old_owner() {
    let broker = Broker::private().await;
    let (first, second) = (broker.client().await, broker.client().await);
    let place = workspace();
    let options = within(place.path()).with("argv", vec!["cat".to_owned()]);
    let (session, info) = first.open("command", options).await.unwrap();
    let token = info.text("token").unwrap().to_owned();
    let path = session.inner().path().to_string();

    // From an owner that is still there.
    let (token, sessions) = second.manager.claim_lease(&token).await.unwrap();
    assert!(matches!(&sessions[..], [only] if only.as_str() == path));
    let (name, text) = error_of(session.write(serde_bytes::Bytes::new(b"x"), &Dict::new()).await);
    assert_eq!(short(&name), "NotOwner", "{text}");
    let theirs = second.session(&path).await;
    assert_eq!(theirs.owner().await.unwrap(), second.name());

    // From one that vanished: nothing ends before the grace does.
    let third = broker.client().await;
    let watched = third.session(&path).await;
    second.vanish().await;
    owner_state(&watched, "grace").await;
    assert!(watched.grace_deadline_usec().await.unwrap() > 0);
    let (_, sessions) = third.manager.claim_lease(&token).await.unwrap();
    assert_eq!(sessions.len(), 1);
    assert_eq!(watched.owner_state().await.unwrap(), "present");
    assert_eq!(watched.grace_deadline_usec().await.unwrap(), 0);
    watched.write(serde_bytes::Bytes::new(b"still here\n"), &Dict::new()).await.unwrap();
    output_until(&watched, "still here\r\nstill here").await;
}

#[tokio::test]
async fn every_session_of_a_vanished_owner_ends_when_its_grace_does() {
    let broker = Broker::private().await;
    let (owner, watcher) = (broker.client().await, broker.client().await);
    let place = workspace();
    let mut sessions = Vec::new();
    for grace in [0u64, 200, 400] {
        let options =
            within(place.path()).with("argv", vec!["cat".to_owned()]).with("grace_ms", grace);
        let (session, _) = owner.open("command", options).await.unwrap();
        sessions.push(watcher.session(session.inner().path().as_str()).await);
    }
    owner.vanish().await;
    for session in &sessions {
        assert_eq!(outcome(session).await.text("reason"), Some("owner-vanished"));
        assert_eq!(session.owner_state().await.unwrap(), "gone");
    }
}

#[tokio::test]
async fn a_token_lease_lives_on_until_it_runs_out() {
    let broker = Broker::private().await;
    let (opener, watcher) = (broker.client().await, broker.client().await);
    let place = workspace();
    let options = within(place.path())
        .with("argv", vec!["cat".to_owned()])
        .with("lease", "token")
        .with("lease_ttl_ms", 5000u64);
    let (session, info) = opener.open("command", options).await.unwrap();
    let token = info.text("token").unwrap().to_owned();
    let session = watcher.session(session.inner().path().as_str()).await;
    opener.vanish().await;
    let expires = watcher.manager.renew_lease(&token).await.unwrap();
    let ended = outcome(&session).await;
    assert_eq!(ended.text("reason"), Some("lease-expired"));
    assert!(ended.number("ended_usec").unwrap() >= expires, "it ended before its time");
    let (name, text) = error_of(watcher.manager.renew_lease(&token).await);
    assert_eq!((short(&name), text.contains("expired")), ("BadToken", true), "{text}");
}

#[tokio::test]
async fn a_token_that_is_wrong_or_was_used_claims_nothing() {
    let broker = Broker::private().await;
    let (owner, other) = (broker.client().await, broker.client().await);
    let place = workspace();
    let options = within(place.path()).with("argv", vec!["cat".to_owned()]);
    let (_, info) = owner.open("command", options).await.unwrap();
    let token = info.text("token").unwrap();
    for wrong in ["", "x", "1-", &format!("{token}0"), &token.replace('-', "-0")[..token.len()]] {
        let (name, text) = error_of(other.manager.claim_lease(wrong).await);
        assert_eq!(short(&name), "BadToken", "{text}");
        assert!(wrong.is_empty() || !text.contains(wrong), "the error repeats the token: {text}");
    }
    other.manager.claim_lease(token).await.unwrap();
    let (name, _) = error_of(owner.manager.claim_lease(token).await);
    assert_eq!(short(&name), "BadToken");
}

#[tokio::test]
async fn another_client_observes_but_does_not_control_and_not_at_all_where_private() {
    let broker = Broker::private().await;
    let (owner, other) = (broker.client().await, broker.client().await);
    let place = workspace();
    let open = async |private: bool| {
        let options = within(place.path())
            .with("argv", vec!["sh".to_owned(), "-c".to_owned(), "echo hello; exec cat".to_owned()])
            .with("private", private);
        let (session, _) = owner.open("command", options).await.unwrap();
        output_until(&session, "hello").await;
        other.session(session.inner().path().as_str()).await
    };
    let (seen, unseen) = (open(false).await, open(true).await);
    assert!(output_until(&seen, "hello").await.contains("hello"));
    let observe = Dict::new().with("mode", "observe");
    seen.attach(&observe).await.unwrap();
    for refused in [
        error_of(seen.write(serde_bytes::Bytes::new(b"x"), &Dict::new()).await),
        error_of(seen.resize(10, 10, &Dict::new()).await),
        error_of(seen.signal("TERM").await),
        error_of(seen.interrupt().await),
        error_of(seen.attach(&Dict::new()).await),
        error_of(seen.close(&Dict::new()).await),
        error_of(seen.kill().await),
        error_of(seen.pause().await),
        error_of(seen.resume().await),
        error_of(seen.forget().await),
        error_of(unseen.read(0, 10, &Dict::new()).await),
        error_of(unseen.attach(&observe).await),
    ] {
        assert_eq!(short(&refused.0), "NotOwner", "{}", refused.1);
    }
    assert_eq!(unseen.phase().await.unwrap(), "running", "metadata is not private");
}

/// What a confined tool cannot reach, a descendant of the broker can: it stands for a tool that escaped.
#[tokio::test]
async fn a_caller_inside_a_session_is_refused_everything() {
    let (bench, bus) = (workspace(), Bus::private());
    let script = bench.path().join("escaped");
    let call = format!("busctl --address={} call org.st2.Tools /org/st2/Tools", bus.address());
    let manager = "org.st2.Tools.Manager1";
    let text = format!(
        "#!/bin/sh\nexec >{0}/said 2>&1\n{call} {manager} ListSessions 'a{{sv}}' 0\n{call} {manager} ListTools\n\
         {call} org.freedesktop.DBus.ObjectManager GetManagedObjects\n\
         {call} org.freedesktop.DBus.Properties Get ss {manager} Version\n\
         {call} org.freedesktop.DBus.Properties GetAll s {manager}\n\
         {call} {manager} Open 'sa{{sv}}' shell 0\n",
        bench.path().display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let start = Start::default().env("ST2_TOOLS_LAUNCHER", script.to_str().unwrap());
    let broker = start.on(bus).await;
    let client = broker.client().await;
    let place = workspace();
    let options = within(place.path()).with("argv", vec!["true".to_owned()]);
    let (name, _) = error_of(client.open("command", options).await);
    assert_eq!(short(&name), "LaunchFailed");
    let said = fs::read_to_string(bench.path().join("said")).unwrap();
    assert_eq!(said.lines().count(), 6, "{said}");
    for line in said.lines() {
        assert!(line.contains("Access denied"), "{line}");
    }
    // From outside, the same call is answered.
    assert_eq!(client.manager.version().await.unwrap(), st2_tools::bus::VERSION);
}
