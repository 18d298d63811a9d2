//! A client in a process of its own, to be killed: `st2-tools-probe client`.

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, ChildStderr, ChildStdout, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread::{self, JoinHandle},
};

use super::{PATIENCE, program};

/// The process.
#[derive(Debug)]
pub struct Doomed {
    child: Child,
    output: JoinHandle<Vec<u8>>,
    /// How many bytes it has written.
    lengths: Receiver<usize>,
    steps: Receiver<String>,
    /// What it said.
    said: Vec<String>,
}

/// What it left.
#[derive(Debug)]
pub struct Left {
    /// All that it had read of its session.
    pub output: Vec<u8>,
    /// The steps, in order.
    pub steps: Vec<String>,
}

/// A session, as the client that opened it knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub id: String,
    pub pid: i32,
    /// The last token that it told of.
    pub token: String,
}

impl Doomed {
    /// Starts one; `rounds` is how often it types, resizes and claims.
    pub fn start(rounds: usize, tool: &str, workspace: &Path, argv: &[&str]) -> Self {
        let mut child = Command::new(program("st2-tools-probe"))
            .args(["client", &rounds.to_string(), tool, workspace.to_str().unwrap()])
            .args(argv)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (output, lengths) = collect(child.stdout.take().unwrap());
        let steps = tell(child.stderr.take().unwrap());
        Self { child, output, lengths, steps, said: Vec::new() }
    }

    /// Waits for so many steps; gives the last. Its end, by itself, is a failure.
    pub fn step(&mut self, count: usize) -> &str {
        while self.said.len() < count {
            let step = self.steps.recv_timeout(PATIENCE);
            let step = step.unwrap_or_else(|_| panic!("no further step than {:?}", self.said));
            assert!(!step.contains("panicked"), "{step}");
            self.said.push(step);
        }
        &self.said[count - 1]
    }

    /// Waits until it has read so many bytes.
    pub fn has_read(&self, count: usize) {
        while self.lengths.recv_timeout(PATIENCE).expect("more bytes") < count {}
    }

    /// Kills it (SIGKILL).
    pub fn kill(mut self) -> Left {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let Self { output, steps, mut said, .. } = self;
        said.extend(steps);
        Left { output: output.join().unwrap(), steps: said }
    }
}

fn collect(mut from: ChildStdout) -> (JoinHandle<Vec<u8>>, Receiver<usize>) {
    let (sender, lengths) = channel();
    let reader = thread::spawn(move || {
        let (mut all, mut piece) = (Vec::new(), [0; 16 << 10]);
        while let Ok(count @ 1..) = from.read(&mut piece) {
            all.extend_from_slice(&piece[..count]);
            let _ = sender.send(all.len());
        }
        all
    });
    (reader, lengths)
}

fn tell(from: ChildStderr) -> Receiver<String> {
    let (sender, steps) = channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    steps
}

impl Left {
    /// What it knew of its session; `None` where it was killed before it knew of any.
    pub fn known(&self) -> Option<Known> {
        let words = |step: &String| step.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut known = None;
        for step in self.steps.iter().map(words) {
            match (&step[..], &mut known) {
                ([verb, id, pid, token], _) if verb == "opened" => {
                    let (id, token) = (id.clone(), token.clone());
                    known = Some(Known { id, pid: pid.parse().unwrap(), token });
                }
                ([verb, token], Some(known)) if verb == "claimed" => known.token.clone_from(token),
                _ => {}
            }
        }
        known
    }

    /// How often it took a step.
    pub fn count(&self, step: &str) -> usize {
        self.steps.iter().filter(|said| *said == step).count()
    }
}
