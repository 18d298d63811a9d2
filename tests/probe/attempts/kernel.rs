//! Ways through the kernel: namespaces, other entries, programs of other users, what is inherited.

use std::{
    env,
    ffi::CString,
    fs::{self, File},
    io::{self, Error},
    os::fd::AsRawFd,
    path::Path,
    process::{Command, Stdio},
};

use nix::sched::{CloneFlags, setns, unshare};

use super::{call, check, nix, put};

pub fn run(name: &str, arguments: &[&str]) -> Option<io::Result<()>> {
    Some(match (name, arguments) {
        ("shell", [script]) => shell(script),
        ("new-user-namespace", []) => nix(unshare(CloneFlags::CLONE_NEWUSER)),
        ("enter-namespace", [pid]) => enter_namespace(pid),
        ("remount", [outside, inside]) => remount(outside, inside),
        ("x32", []) => call(libc::SYS_getppid | 1 << 30, &[]),
        ("change-execution-domain", []) => change_execution_domain(),
        ("gain-user", []) => gain_user(),
        ("find-variable", names) => find_variable(names),
        ("set-line-discipline", []) => set_line_discipline(),
        ("type-elsewhere", [terminal]) => type_elsewhere(terminal),
        _ => return None,
    })
}

/// Has real programs try.
fn shell(script: &str) -> io::Result<()> {
    let output = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    Err(Error::other(output.status.to_string()))
}

/// Puts the line discipline on its terminal that every terminal has.
fn set_line_discipline() -> io::Result<()> {
    let ordinary: libc::c_int = 0; // N_TTY
    // SAFETY: TIOCSETD reads one number.
    check(unsafe { libc::ioctl(0, libc::TIOCSETD, &raw const ordinary) })
}

/// Enters the user namespace of another process, of which it would be the owner.
fn enter_namespace(pid: &str) -> io::Result<()> {
    let namespace = File::open(format!("/proc/{pid}/ns/user"))?;
    nix(setns(namespace, CloneFlags::CLONE_NEWUSER))
}

/// Shows a directory from outside inside, with the capabilities that a user namespace gives.
fn remount(outside: &str, inside: &str) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
    let [from, to] = [outside, inside].map(|path| CString::new(path).expect("a path"));
    let (flags, nothing) = (libc::MS_BIND | libc::MS_REC, std::ptr::null());
    // SAFETY: both paths end with NUL; a bind mount takes no type and no options.
    check(unsafe { libc::mount(from.as_ptr(), to.as_ptr(), nothing, flags, nothing.cast()) })?;
    fs::write(Path::new(inside).join("by-remount"), "x")
}

/// Turns off the randomisation of addresses for every program to come.
fn change_execution_domain() -> io::Result<()> {
    // SAFETY: numbers only.
    check(unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) })
}

/// Starts a program that runs as its owner, root, and looks whether it does.
fn gain_user() -> io::Result<()> {
    let mut child = Command::new("su").stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    // Its standard input stays open: it waits for a password.
    let status = format!("/proc/{}/status", child.id());
    let effective = || {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        users.and_then(|users| users.split_whitespace().nth(1).map(str::to_owned))
    };
    // A new program shows its own name only after its users have been settled.
    while fs::read_to_string(status.replace("status", "comm")).is_ok_and(|name| name != "su\n") {
        std::thread::yield_now();
    }
    let gained = effective().is_some_and(|user| user == "0");
    drop(child.stdin.take());
    let _ = child.kill();
    child.wait()?;
    if gained { Ok(()) } else { Err(Error::from_raw_os_error(libc::EPERM)) }
}

/// Finds one of these in its environment.
fn find_variable(names: &[&str]) -> io::Result<()> {
    let found: Vec<_> = names.iter().filter(|name| env::var_os(name).is_some()).collect();
    eprintln!("{found:?}");
    if found.is_empty() { Err(Error::from_raw_os_error(libc::ENOENT)) } else { Ok(()) }
}

/// Takes a terminal that is nobody's, and types into it.
fn type_elsewhere(terminal: &str) -> io::Result<()> {
    nix(nix::unistd::setsid())?;
    // Opening makes it the controlling terminal of a session that has none.
    put(terminal, "")?;
    let terminal = File::options().read(true).write(true).open(terminal)?;
    let byte = b'\n';
    // SAFETY: TIOCSTI reads one byte.
    check(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSTI, &raw const byte) })
}
