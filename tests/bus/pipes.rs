//! Sessions without a terminal.

use std::path::Path;

use serde_bytes::Bytes;
use st2_tools::client::{
    Client as Library, Dict, Io, OpenOptions, ReadOptions, Stdin, Stream, session::SessionProxy,
};

use crate::support::{
    Broker, Client, error_of, lives, outcome, output_until, short, soon, within, workspace,
};

fn piped(workspace: &Path, script: &str) -> Dict {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    within(workspace).with("io", "pipe").with("argv", argv)
}

async fn open(client: &Client, options: Dict) -> SessionProxy<'static> {
    client.open("command", options).await.unwrap().0
}

/// Everything of one output, or of both.
async fn all(session: &SessionProxy<'_>, stream: Option<&'static str>) -> (String, bool) {
    let options = Dict::new().with_some("stream", stream);
    let (bytes, begin, next, eof) = session.read(0, 262_144, &options).await.unwrap();
    assert_eq!((begin, next), (0, bytes.len() as u64));
    (String::from_utf8(bytes.into_vec()).unwrap(), eof)
}

#[tokio::test]
async fn a_session_on_pipes_has_two_outputs_and_no_terminal() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let script =
        "echo $TERM; test -t 1 || echo no terminal >&2; (: </dev/tty) 2>/dev/null || exit 7";
    let options = piped(place.path(), script).with("columns", 132u16).with("rows", 50u16);
    let (session, info) = client.open("command", options).await.unwrap();
    assert_eq!((info.text("io"), info.flag("io_fallback")), (Some("pipe"), None));
    assert_eq!((info.number("columns"), info.number("rows")), (Some(0), Some(0)));
    let ended = outcome(&session).await;
    assert_eq!(ended.signed("code"), Some(7), "there is no controlling terminal");
    assert_eq!(all(&session, Some("output")).await, ("dumb\n".to_owned(), true));
    assert_eq!(all(&session, Some("stderr")).await, ("no terminal\n".to_owned(), true));
    assert_eq!(all(&session, None).await, ("dumb\nno terminal\n".to_owned(), true));
    assert_eq!((ended.number("bytes_out"), ended.number("bytes_dropped")), (Some(17), Some(0)));
    assert_eq!(session.io().await.unwrap(), "pipe");
    assert_eq!((session.columns().await.unwrap(), session.rows_count().await.unwrap()), (0, 0));
    assert_eq!(session.unseen_at().await.unwrap(), [0u64; 0]);
    let confinement = session.confinement().await.unwrap();
    let devices = confinement.texts("devices");
    assert!(devices.iter().all(|device| !device.starts_with("/dev/pts")), "{devices:?}");
    let row = &client.manager.list_sessions(&Dict::new()).await.unwrap()[0];
    assert_eq!((row.text("Io"), row.number("Columns")), (Some("pipe"), Some(0)));
}

#[tokio::test]
async fn what_needs_a_terminal_is_refused_by_name() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let session = open(&client, piped(place.path(), "exec sleep 1000")).await;
    let direct = Dict::new().with("framing", "direct");
    for (name, text) in [
        error_of(session.attach(&Dict::new()).await),
        error_of(session.attach(&direct).await),
        error_of(session.screen(&Dict::new()).await),
        error_of(session.resize(100, 30, &Dict::new()).await),
    ] {
        assert_eq!(short(&name), "NotATerminal", "{text}");
        assert!(text.contains("io is \"pipe\""), "{text}");
    }
    session.kill().await.unwrap();
    let (name, _) = error_of(session.resize(100, 30, &Dict::new()).await);
    assert_eq!(short(&name), "NotATerminal");
}

#[tokio::test]
async fn an_open_input_is_read_to_its_end() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let options = piped(place.path(), "cat; echo over >&2").with("stdin", "open");
    let session = open(&client, options).await;
    assert_eq!(session.write(Bytes::new(b"one "), &Dict::new()).await.unwrap(), 4);
    output_until(&session, "one ").await;
    let eof = Dict::new().with("eof", true);
    assert_eq!(session.write(Bytes::new(b"two"), &eof).await.unwrap(), 7);
    assert_eq!(outcome(&session).await.signed("code"), Some(0));
    assert_eq!(all(&session, None).await.0, "one twoover\n");
    let (name, text) = error_of(session.write(Bytes::new(b"x"), &Dict::new()).await);
    assert_eq!(short(&name), "Closed", "{text}");
}

#[tokio::test]
async fn a_closed_input_is_refused_and_says_why() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let none = open(&client, piped(place.path(), "cat; echo over; exec sleep 1000")).await;
    output_until(&none, "over").await;
    let ended = piped(place.path(), "cat; exec sleep 1000").with("stdin", "open");
    let ended = open(&client, ended).await;
    let eof = Dict::new().with("eof", true);
    ended.write(Bytes::new(b""), &eof).await.unwrap();
    for (session, why) in [(&none, "opened without"), (&ended, "its end was written")] {
        for options in [&Dict::new(), &eof] {
            let (name, text) = error_of(session.write(Bytes::new(b"x"), options).await);
            assert_eq!(short(&name), "NotPermitted");
            assert!(text.starts_with("stdin is closed: ") && text.contains(why), "{text}");
        }
    }
}

#[tokio::test]
async fn signals_go_to_the_leaders_process_group() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    for (signal, code) in [(None, 130), (Some("SIGUSR1"), 138)] {
        // The child may end, and be waited for, before the leader has its own signal.
        let script = "trap 'got=1' INT USR1; sh -c 'echo child; exec sleep 1000'; code=$?; \
                      until [ $got ]; do sleep 0.01; done; echo leader; exit $code";
        let session = open(&client, piped(place.path(), script)).await;
        output_until(&session, "child").await;
        match signal {
            None => session.interrupt().await.unwrap(),
            Some(name) => session.signal(name).await.unwrap(),
        }
        assert_eq!(outcome(&session).await.signed("code"), Some(code), "the group has the child");
        assert!(all(&session, None).await.0.contains("leader"), "and the leader");
    }
}

#[tokio::test]
async fn a_child_that_holds_the_outputs_does_not_outlive_the_leader() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let session = open(&client, piped(place.path(), "sleep 1000 & echo $!")).await;
    let ended = outcome(&session).await;
    assert_eq!((ended.text("reason"), ended.number("survivors")), (Some("exit"), Some(0)));
    let (text, eof) = all(&session, None).await;
    assert!(eof && !lives(text.trim().parse().unwrap()));
}

#[tokio::test]
async fn a_long_read_of_one_output_is_not_woken_by_the_other() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let script = "read -r _; echo out; read -r _; echo err >&2; exec sleep 1000";
    let session = open(&client, piped(place.path(), script).with("stdin", "open")).await;
    let wait = Dict::new().with("wait_ms", 20_000u64).with("stream", "stderr");
    let reader = {
        let session = session.clone();
        tokio::spawn(async move { session.read(0, 100, &wait).await })
    };
    session.write(Bytes::new(b"\n"), &Dict::new()).await.unwrap();
    output_until(&session, "out\n").await;
    assert!(!reader.is_finished());
    session.write(Bytes::new(b"\n"), &Dict::new()).await.unwrap();
    let (bytes, begin, next, eof) = soon("the read", reader).await.unwrap().unwrap();
    assert_eq!((bytes.as_slice(), begin, next, eof), (&b"err\n"[..], 0, 4, false));
    let beyond = Dict::new().with("stream", "stderr");
    let (name, text) = error_of(session.read(5, 1, &beyond).await);
    assert_eq!(short(&name), "BadCursor", "{text}");
}

#[tokio::test]
async fn what_was_dropped_of_each_is_one_gap_and_counted() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let script = "echo first >&2; read -r _; seq 1 20000; read -r _; echo last >&2";
    let options = piped(place.path(), script).with("stdin", "open").with("ring_bytes", 8192u64);
    let session = open(&client, options).await;
    for written in ["first\n", "20000\n"] {
        output_until(&session, written).await;
        session.write(Bytes::new(b"\n"), &Dict::new()).await.unwrap();
    }
    let ended = outcome(&session).await;
    let (mut cursor, mut missing, mut shown) = (0, 0, Vec::new());
    loop {
        let (bytes, begin, next, eof) = session.read(cursor, 65_536, &Dict::new()).await.unwrap();
        missing += begin - cursor;
        shown.extend_from_slice(&bytes);
        cursor = next;
        if eof {
            break;
        }
    }
    assert_eq!(Some(missing), ended.number("bytes_dropped"));
    assert_eq!(Some(cursor), ended.number("bytes_out"));
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.starts_with("first\n") && shown.ends_with("\n20000\nlast\n"), "{shown}");
    assert_eq!(all(&session, Some("stderr")).await.0, "first\nlast\n");
}

#[tokio::test]
async fn how_a_tool_may_be_carried_is_listed_explained_and_judged() {
    let (broker, place) = (Broker::private().await, workspace());
    let client = broker.client().await;
    let tools = client.manager.list_tools().await.unwrap();
    let io = |name: &str| {
        let tool = tools.iter().find(|tool| tool.text("name") == Some(name)).unwrap();
        tool.texts("io").iter().map(|io| (*io).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (io("command"), io("shell")),
        (vec!["pty".into(), "pipe".into()], vec!["pty".into()])
    );
    let explained = client.manager.explain("command", &piped(place.path(), "true")).await.unwrap();
    assert_eq!((explained.text("io"), explained.text("stdin")), (Some("pipe"), Some("closed")));
    assert!(!explained.texts("devices").contains(&"terminal"));
    let features = client.manager.features().await.unwrap();
    assert!(features.iter().any(|feature| feature == "pipe"), "{features:?}");
    for (tool, options, error, words) in [
        ("shell", Dict::new().with("io", "pipe"), "NotPermitted", "io \"pipe\""),
        ("shell", Dict::new().with("io_fallback", true), "NotPermitted", "io_fallback"),
        ("command", Dict::new().with("stdin", "open"), "InvalidArgs", "stdin goes with"),
        ("command", Dict::new().with("io", "pipes"), "InvalidArgs", "pty, pipe"),
        ("command", Dict::new().with("stdin", "null"), "InvalidArgs", "closed, open"),
    ] {
        let workspace = place.path().to_str().unwrap().to_owned();
        let (name, text) =
            error_of(client.manager.open(tool, &options.with("workspace", workspace)).await);
        assert_eq!(short(&name), error, "{text}");
        assert!(text.contains(words), "{text}");
    }
    let pty = client.run(place.path(), &["sleep", "1000"]).await;
    let one = Dict::new().with("stream", "output");
    let (name, text) = error_of(pty.read(0, 1, &one).await);
    assert!(name.ends_with("InvalidArgs") && text.contains("one output"), "{text}");
    let (name, _) = error_of(pty.read(0, 1, &Dict::new().with("stream", "x")).await);
    assert!(name.ends_with("InvalidArgs"));
}

#[tokio::test]
async fn the_client_library_reads_apart_what_it_wrote() {
    let broker = Broker::private().await;
    let client = Library::over(broker.bus.connect().await).await.unwrap();
    let options = OpenOptions {
        argv: ["sh", "-c", "tee /dev/stderr"].map(Into::into).to_vec(),
        workspace: Some(workspace().keep().to_str().unwrap().to_owned()),
        io: Some(Io::Pipe),
        stdin: Some(Stdin::Open),
        ..OpenOptions::default()
    };
    let opened = client.open("command", &options).await.unwrap();
    assert!(!opened.fell_back());
    let session = opened.session;
    session.write(b"both ").await.unwrap();
    assert_eq!(session.write_last(b"twice").await.unwrap(), 10);
    soon("the end", session.ended()).await.unwrap();
    for stream in [Stream::Output, Stream::Stderr] {
        let options = ReadOptions { stream: Some(stream), ..ReadOptions::default() };
        let chunk = session.read(0, 99, &options).await.unwrap();
        assert_eq!((chunk.data.as_slice(), chunk.eof), (&b"both twice"[..], true));
    }
}
