//! The launcher, if it confined nothing: takes the terminal, waits at the gate, becomes its arguments. What an unconfined
//! open would need as well, for the benchmark `confinement` to compare with.

use std::{
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    process::{Command, ExitCode},
};

use st2_tools::launch::inherited;

fn main() -> ExitCode {
    match become_tool() {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("bare: {error}");
            ExitCode::FAILURE
        }
    }
}

fn become_tool() -> io::Result<std::convert::Infallible> {
    inherited::close_descriptors()?;
    // Its end of file says that execve(2) succeeded: the copy is close-on-exec.
    let control: OwnedFd = io::stdin().as_fd().try_clone_to_owned()?;
    let mut control = UnixStream::from(control);
    inherited::take_terminal(io::stdout().as_fd())?;
    inherited::reset_signals()?;
    control.write_all(b"!")?;
    control.read_exact(&mut [0])?;
    let mut argv = std::env::args_os().skip(1);
    let program = argv.next().ok_or(io::ErrorKind::InvalidInput)?;
    Err(Command::new(program).args(argv).exec())
}
