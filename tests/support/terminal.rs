//! A program on a terminal, as a person has it.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::{
    io::{Read, Write},
    process::Command,
    sync::{Arc, Condvar, Mutex},
    thread,
    time::Instant,
};

use nix::unistd::Pid;
use portable_pty::{Child, CommandBuilder, ExitStatus, PtyPair, PtySize, native_pty_system};

use super::program::DEADLINE;

/// A program on a terminal of its own.
pub struct Terminal {
    pair: PtyPair,
    /// All its modes before the program had it.
    original: String,
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    pub screen: Arc<Screen>,
}

/// All that was shown, and a wait for more.
#[derive(Default)]
pub struct Screen {
    shown: Mutex<Vec<u8>>,
    more: Condvar,
}

impl Terminal {
    /// Starts a program whose whole environment and directory are set.
    pub fn run(command: &Command) -> Self {
        let size = PtySize { rows: 30, cols: 100, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut builder = CommandBuilder::new(command.get_program());
        builder.args(command.get_args());
        builder.env_clear();
        for (name, value) in command.get_envs() {
            builder.env(name, value.unwrap());
        }
        builder.env("TERM", "xterm-test");
        builder.cwd(command.get_current_dir().unwrap());
        let original = modes(&pair);
        let child = pair.slave.spawn_command(builder).unwrap();
        let screen = Arc::new(Screen::default());
        let (reader, watched) = (pair.master.try_clone_reader().unwrap(), Arc::clone(&screen));
        thread::spawn(move || watched.watch(reader));
        let keyboard = pair.master.take_writer().unwrap();
        Self { pair, original, child, keyboard, screen }
    }

    /// The program's process.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.process_id().unwrap().try_into().unwrap())
    }

    /// Types.
    pub fn press(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).unwrap();
        self.keyboard.flush().unwrap();
    }

    /// Whether each mode is what it was before the program.
    pub fn is_as_it_was(&self) -> bool {
        modes(&self.pair) == self.original
    }

    /// Whether every key reaches the program as it is, and none is shown.
    pub fn is_raw(&self) -> bool {
        let modes = format!("{:?}", self.pair.master.get_termios().unwrap().local_flags);
        let mut modes = modes.split(|c: char| !c.is_alphanumeric());
        !modes.any(|mode| ["ICANON", "ECHO", "ISIG"].contains(&mode))
    }

    /// Gives the terminal another size.
    pub fn resize(&self, columns: u16, rows: u16) {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        self.pair.master.resize(size).unwrap();
    }

    /// Waits for the program's end, at most the deadline; then ends it and the test.
    pub fn end(&mut self) -> ExitStatus {
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut killer = self.child.clone_killer();
        thread::scope(|scope| {
            scope.spawn(|| sender.send(self.child.wait()));
            receiver.recv_timeout(DEADLINE).unwrap_or_else(|_| {
                killer.kill().unwrap();
                panic!("it did not end; shown: {:?}", self.screen.text())
            })
        })
        .unwrap()
    }
}

/// As text, to be compared: the type is one of another version of nix than ours.
fn modes(pair: &PtyPair) -> String {
    format!("{:?}", pair.master.get_termios().unwrap())
}

impl Screen {
    fn watch(&self, mut reader: Box<dyn Read + Send>) {
        let mut piece = [0; 4096];
        while let Ok(read @ 1..) = reader.read(&mut piece) {
            self.shown.lock().unwrap().extend(&piece[..read]);
            self.more.notify_all();
        }
    }

    /// All that was shown so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// Waits until a text was shown.
    pub fn wait_for(&self, wanted: &str) {
        let deadline = Instant::now() + DEADLINE;
        let mut shown = self.shown.lock().unwrap();
        while !String::from_utf8_lossy(&shown).contains(wanted) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{wanted:?} is not in {:?}", String::from_utf8_lossy(&shown));
            shown = self.more.wait_timeout(shown, left).unwrap().0;
        }
    }
}
