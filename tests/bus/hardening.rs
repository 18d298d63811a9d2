//! What the broker keeps to itself.

use std::fs;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_bytes::Bytes;
use st2_tools::client::Dict;

use crate::support::{
    Broker, Start, all_output,
    looks::{self, Ordinary},
    outcome, output_until, within, workspace,
};

#[tokio::test]
async fn no_other_program_of_the_user_looks_into_the_broker() {
    let (broker, ordinary) = (Broker::private().await, Ordinary::start());
    assert_eq!(looks::into(ordinary.pid()), looks::WAYS, "of an ordinary process");
    let none: [&str; 0] = [];
    assert_eq!(looks::into(broker.pid().as_raw().cast_unsigned()), none);
}

#[tokio::test]
async fn a_core_dump_is_the_tool_s_affair_and_none_of_the_broker_s() {
    let wanted = 40_960;
    let (_, hard) = getrlimit(Resource::RLIMIT_CORE).unwrap();
    setrlimit(Resource::RLIMIT_CORE, wanted, hard).unwrap();
    let (broker, place) = (Broker::private().await, workspace());
    let limits = fs::read_to_string(format!("/proc/{}/limits", broker.pid())).unwrap();
    assert_eq!(core_limit(&limits), "0");
    let client = broker.client().await;
    let session = client.run(place.path(), &["cat", "/proc/self/limits"]).await;
    let limits = all_output(&session).await;
    assert_eq!(core_limit(&limits), wanted.to_string());
}

/// The soft limit, of proc_pid_limits(5).
fn core_limit(limits: &str) -> &str {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max core file size"));
    line.unwrap().split_whitespace().next().unwrap()
}

/// What a session is told and what it shows is in no log, however much is logged.
#[tokio::test]
async fn neither_tokens_nor_what_is_typed_or_shown_is_logged() {
    let place = workspace();
    let log = tempfile::NamedTempFile::new().unwrap();
    let start = Start::default().env("ST2_TOOLS_LOG", "trace").log(log.path());
    let broker = start.private().await;
    let (client, other) = (broker.client().await, broker.client().await);
    let options = within(place.path()).with("argv", vec!["cat".to_owned()]).with("lease", "token");
    let (session, info) = client.open("command", options).await.unwrap();
    let token = info.text("token").unwrap().to_owned();
    session.write(Bytes::new(b"typed-by-hand\n"), &Dict::new()).await.unwrap();
    output_until(&session, "typed-by-hand\r\ntyped-by-hand").await;
    let id = session.inner().path().as_str().to_owned();
    let wrong = token.replace('-', "-0").chars().take(token.len()).collect::<String>();
    other.manager.renew_lease(&wrong).await.unwrap_err();
    let (claimed, _) = other.manager.claim_lease(&token).await.unwrap();
    other.manager.renew_lease(&claimed).await.unwrap_err();
    let theirs = other.session(&id).await;
    theirs.write(Bytes::new(b"typed-later\n"), &Dict::new()).await.unwrap();
    theirs.close(&Dict::new().with("token", claimed.clone())).await.unwrap();
    outcome(&theirs).await;
    drop(broker);

    let log = fs::read_to_string(log.path()).unwrap();
    for known in ["DEBUG", "session opened", "session closed"] {
        assert!(log.contains(known), "a log of everything has no {known}");
    }
    let bytes = format!("{:?}", b"typed-by-hand");
    let bytes = bytes.trim_matches(['[', ']']);
    let secret = |token: &str| token.split_once('-').unwrap().1.to_owned();
    for text in [&secret(&token), &secret(&claimed), &secret(&wrong), "typed-", bytes] {
        let line = log.lines().find(|line| line.contains(text));
        assert_eq!(line, None, "{text} is in the log");
    }
}

#[tokio::test]
async fn no_command_line_and_no_environment_of_a_launcher_tells_anything() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let options = within(place.path())
        .with("argv", vec!["sleep".to_owned(), "1000".to_owned()])
        .with("lease", "token");
    client.open("command", options).await.unwrap();
    let pid = broker.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let supervisor = children.trim();
    let of = |pid: &str, file: &str| {
        String::from_utf8(fs::read(format!("/proc/{pid}/{file}")).unwrap()).unwrap()
    };
    let program = |name: &str| format!("{}\0", crate::support::program(name).display());
    assert_eq!(of(supervisor, "cmdline"), program("st2-tools-launch"));
    assert_eq!(of(supervisor, "environ"), "");
    assert_eq!(of(&pid.to_string(), "cmdline"), program("st2-toolsd"));
}
