//! Clients whose process is killed, and what those find that claim their sessions.

use std::{num::NonZero, time::Duration};

use st2_tools::client::{
    AttachOptions, Client, Ending, Framing, Mode, ReadOptions, Refusal, Session, Start, Token,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    cross::lazygit::{changed_repository, is_drawn},
    support::{
        Broker,
        doomed::{Doomed, Known, Left},
        frames::{self, Frames},
        lives, manager, owner_state,
        random::Random,
        soon, until, workspace,
    },
};

/// All that a session retains from a byte on, without waiting.
async fn retained(session: &Session, from: u64) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let cursor = from + all.len() as u64;
        let chunk = session.read(cursor, 256 << 10, &ReadOptions::default()).await.unwrap();
        assert_eq!(chunk.begin, cursor, "nothing is dropped");
        if chunk.data.is_empty() {
            return all;
        }
        all.extend(chunk.data);
    }
}

/// What an emulator that is not the broker's shows, and what it would send for keys, mouse and pastes.
fn looks(bytes: &[u8], (columns, rows): (u16, u16)) -> String {
    let [columns, rows] = [columns, rows].map(|count| NonZero::new(count).unwrap());
    let mut parser = vt100::Parser::new(rows, columns, 0);
    parser.process(bytes);
    let screen = parser.screen();
    let modes = (
        screen.alternate_screen(),
        screen.application_cursor(),
        screen.application_keypad(),
        screen.bracketed_paste(),
        screen.mouse_protocol_mode(),
        screen.mouse_protocol_encoding(),
        screen.hide_cursor(),
    );
    let rows: Vec<_> = screen.rows(0, columns.get()).map(|row| row.trim_end().to_owned()).collect();
    format!("{:?} {modes:?}\n{}", screen.cursor_position(), rows.join("\n"))
}

/// What `Screen()` shows.
async fn shown(session: &Session) -> (Vec<String>, (u16, u16)) {
    let screen = session.proxy().screen(&st2_tools::client::Dict::new()).await.unwrap();
    let rows = screen.texts("rows").into_iter().map(str::to_owned).collect();
    let size = |key| u16::try_from(screen.number(key).unwrap()).unwrap();
    (rows, (size("columns"), size("rows_count")))
}

/// What a new stream is shown first: until it is all that the tool has written, and the tool writes no more.
async fn painted(session: &Session) -> (Vec<u8>, Vec<u8>) {
    let attach = AttachOptions { mode: Mode::Observe, ..AttachOptions::default() };
    let compared = async {
        loop {
            let before = retained(session, 0).await;
            let mut stream = session.attach(&attach).await.unwrap();
            let mut painted = Vec::new();
            // Another byte of the tool's would be another turn.
            while session.proxy().bytes_out().await.unwrap() == before.len() as u64 {
                let mut piece = [0; 16 << 10];
                let count = stream.read(&mut piece).await.unwrap();
                painted.extend_from_slice(&piece[..count]);
                let size = shown(session).await.1;
                if looks(&painted, size) == looks(&before, size) {
                    return (painted, before);
                }
            }
        }
    };
    soon("the same screen from the first byte and from the baseline", compared).await
}

#[tokio::test(flavor = "multi_thread")]
async fn lazygit_of_a_killed_client_is_shown_by_its_heir_as_it_was() {
    let (broker, repository) = (Broker::unit().await, changed_repository());
    let mut doomed = Doomed::start(0, "lazygit", repository.path(), &[]);
    let opened = doomed.step(2).to_owned();
    let watcher = Client::over(broker.bus.connect().await).await.unwrap();
    let id = opened.split(' ').nth(1).unwrap().parse().unwrap();
    let session = watcher.session(id).await.unwrap();
    let size = shown(&session).await.1;
    let drawn = async {
        loop {
            let bytes = retained(&session, 0).await;
            let [columns, rows] = [size.0, size.1].map(|count| NonZero::new(count).unwrap());
            let mut parser = vt100::Parser::new(rows, columns, 0);
            parser.process(&bytes);
            if is_drawn(parser.screen()) {
                break;
            }
            let wait = ReadOptions { wait: Some(Duration::from_secs(5)), ..Default::default() };
            session.read(bytes.len() as u64, 1, &wait).await.unwrap();
        }
    };
    soon("lazygit", drawn).await;
    let (_, before) = painted(&session).await;
    let left = doomed.kill();
    let Known { pid, token, .. } = left.known().unwrap();
    let same = before.len().min(left.output.len());
    assert_eq!(before[..same], left.output[..same], "what it had read is what there was");

    owner_state(session.proxy(), "grace").await;
    let heir = Client::over(broker.bus.connect().await).await.unwrap();
    let claimed = heir.claim(&token.as_str().into()).await.unwrap();
    let session = claimed.sessions.into_iter().next().unwrap();
    let group = manager::group(&session.proxy().unit().await.unwrap());
    assert!(lives(pid) && manager::members(&group).contains(&pid), "the same process");
    let (baseline, all) = painted(&session).await;
    assert!(all.starts_with(&before), "nothing is lost");
    let (rows, shown_size) = shown(&session).await;
    assert_eq!(shown_size, size);
    let text = looks(&baseline, size);
    let mut lines = text.lines().skip(1);
    assert!(rows.iter().all(|row| lines.next() == Some(row)), "{rows:?}\n{text}");
    assert!(text.contains("(true, "), "on the alternate screen: {text}");

    let mut frames = framed(&session, size, &text).await;
    frames.send(frames::DATA, b"j").await;
    let selected = async {
        while shown(&session).await.0.concat().contains("diff --git a/pears.txt") {
            let end = session.proxy().bytes_out().await.unwrap();
            let wait = ReadOptions { wait: Some(Duration::from_secs(5)), ..Default::default() };
            session.read(end, 1, &wait).await.unwrap();
        }
    };
    soon("the first file alone", selected).await;
    frames.send(frames::RESIZE, &frames::size(101, 33)).await;
    let all = |rows: &[String]| {
        rows.len() == 33 && rows[0].chars().count() == 101 && rows[32].contains("Stage")
    };
    soon("all of the new size in use", async { while !all(&shown(&session).await.0) {} }).await;
    let (again, _) = painted(&session).await;
    assert!(looks(&again, (101, 33)).contains("Stage: <space>"));
    frames.send(frames::DATA, b"q").await;
    let (mut told, mut last) = (Vec::new(), None);
    while let Some((kind, payload)) = frames.next().await {
        told.extend((kind == frames::GEOMETRY).then(|| payload.clone()));
        last = Some((kind, payload));
    }
    assert_eq!(told, [frames::size(101, 33)]);
    assert_eq!(last, Some((frames::EXIT, vec![0; 4])));
    assert_eq!(soon("the end", session.ended()).await.unwrap().ending, Ending::Exited(0));
    assert!(!lives(pid));
}

/// Attaches with control in frames, in the size in force; what they show is to look like this.
async fn framed(session: &Session, (columns, rows): (u16, u16), text: &str) -> Frames {
    let attach = AttachOptions { framing: Framing::Pty, ..AttachOptions::default() };
    let mut frames = Frames::over(session.attach(&attach).await.unwrap());
    let size = frames::size(columns, rows);
    frames.send(frames::ATTACH, &size).await;
    assert_eq!(frames.expect(frames::GEOMETRY).await, size);
    let mut painted = frames.expect(frames::SCREEN).await;
    while looks(&painted, (columns, rows)) != text {
        painted.extend(frames.expect(frames::DATA).await);
    }
    frames
}

/// Numbers, then what it was told and in which size.
const NUMBERS: u64 = 100_000;

/// All that the tool writes before it waits.
fn numbers() -> Vec<u8> {
    (1..=NUMBERS).flat_map(|number| format!("{number}\r\n").into_bytes()).collect()
}

/// Kills a client at a random point; gives what it left.
fn killed(random: &mut Random, workspace: &std::path::Path, numbers: usize) -> (Left, String) {
    let script = format!("stty -echo; seq {NUMBERS}; read -r keys; stty size; echo \"got $keys\"");
    let mut doomed = Doomed::start(60, "command", workspace, &["sh", "-c", &script]);
    let point = if random.below(3) == 0 {
        // After the numbers have begun, there is more to be interrupted in than reading them.
        let count = random.below(numbers);
        doomed.has_read(count);
        format!("with {count} bytes read")
    } else {
        let count = 1 + random.below(40);
        format!("at step {count}, {:?}", doomed.step(count))
    };
    (doomed.kill(), point)
}

/// What became of a session whose client was killed.
#[derive(Debug)]
enum Fate {
    /// Its client did not live to know of it.
    Unknown,
    /// Its last claim was answered, and the client did not live to tell the new token.
    Lost(Session),
    /// Another claimed it.
    Inherited(i32),
}

/// What the heir of a client does, and checks.
async fn inherit(random: &mut Random, client: &Client, left: &Left, numbers: &[u8]) -> Fate {
    let Some(known) = left.known() else { return Fate::Unknown };
    assert!(numbers.starts_with(&left.output), "what it had read");
    let session = client.session(known.id.parse().unwrap()).await.unwrap();
    match client.claim(&Token::from(&*known.token)).await {
        Ok(claimed) => assert_eq!(claimed.sessions[0].id(), session.id()),
        Err(error) => {
            assert_eq!(left.steps.last().unwrap(), "resized", "{error}");
            assert_eq!(error.refusal(), Some(Refusal::BadToken));
            return Fate::Lost(session);
        }
    }
    let group = manager::group(&session.proxy().unit().await.unwrap());
    assert!(manager::members(&group).contains(&known.pid), "the same process");

    let mut all = left.output.clone();
    let from = all.len() as u64;
    let attach = AttachOptions { start: Start::Cursor(from), ..AttachOptions::default() };
    let mut stream = session.attach(&attach).await.unwrap();
    assert_eq!(stream.begin(), Some(from), "no gap");
    session.resize(77, 33).await.unwrap();
    stream.write_all(b"\n").await.unwrap();
    if random.below(2) == 0 {
        soon("the rest", stream.read_to_end(&mut all)).await.unwrap();
    } else {
        soon("the end", session.ended()).await.unwrap();
        all.extend(retained(&session, from).await);
    }
    let outcome = soon("the end", session.ended()).await.unwrap();
    assert_eq!((&outcome.ending, &*outcome.reason), (&Ending::Exited(0), "exit"));
    assert_eq!((outcome.bytes_out, outcome.bytes_dropped), (all.len() as u64, 0));
    let rest = all.strip_prefix(numbers).expect("the numbers, each once and in order");
    let rest = String::from_utf8(rest.to_vec()).unwrap();
    let keys = rest.strip_prefix("33 77\r\ngot ").expect(&rest).trim_end();
    // Of what it said that it would write, the last may have been written or not.
    let told = left.count("wrote")..=left.count("write");
    assert!(
        told.contains(&keys.matches('x').count()) && keys.chars().all(|key| key == 'x'),
        "{rest}"
    );
    assert_eq!(session.proxy().bytes_in().await.unwrap(), keys.len() as u64 + 1);
    Fate::Inherited(known.pid)
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_killed_at_a_hundred_points_lose_nothing_to_their_heirs() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = Client::over(broker.bus.connect().await).await.unwrap();
    let mut random = Random::seeded();
    let numbers = numbers();
    let (mut inherited, mut lost) = (Vec::new(), Vec::new());
    for round in 0..100 {
        let (left, point) = killed(&mut random, place.path(), numbers.len());
        println!("round {round}: killed {point}");
        match inherit(&mut random, &client, &left, &numbers).await {
            Fate::Unknown => {}
            Fate::Lost(session) => lost.push(session),
            Fate::Inherited(pid) => inherited.push(pid),
        }
    }
    println!("{} sessions were inherited, {} lost their token", inherited.len(), lost.len());
    assert!(inherited.len() > 50, "most clients lived to have a session");
    for session in lost {
        assert_eq!(soon("the end", session.ended()).await.unwrap().reason, "owner-vanished");
    }
    assert!(inherited.iter().all(|pid| !lives(*pid)));
    until("no unit", || manager::session_units().is_empty()).await;
    assert!(broker.tmpdirs().is_empty());
    let running = st2_tools::client::Dict::new().with("phase", "running");
    assert!(client.manager().list_sessions(&running).await.unwrap().is_empty());
}
