//! Keys, pastes and Enter, as a program reads them: each test is the program, and reads the user end itself.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::{AsFd, OwnedFd},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use st2_tools::{
    host::unread::unread,
    terminal::{Bounds, PasteError, RingPool, Terminal, TypeError, WriteError, keys::Keys},
};

use crate::tool::{PATIENCE, client, raw_pty, soon};

/// A terminal whose program is the test.
struct Program {
    terminal: Terminal,
    user: OwnedFd,
}

impl Program {
    fn start() -> Self {
        let (controller, user) = raw_pty();
        let held = user.try_clone().unwrap();
        let terminal =
            Terminal::start(controller, held, Bounds::default(), &RingPool::default()).unwrap();
        Self { terminal, user }
    }

    fn file(&self) -> File {
        self.user.try_clone().unwrap().into()
    }

    /// Writes, and waits until the broker has it.
    async fn writes(&self, bytes: &'static [u8]) {
        let before = self.terminal.stats().bytes_out;
        let mut file = self.file();
        client(move || file.write_all(bytes).unwrap()).await;
        self.terminal.read_wait(before, 1, PATIENCE).await.unwrap();
    }

    /// What each read(2) gives, from now on.
    fn reads(&self) -> mpsc::Receiver<Vec<u8>> {
        let (sender, reads) = mpsc::channel();
        let mut file = self.file();
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(count @ 1..) = file.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        reads
    }

    /// Waits until so many bytes are there to be read.
    async fn is_given(&self, count: usize) {
        soon(async {
            while unread(self.user.as_fd()).unwrap() < count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }

    fn read_now(&self) -> Vec<u8> {
        let mut buffer = vec![0; 1 << 16];
        let count = self.file().read(&mut buffer).unwrap();
        buffer.truncate(count);
        buffer
    }
}

fn next(reads: &mpsc::Receiver<Vec<u8>>) -> Vec<u8> {
    reads.recv_timeout(PATIENCE).unwrap()
}

fn keys(names: &[&str]) -> Keys {
    Keys::parse(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn paste_and_enter_are_two_reads() {
    let program = Program::start();
    program.writes(b"\x1b[?2004h").await;
    let reads = program.reads();
    let mut judged = 0;
    for _ in 0..50 {
        let begin = Instant::now();
        program.terminal.paste("echo one\necho two", None).await.unwrap();
        program.terminal.submit().unwrap();
        program.terminal.write(b"next").unwrap();
        let mut read = vec![next(&reads)];
        while read.concat().len() < 34 {
            read.push(next(&reads));
        }
        // A reader that this machine has kept from running for as long as Enter is held up proves nothing.
        if begin.elapsed() < Duration::from_millis(250) {
            let pasted = &b"\x1b[200~echo one\necho two\x1b[201~"[..];
            assert_eq!(read, [pasted, b"\r", b"next"]);
            judged += 1;
        }
    }
    assert!(judged > 0);
}

/// What the previous test guards against happens where nothing is done about it.
#[tokio::test(flavor = "multi_thread")]
async fn writes_alone_are_one_read() {
    let program = Program::start();
    program.terminal.write(b"echo one").unwrap();
    program.terminal.write(b"\r").unwrap();
    program.is_given(9).await;
    assert_eq!(program.read_now(), b"echo one\r");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_does_not_read_holds_enter_up_once_and_not_for_long() {
    let program = Program::start();
    program.terminal.write(b"echo").unwrap();
    let begin = Instant::now();
    for _ in 0..100 {
        program.terminal.submit().unwrap();
    }
    program.is_given(104).await;
    let waited = begin.elapsed();
    assert!(waited >= Duration::from_millis(250), "{waited:?}");
    assert!(waited < Duration::from_secs(5), "each waits for itself: {waited:?}");
    assert_eq!(program.read_now(), [&b"echo"[..], &[b'\r'; 100]].concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn escape_is_a_read_of_its_own() {
    let program = Program::start();
    let reads = program.reads();
    let mut judged = 0;
    for _ in 0..50 {
        let begin = Instant::now();
        program.terminal.press(&keys(&["i", "escape", "O", "A"])).await.unwrap();
        let mut read = vec![next(&reads)];
        while read.concat().len() < 4 {
            read.push(next(&reads));
        }
        // As above: only a reader that was not kept from running proves something.
        if begin.elapsed() < Duration::from_millis(250) {
            assert_eq!(read, [&b"i"[..], b"\x1b", b"OA"]);
            judged += 1;
        }
    }
    assert!(judged > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_pastes_follow_what_the_program_has_just_set() {
    let program = Program::start();
    let up = keys(&["up", "kp5"]);
    program.terminal.press(&up).await.unwrap();
    program.is_given(4).await;
    assert_eq!(program.read_now(), b"\x1b[A5");
    program.writes(b"\x1b[?1h\x1b=\x1b[?2004h").await;
    program.terminal.press(&up).await.unwrap();
    program.is_given(6).await;
    assert_eq!(program.read_now(), b"\x1bOA\x1bOu");
    program.terminal.paste("a\nb", None).await.unwrap();
    program.terminal.paste("a\nb", Some(false)).await.unwrap();
    program.is_given(18).await;
    assert_eq!(program.read_now(), b"\x1b[200~a\nb\x1b[201~a\rb");
    program.writes(b"\x1bc").await;
    program.terminal.press(&up).await.unwrap();
    program.terminal.paste("a", None).await.unwrap();
    program.is_given(5).await;
    assert_eq!(program.read_now(), b"\x1b[A5a");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_not_begun() {
    let program = Program::start();
    let embedded = program.terminal.paste("ls\x1b[201~rm\r", None).await;
    assert_eq!(embedded, Err(TypeError::Paste(PasteError::HoldsEnd)));
    let long = program.terminal.paste(&"x".repeat(65_536), Some(true)).await;
    let limit = 65_536;
    assert_eq!(long, Err(TypeError::Write(WriteError::TooLong { len: limit + 12, limit })));
    assert_eq!(program.terminal.stats().bytes_in, 0);
    let fits = "x".repeat(limit - 12);
    assert_eq!(program.terminal.paste(&fits, Some(true)).await, Ok(65_536));
}
