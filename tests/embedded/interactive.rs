//! A person at a terminal: raw while the tool has it, sizes, keys, job control, and the terminal as it was after that.

use std::fs;

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{place::Place, terminal::Terminal};

/// The command on a terminal.
fn run(place: &Place, arguments: &[&str]) -> Terminal {
    Terminal::run(&place.command(arguments))
}

/// A shell that has its prompt.
fn shell(place: &Place) -> Terminal {
    let terminal = run(place, &["run"]);
    terminal.screen.wait_for(&prompt(place));
    assert!(terminal.is_raw());
    terminal
}

/// What it shows when it reads a command: what is typed earlier may be thrown away with what it ended.
fn prompt(place: &Place) -> String {
    let sign = if nix::unistd::geteuid().is_root() { '#' } else { '$' };
    format!("{} {sign} ", place.workspace().display())
}

#[test]
fn a_shell_has_its_terminal_and_gives_it_back() {
    let place = Place::new();
    let mut terminal = shell(&place);
    terminal.press(b"test -t 0 -a -t 1 -a -t 2 && tty && echo $((6 * 7)) >answer\r");
    terminal.screen.wait_for("/dev/pts/");
    terminal.press(b"exit 7\r");
    assert_eq!(terminal.end().exit_code(), 7);
    assert!(terminal.is_as_it_was());
    assert_eq!(fs::read(place.workspace().join("answer")).unwrap(), b"42\n");
}

#[test]
fn a_new_size_reaches_the_tool() {
    let place = Place::new();
    let script = "trap 'stty size; exit 0' WINCH; stty size; sleep 1000 & wait";
    let mut terminal = run(&place, &["run", "--", "bash", "-c", script]);
    terminal.screen.wait_for("30 100");
    terminal.resize(132, 50);
    terminal.screen.wait_for("50 132");
    assert_eq!(terminal.end().exit_code(), 0);
}

#[test]
fn keys_interrupt_and_stop_what_is_in_the_foreground() {
    let place = Place::new();
    let mut terminal = shell(&place);
    let prompt = prompt(&place);
    terminal.press(b"echo re'ady'; cat\r");
    terminal.screen.wait_for("ready\r\n");
    terminal.press(b"seen\r");
    terminal.screen.wait_for("seen\r\nseen");
    terminal.press(b"\x03");
    terminal.screen.wait_for(&format!("^C\r\n{prompt}"));
    terminal.press(b"echo st'atus' $?; echo re'ady again'; cat\r");
    terminal.screen.wait_for("status 130\r\nready again\r\n");
    terminal.press(b"once\r");
    terminal.screen.wait_for("once\r\nonce");
    terminal.press(b"\x1a");
    terminal.screen.wait_for(&format!("Stopped                 cat\r\n{prompt}"));
    terminal.press(b"fg\r");
    terminal.screen.wait_for("fg\r\n");
    terminal.screen.wait_for("\ncat\r\n");
    terminal.press(b"more\r");
    terminal.screen.wait_for("more\r\nmore");
    terminal.press(b"\x04");
    terminal.screen.wait_for(&format!("more\r\nmore\r\n{prompt}"));
    terminal.press(b"echo le'ft' $(jobs | wc -l); exit 0\r");
    terminal.screen.wait_for("left 0");
    assert_eq!(terminal.end().exit_code(), 0);
    assert!(terminal.is_as_it_was());
}

/// The modes of the terminal, and those that the tool had drawn with.
#[test]
fn the_terminal_is_given_back_however_the_command_is_told_to_end() {
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT] {
        let place = Place::new();
        let mut terminal = full_screen(&place);
        kill(terminal.pid(), signal).unwrap();
        assert_eq!(terminal.end().exit_code(), 128 + signal as u32, "{signal}");
        assert!(terminal.is_as_it_was(), "{signal}");
        terminal.screen.wait_for("\x1b[?1049l");
        place.nothing_is_left_of(terminal.pid());
    }
}

#[test]
fn the_terminal_is_given_back_when_the_tool_is_killed() {
    let place = Place::new();
    let mut terminal = full_screen(&place);
    let tool = fs::read_to_string(place.workspace().join("pid")).unwrap();
    kill(Pid::from_raw(tool.trim().parse().unwrap()), Signal::SIGKILL).unwrap();
    assert_eq!(terminal.end().exit_code(), 128 + 9);
    assert!(terminal.is_as_it_was());
    terminal.screen.wait_for("\x1b[?25h");
    terminal.screen.wait_for("\x1b[?1049l");
}

/// A tool that has changed the screen, hidden the cursor and says in a file who it is.
fn full_screen(place: &Place) -> Terminal {
    let script = "echo $$ >pid; printf '\\033[?1049h\\033[?25ldrawn'; stty raw -echo; cat";
    let terminal = run(place, &["run", "--", "sh", "-c", script]);
    terminal.screen.wait_for("drawn");
    assert!(terminal.is_raw());
    terminal
}
