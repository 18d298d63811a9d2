//! Ways to act on other processes.

use std::{
    fs::File,
    io::{self, Error, Read, Seek, SeekFrom, Write},
    os::fd::AsRawFd,
};

use libc::{c_int, c_long, pid_t};
use nix::{
    sched::{CpuSet, sched_setaffinity},
    sys::signal::{Signal, kill},
    unistd::{Pid, getpid, pipe},
};

use super::{call, check, descriptor, nix, number};

/// What is written over a treasure.
const STOLEN: &[u8] = b"stolen";

pub fn run(name: &str, arguments: &[&str]) -> Option<io::Result<()>> {
    let [first, rest @ ..] = arguments else { return None };
    let target = || pid_t::try_from(number(first)).expect("a pid");
    let long = || number(first);
    Some(match (name, rest) {
        ("kill", []) => nix(kill(Pid::from_raw(target()), Signal::SIGKILL)),
        ("signal-all", []) if *first == "urg" => nix(kill(Pid::from_raw(-1), Signal::SIGURG)),
        ("queue-signal", []) => queue_signal(target()),
        ("kill-by-pidfd", []) => kill_by_pidfd(long()),
        ("signal-by-owner", []) => signal_by_owner(target()),
        ("signal-by-socket", []) => signal_by_socket(target()),
        ("seize", []) => call(libc::SYS_ptrace, &[PTRACE_SEIZE, long()]),
        ("write-memory", [address]) => write_memory(target(), number(address)),
        ("read-memory", [address]) => read_memory(target(), number(address)),
        ("write-memory-file", [address]) => write_memory_file(first, number(address)),
        ("pin", []) => pin(target()),
        ("lower-priority", []) => lower_priority(long()),
        ("make-idle", []) => call(libc::SYS_ioprio_set, &[1, long(), IOPRIO_IDLE]),
        ("limit", []) => limit(target()),
        ("schedule", []) => schedule(target()),
        ("schedule-by-attributes", []) => schedule_by_attributes(long()),
        ("compare", []) => call(libc::SYS_kcmp, &[getpid().as_raw().into(), long(), 1]),
        ("join", []) => join(first),
        _ => return None,
    })
}

const PTRACE_SEIZE: c_long = 0x4206;

/// The idle class of ioprio_set(2).
const IOPRIO_IDLE: c_long = 3 << 13;

/// Sends a signal with a value (rt_sigqueueinfo(2)).
fn queue_signal(target: pid_t) -> io::Result<()> {
    let value = libc::sigval { sival_ptr: std::ptr::null_mut() };
    // SAFETY: numbers only.
    check(unsafe { libc::sigqueue(target, libc::SIGTERM, value) })
}

fn kill_by_pidfd(target: c_long) -> io::Result<()> {
    // SAFETY: numbers only.
    let process = descriptor(unsafe { libc::syscall(libc::SYS_pidfd_open, target, 0) })?;
    let kill = libc::SIGKILL.into();
    call(libc::SYS_pidfd_send_signal, &[process.as_raw_fd().into(), kill, 0, 0])
}

/// Has the kernel send the signal: to the owner of a pipe that has something to read (fcntl(2), `F_SETOWN`).
fn signal_by_owner(target: pid_t) -> io::Result<()> {
    let (reader, writer) = pipe()?;
    let reader = reader.as_raw_fd();
    // SAFETY: numbers only.
    check(unsafe { libc::fcntl(reader, libc::F_SETOWN, target) })?;
    // SAFETY: numbers only.
    check(unsafe { libc::fcntl(reader, libc::F_SETFL, libc::O_ASYNC) })?;
    File::from(writer).write_all(b"x")
}

/// Likewise, by another call, on a socket, and with a signal of its choice (socket(7), `FIOSETOWN`; fcntl(2), `F_SETSIG`).
fn signal_by_socket(target: pid_t) -> io::Result<()> {
    use std::os::unix::net::UnixStream;
    let (here, mut there) = UnixStream::pair()?;
    let here = here.as_raw_fd();
    // SAFETY: the owner is read.
    check(unsafe { libc::ioctl(here, FIOSETOWN, &raw const target) })?;
    // SAFETY: numbers only.
    check(unsafe { libc::fcntl(here, F_SETSIG, libc::SIGTERM) })?;
    // SAFETY: numbers only.
    check(unsafe { libc::fcntl(here, libc::F_SETFL, libc::O_ASYNC) })?;
    there.write_all(b"x")
}

/// Of linux/sockios.h and fcntl(2); libc does not name them.
const FIOSETOWN: libc::c_ulong = 0x8901;
const F_SETSIG: c_int = 10;

fn piece(at: *mut u8) -> libc::iovec {
    libc::iovec { iov_base: at.cast(), iov_len: STOLEN.len() }
}

fn write_memory(target: pid_t, address: c_long) -> io::Result<()> {
    let here = piece(STOLEN.as_ptr().cast_mut());
    let there = piece(std::ptr::without_provenance_mut(address.cast_unsigned() as usize));
    // SAFETY: what is here is only read.
    let moved =
        unsafe { libc::process_vm_writev(target, &raw const here, 1, &raw const there, 1, 0) };
    check(c_int::try_from(moved).unwrap_or(-1))
}

fn read_memory(target: pid_t, address: c_long) -> io::Result<()> {
    let mut read = [0; STOLEN.len()];
    let here = piece(read.as_mut_ptr());
    let there = piece(std::ptr::without_provenance_mut(address.cast_unsigned() as usize));
    // SAFETY: what is here is as long as is said.
    let moved =
        unsafe { libc::process_vm_readv(target, &raw const here, 1, &raw const there, 1, 0) };
    check(c_int::try_from(moved).unwrap_or(-1))
}

fn write_memory_file(pid: &str, address: c_long) -> io::Result<()> {
    let mut memory = File::options().read(true).write(true).open(format!("/proc/{pid}/mem"))?;
    let address = SeekFrom::Start(address.cast_unsigned());
    memory.seek(address)?;
    memory.read_exact(&mut [0; STOLEN.len()])?;
    memory.seek(address)?;
    memory.write_all(STOLEN)
}

/// Leaves a process the first processor only.
fn pin(target: pid_t) -> io::Result<()> {
    let mut first = CpuSet::new();
    first.set(0)?;
    nix(sched_setaffinity(Pid::from_raw(target), &first))
}

fn limit(target: pid_t) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: 7, rlim_max: 7 };
    // SAFETY: the limits are read, the old ones not asked for.
    check(unsafe {
        libc::prlimit(target, libc::RLIMIT_NPROC, &raw const limit, std::ptr::null_mut())
    })
}

/// The nice value of a process.
fn niceness(target: c_long) -> io::Result<c_long> {
    // SAFETY: numbers only. What it returns is 20 less the value (getpriority(2)).
    match unsafe { libc::syscall(libc::SYS_getpriority, 0, target) } {
        -1 => Err(Error::last_os_error()),
        answer => Ok(20 - answer),
    }
}

/// By one, from wherever it is.
fn lower_priority(target: c_long) -> io::Result<()> {
    call(libc::SYS_setpriority, &[0, target, niceness(target)? + 1])
}

/// `struct sched_attr` of sched_setattr(2), its first version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    rest: [u64; 3],
}

/// Leaves its nice value as it is.
fn schedule_by_attributes(target: c_long) -> io::Result<()> {
    let size = size_of::<Attributes>().try_into().expect("a small number");
    let policy = libc::SCHED_BATCH.cast_unsigned();
    let nice = niceness(target)?.try_into().expect("a small number");
    let attributes = Attributes { size, policy, nice, ..Attributes::default() };
    // SAFETY: as many bytes are read as are said.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, target, &raw const attributes, 0) };
    check(c_int::try_from(set).unwrap_or(-1))
}

fn schedule(target: pid_t) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are read.
    check(unsafe { libc::sched_setscheduler(target, libc::SCHED_BATCH, &raw const parameters) })
}

/// Leaves its own control group for another.
fn join(group: &str) -> io::Result<()> {
    let mut members = File::options().write(true).open(group)?;
    members
        .write_all(b"0")
        .map_err(|error| Error::from_raw_os_error(error.raw_os_error().unwrap_or(0)))
}
