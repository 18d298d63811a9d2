//! A client of the broker, to be killed. It says each step on standard error before it takes it and after, and writes
//! what it reads of its session to standard output.

use std::{error::Error, future::pending, io::Write};

use st2_tools::client::{AttachOptions, Client, OpenOptions, Start};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    sync::oneshot,
};

/// What cannot be done here fails the test that runs this.
type Done = Result<(), Box<dyn Error>>;

/// Opens a tool, attaches from its first byte on, and then types `x`, resizes and claims, so many times. Stays until it
/// is killed.
pub fn run(rounds: &str, tool: &str, workspace: &str, argv: &[&str]) -> ! {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let failed = runtime.block_on(live(rounds, tool, workspace, argv));
    panic!("the client ended by itself: {failed:?}");
}

async fn live(rounds: &str, tool: &str, workspace: &str, argv: &[&str]) -> Done {
    let client = Client::over(zbus::Connection::session().await?).await?;
    let options = OpenOptions {
        argv: argv.iter().map(Into::into).collect(),
        workspace: Some(workspace.to_owned()),
        ring_bytes: Some(4 << 20),
        ..OpenOptions::default()
    };
    say("open");
    let opened = client.open(tool, &options).await?;
    let pid = opened.info.number("pid").ok_or("no pid")?;
    let mut token = opened.token;
    say(&format!("opened {} {pid} {}", opened.session.id(), token.reveal()));
    let start = Start::Cursor(0);
    let stream = opened.session.attach(&AttachOptions { start, ..Default::default() }).await?;
    say("attached");
    let (mut shown, mut keys) = stream.into_split();
    let (first, begun) = oneshot::channel();
    tokio::spawn(async move { show(&mut shown, first).await.expect("standard output") });
    begun.await?;
    for round in 0..rounds.parse()? {
        say("write");
        keys.write_all(b"x").await?;
        say("wrote");
        opened.session.resize(81 + round, 25).await?;
        say("resized");
        token = client.claim(&token).await?.token;
        say(&format!("claimed {}", token.reveal()));
    }
    pending().await
}

/// Says a step whole or, where this is killed, not at all: in one write(2).
fn say(step: &str) {
    std::io::stderr().write_all(format!("{step}\n").as_bytes()).expect("standard error");
}

/// Shows what is read; tells when it begins.
async fn show(
    stream: &mut (impl AsyncRead + Unpin),
    first: oneshot::Sender<()>,
) -> std::io::Result<()> {
    let (mut first, mut piece) = (Some(first), [0; 16 << 10]);
    loop {
        let count = stream.read(&mut piece).await?;
        if count == 0 {
            pending::<()>().await;
        }
        std::io::stdout().write_all(&piece[..count])?;
        std::io::stdout().flush()?;
        if let Some(first) = first.take() {
            let _ = first.send(());
        }
    }
}
