//! This program's own terminal, in raw mode while a session uses it and as it was after that, whatever happens.

use std::{
    io::{self, IsTerminal},
    panic,
    sync::{Mutex, Once, PoisonError},
};

use nix::{
    sys::{
        signal::{SigSet, Signal},
        termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr},
    },
    unistd::{getpgrp, tcgetpgrp},
};

use super::error::CliError;

/// The modes to go back to, while the terminal is raw. A panic needs them too, and has no other way to them.
static ORIGINAL: Mutex<Option<Termios>> = Mutex::new(None);

/// Raw mode; ends when dropped, and before a panic is reported.
#[derive(Debug)]
pub(super) struct RawTerminal {
    original: Termios,
}

/// Whether a person sits at both ends: only then is the terminal made raw.
pub(super) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Columns and rows of the terminal, within what a session may have; `None` where there is none or it has no size.
pub(super) fn size() -> Option<(u16, u16)> {
    let (width, height) = terminal_size::terminal_size_of(io::stdout())
        .or_else(|| terminal_size::terminal_size_of(io::stdin()))?;
    Some((width.0.clamp(1, 1000), height.0.clamp(1, 1000)))
}

impl RawTerminal {
    /// Makes the terminal on standard input raw.
    pub(super) fn enter() -> Result<Self, CliError> {
        restore_before_panic_report();
        let original = tcgetattr(io::stdin()).map_err(terminal)?;
        let this = Self { original };
        this.make_raw()?;
        Ok(this)
    }

    /// Gives the terminal back for a while, such as for a stop.
    pub(super) fn suspend(&self) {
        restore();
    }

    /// Takes the terminal again. In the background this stops the program, as it should (SIGTTOU).
    pub(super) fn make_raw(&self) -> Result<(), CliError> {
        *ORIGINAL.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.original.clone());
        let mut raw = self.original.clone();
        cfmakeraw(&mut raw);
        tcsetattr(io::stdin(), SetArg::TCSADRAIN, &raw).map_err(terminal)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore();
    }
}

fn terminal(errno: nix::Error) -> CliError {
    CliError::Terminal { source: errno.into() }
}

/// Sets the original modes, once. A terminal that is gone, or that another program uses now, is left alone.
fn restore() {
    let Some(original) = ORIGINAL.lock().unwrap_or_else(PoisonError::into_inner).take() else {
        return;
    };
    if tcgetpgrp(io::stdin()) != Ok(getpgrp()) {
        return;
    }
    // Between the question and this call the terminal may go to another program: with the signal blocked
    // we are not stopped in the middle of our end.
    let mut stop = SigSet::empty();
    stop.add(Signal::SIGTTOU);
    let blocked = stop.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK);
    let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, &original);
    if let Ok(mask) = blocked {
        let _ = mask.thread_set_mask();
    }
}

fn restore_before_panic_report() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            report(info);
        }));
    });
}

#[cfg(test)]
mod tests {
    use std::{env, io::Read};

    use portable_pty::{CommandBuilder, PtySize, native_pty_system};

    use super::*;

    /// Set for the half of the test that panics, on a terminal of its own.
    const PANICS: &str = "ST2_TOOLS_TEST_PANICS";

    #[test]
    fn a_panic_gives_the_terminal_back_before_it_is_reported() {
        if env::var_os(PANICS).is_some() {
            let _raw = RawTerminal::enter().unwrap();
            panic!("reported on a terminal that breaks lines");
        }
        let pair = native_pty_system().openpty(PtySize::default()).unwrap();
        let mut command = CommandBuilder::new(env::current_exe().unwrap());
        command.args(["--exact", "--nocapture"]);
        command.arg("cli::terminal::tests::a_panic_gives_the_terminal_back_before_it_is_reported");
        command.env(PANICS, "1");
        let mut child = pair.slave.spawn_command(command).unwrap();
        let before = pair.master.get_termios().map(|modes| modes.output_flags);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (mut shown, mut piece) = (Vec::new(), [0; 4096]);
        while !shown.windows(6).any(|window| window == b"FAILED") {
            let read = reader.read(&mut piece).unwrap();
            assert_ne!(read, 0, "{}", String::from_utf8_lossy(&shown));
            shown.extend(&piece[..read]);
        }
        let shown = String::from_utf8_lossy(&shown).into_owned();
        assert!(shown.contains("that breaks lines\r\n"), "{shown:?}");
        assert!(!child.wait().unwrap().success());
        assert_eq!(pair.master.get_termios().map(|modes| modes.output_flags), before);
    }
}
