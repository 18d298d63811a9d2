//! `examples/vte_pane.py` from its window's opening to its end, by a crash in between.

use std::{
    io::{BufRead, BufReader, Lines},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use serde_bytes::Bytes;
use st2_tools::client::{Dict, session::SessionProxy};
use tempfile::TempDir;

use super::display::{Area, Colour, Display};
use crate::support::{Broker, Start, outcome, soon, tools::policy_with, until, workspace};

const TOOL: &str = "title = \"paint\"\ncommand = [\"/usr/bin/python3\", \"-c\"]\narguments = \"any\"\ndirect = true\n";

/// Paints a block of 10 × 5 cells; from `f` on, all of the screen but a frame of one cell on the right and at the bottom,
/// again at each change of its size. `n` changes the colour of the next painting. `q` ends it.
const PAINT: &str = r#"
import os, select, signal, sys, tty

colour, whole = "200;30;90", False

def paint():
    screen = os.get_terminal_size()
    columns, rows = (screen.columns - 2, screen.lines - 2) if whole else (10, 5)
    lines = [f"\033[{row};1H{' ' * columns}" for row in range(1, rows + 1)]
    print(f"\033[?25l\033[m\033[2J\033[48;2;{colour}m", *lines, "\033[m", sep="", end="", flush=True)

tty.setcbreak(0)
changed, tell = os.pipe()
os.set_blocking(tell, False)
signal.set_wakeup_fd(tell)
signal.signal(signal.SIGWINCH, lambda *_: None)
paint()
while True:
    ready, _, _ = select.select([0, changed], [], [])
    key = os.read(0, 1) if 0 in ready else b""
    if changed in ready:
        os.read(changed, 64)
        paint()
    if key == b"f":
        whole = True
        paint()
    if key == b"n":
        colour = "20;160;60"
        print("noted", end="", flush=True)
    if key == b"q":
        sys.exit(5)
"#;

const RED: Colour = 0xc8_1e_5a;
const GREEN: Colour = 0x14_a0_3c;

/// The example, running.
struct Pane {
    program: Child,
    printed: Lines<BufReader<ChildStdout>>,
}

struct Scene {
    broker: Broker,
    display: Display,
    place: TempDir,
    _policy: TempDir,
}

impl Scene {
    async fn new() -> Self {
        let policy = policy_with(&[("paint", TOOL)]);
        let broker = Start::default().policy(policy.path()).shared().await;
        Self { broker, display: Display::start(), place: workspace(), _policy: policy }
    }

    fn pane(&self, arguments: &[&str]) -> Pane {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/vte_pane.py");
        let mut program = Command::new("/usr/bin/python3")
            .arg(example)
            .args(arguments)
            .env("DISPLAY", &self.display.name)
            .env("DBUS_SESSION_BUS_ADDRESS", self.broker.bus.address())
            // Neither settings nor accessibility are looked for on the bus.
            .envs([("GDK_BACKEND", "x11"), ("GSETTINGS_BACKEND", "memory"), ("NO_AT_BRIDGE", "1")])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let printed = BufReader::new(program.stdout.take().unwrap()).lines();
        Pane { program, printed }
    }

    fn paint(&self) -> Pane {
        self.pane(&["paint", self.place.path().to_str().unwrap(), PAINT])
    }

    /// The one session there is.
    async fn session(&self) -> SessionProxy<'static> {
        let client = self.broker.client().await;
        let rows = client.manager.list_sessions(&Dict::new()).await.unwrap();
        assert_eq!(rows.len(), 1);
        client.session(rows[0].text("path").unwrap()).await
    }

    /// Waits until the display shows the first block; gives the size of a cell.
    async fn cell(&self) -> (usize, usize) {
        let is_block = |area: Option<Area>| {
            area.is_some_and(|it| it.is_full() && it.width % 10 == 0 && it.height % 5 == 0)
        };
        let block = self.display.shows("a block", RED, is_block).await.unwrap();
        (block.width / 10, block.height / 5)
    }

    /// Waits until the display shows all of the terminal painted but its frame; gives its columns and rows.
    async fn painted(
        &self,
        session: &SessionProxy<'_>,
        cell: (usize, usize),
        colour: Colour,
    ) -> (usize, usize) {
        let (columns, rows) = size(session).await;
        let area = Area::full((columns - 2) * cell.0, (rows - 2) * cell.1);
        let what = format!("{area:?} in {colour:06x}");
        self.display.shows(&what, colour, |shown| shown == Some(area)).await;
        (columns, rows)
    }
}

async fn size(session: &SessionProxy<'_>) -> (usize, usize) {
    let columns = session.columns().await.unwrap();
    (columns.into(), session.rows_count().await.unwrap().into())
}

impl Pane {
    /// The next line that it prints, after this word.
    fn printed(&mut self, word: &str) -> String {
        let line = self.printed.next().expect("it ended").unwrap();
        line.strip_prefix(word).unwrap_or_else(|| panic!("{line:?}")).to_owned()
    }

    fn kill(&mut self) {
        self.program.kill().unwrap();
        self.program.wait().unwrap();
    }

    async fn succeeds(mut self) {
        until("its end", || self.program.try_wait().unwrap().is_some()).await;
        assert!(self.program.wait().unwrap().success());
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_shows_its_session_follows_its_size_and_comes_back_after_a_crash() {
    let scene = Scene::new().await;
    let display = &scene.display;
    let mut pane = scene.paint();
    let token = pane.printed("token ");
    let session = scene.session().await;
    let cell = scene.cell().await;

    let window = display.window("paint").await;
    display.act(&["windowfocus", &window, "key", "f"]);
    assert_eq!(scene.painted(&session, cell, RED).await, (80, 24));
    display.act(&["windowsize", &window, "640", "300"]);
    soon("the new size", async { while size(&session).await == (80, 24) {} }).await;
    let (columns, rows) = scene.painted(&session, cell, RED).await;
    assert!(
        columns * cell.0 <= 640 && 640 < (columns + 2) * cell.0,
        "{columns} columns of {cell:?}"
    );
    assert!(rows * cell.1 <= 300 && 300 < (rows + 2) * cell.1, "{rows} rows of {cell:?}");
    assert!(session.direct().await.unwrap());

    // The window crashes; the tool goes on, and the broker reads what it writes.
    pane.kill();
    display.shows("nothing", RED, |shown| shown.is_none()).await;
    let before = session.bytes_out().await.unwrap();
    let options = Dict::new().with("token", token.clone());
    session.write(Bytes::new(b"n"), &options).await.unwrap();
    let wait = Dict::new().with("wait_ms", 10_000_u64);
    let read = session.read(before, 64, &wait);
    assert_eq!(soon("what it says", read).await.unwrap().0.as_slice(), b"noted");
    assert!(!session.direct().await.unwrap());

    let mut pane = scene.pane(&["--claim", &token]);
    assert_ne!(pane.printed("token "), token);
    assert_eq!(scene.painted(&session, cell, GREEN).await, (columns, rows), "as it was left");
    let window = display.window("paint").await;
    display.act(&["windowfocus", &window, "key", "q"]);
    assert_eq!(pane.printed("exited "), "5 exit");
    pane.succeeds().await;
    let outcome = outcome(&session).await;
    assert_eq!((outcome.signed("code"), outcome.flag("unseen")), (Some(5), Some(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_is_closed_closes_its_session() {
    let scene = Scene::new().await;
    let mut pane = scene.paint();
    pane.printed("token ");
    let session = scene.session().await;
    scene.cell().await;
    let window = scene.display.window("paint").await;
    scene.display.act(&["windowfocus", &window, "key", "ctrl+shift+w"]);
    assert!(pane.printed("").ends_with(" closed-by-owner"));
    pane.succeeds().await;
    assert_eq!(outcome(&session).await.text("reason"), Some("closed-by-owner"));
}
