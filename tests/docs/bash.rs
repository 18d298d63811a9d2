//! A bash that runs one command after the other, as a person types them.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// How long one command may take.
const DEADLINE: Duration = Duration::from_secs(30);
/// What marks the end of a command's output, before its status.
const MARK: &str = "\u{1}over ";

/// The shell, with what it prints read line by line.
pub struct Bash {
    child: Child,
    stdin: ChildStdin,
    lines: mpsc::Receiver<String>,
}

impl Bash {
    /// Starts one in a directory.
    pub fn start(directory: &Path) -> Self {
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc"]).current_dir(directory).process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"exec 2>&1\n").unwrap();
        let (sender, lines) = mpsc::channel();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
                line.clear();
            }
        });
        Self { child, stdin, lines }
    }

    /// Runs a command, with nothing on its standard input; gives its status and all that it printed.
    pub fn run(&mut self, command: &str) -> (i32, String) {
        writeln!(self.stdin, "{{ {command}\n}} </dev/null; printf '{MARK}%s\\n' $?").unwrap();
        let mut shown = String::new();
        loop {
            let line = self.lines.recv_timeout(DEADLINE).unwrap_or_else(|error| {
                panic!("{command}: {error}, after {shown:?}");
            });
            if let Some((rest, status)) = line.split_once(MARK) {
                return (status.trim().parse().unwrap(), shown + rest);
            }
            shown += &line;
        }
    }
}

impl Drop for Bash {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
