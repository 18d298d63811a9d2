//! Ways out, one by one. Each gives the error of the call that was refused.

use std::{
    fs::{self, File},
    io::{self, Error, ErrorKind, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        linux::net::SocketAddrExt,
        unix::{
            fs::PermissionsExt,
            net::{SocketAddr, UnixDatagram, UnixListener, UnixStream},
        },
    },
    path::Path,
    process::Command,
};

use libc::{c_int, c_long};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, sendto, socketpair};

mod files;
mod ipc;
mod kernel;
mod metadata;
mod processes;
mod ring;
mod sockets;

/// Tries one.
pub fn run(name: &str, arguments: &[&str]) -> io::Result<()> {
    match (name, arguments) {
        ("read", [path]) => fs::read(path).map(drop),
        ("read-some", [path]) => File::open(path).map(drop),
        ("read-link", [path]) => fs::read_link(path).map(drop),
        ("chmod", [path]) => fs::set_permissions(path, fs::Permissions::from_mode(0o700)),
        ("set-times", [path]) => set_times(path),
        ("make-directory", [path]) => fs::create_dir(path),
        ("listen-unix", [path]) => listen_unix(path),
        ("own-mount", [path]) => own_mount(path),
        ("new-terminal", []) => nix(nix::pty::openpty(None, None)),
        ("list", [path]) => fs::read_dir(path).map(drop),
        ("write", [path]) => fs::write(path, "x"),
        ("append", [path]) => File::options().append(true).open(path)?.write_all(b"x"),
        ("truncate", [path]) => nix(nix::unistd::truncate(*path, 0)),
        ("remove", [path]) => fs::remove_file(path),
        ("rename", [from, to]) => fs::rename(from, to),
        ("hard-link", [from, to]) => fs::hard_link(from, to),
        ("execute", [path]) => Command::new(path).status().map(drop),
        ("connect-unix", [path]) => UnixStream::connect(path).map(drop),
        ("connect-abstract", [name]) => connect_abstract(name),
        ("datagram-pair", [path]) => datagram_pair(path, libc::SOCK_DGRAM),
        ("raw-pair", [path]) => datagram_pair(path, libc::SOCK_RAW),
        ("stream-pair", []) => UnixStream::pair().map(drop),
        ("socket", [family, kind, protocol]) => {
            call(libc::SYS_socket, &[number(family), number(kind), number(protocol)])
        }
        ("connect-tcp", [port]) => {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port.parse().expect("a port"))).map(drop)
        }
        ("listen-tcp", [port]) => {
            TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse().expect("a port"))).map(drop)
        }
        ("listen-unbound", []) => listen_unbound(),
        ("fast-open", [port]) => fast_open(port.parse().expect("a port")),
        ("tiocsti", []) => type_into_terminal(libc::TIOCSTI),
        ("tiocsti-wide", []) => type_into_terminal(libc::TIOCSTI | 1 << 32),
        ("thread", []) => std::thread::Builder::new().spawn(|| ())?.join().map_err(|_| dead()),
        ("affinity", [pid]) => affinity(pid.parse().expect("a pid")),
        ("io-uring", []) => io_uring(),
        ("shared-memory", []) => shared_memory(),
        ("queue", []) => queue(),
        ("int80", []) => int80(),
        ("open-terminal", [path]) => File::options().read(true).write(true).open(path).map(drop),
        ("uid-0-exec-capabilities", []) => capabilities_after_exec(),
        ("call", [number, rest @ ..]) => {
            let arguments: Vec<c_long> =
                rest.iter().map(|argument| self::number(argument)).collect();
            call(self::number(number), &arguments)
        }
        _ => run_of_family(name, arguments),
    }
}

fn run_of_family(name: &str, arguments: &[&str]) -> io::Result<()> {
    let families = [files::run, metadata::run, sockets::run, ipc::run, processes::run, kernel::run];
    let tried = families.iter().find_map(|family| family(name, arguments));
    tried.unwrap_or_else(|| panic!("unknown attempt {name} {arguments:?}"))
}

fn number(text: &str) -> c_long {
    text.parse().expect("a number")
}

fn nix<T>(result: nix::Result<T>) -> io::Result<()> {
    result.map(drop).map_err(Error::from)
}

/// What a call returned that returns -1 where it fails.
fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

/// What a call returned that makes a descriptor.
fn descriptor(result: c_long) -> io::Result<OwnedFd> {
    let number = c_int::try_from(result).expect("a descriptor");
    check(number)?;
    // SAFETY: the call has just made it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Writes into a file that exists.
fn put(path: &str, text: &str) -> io::Result<()> {
    File::options().write(true).open(path)?.write_all(text.as_bytes())
}

/// A system call by number, with numbers only.
fn call(call: c_long, arguments: &[c_long]) -> io::Result<()> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let [a, b, c, d, e, f] = all;
    // SAFETY: tests only pass numbers, and null where a pointer is expected.
    match unsafe { libc::syscall(call, a, b, c, d, e, f) } {
        -1 => Err(Error::last_os_error()),
        0 if call == libc::SYS_clone => {
            // The child of a fork: it has nothing to do. SAFETY: exiting at once touches nothing.
            unsafe { libc::_exit(0) }
        }
        _ => Ok(()),
    }
}

/// Without following a symlink, as touch(1) does for a file that it may not open.
fn set_times(path: &str) -> io::Result<()> {
    use nix::sys::{stat::UtimensatFlags, time::TimeSpec};
    let now = TimeSpec::UTIME_NOW;
    let flags = UtimensatFlags::NoFollowSymlink;
    nix(nix::sys::stat::utimensat(nix::fcntl::AT_FDCWD, path, &now, &now, flags))
}

/// A listener of one's own, and a connection to it.
fn listen_unix(path: &str) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    let connection = UnixStream::connect(path).and_then(|_| listener.accept()).map(drop);
    fs::remove_file(path)?;
    connection
}

/// Mounts over a path, in namespaces of one's own.
fn own_mount(path: &str) -> io::Result<()> {
    use nix::{
        mount::{MsFlags, mount},
        sched::{CloneFlags, unshare},
    };
    nix(unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS))?;
    nix(mount(Some("probe"), path, Some("tmpfs"), MsFlags::empty(), None::<&str>))
}

fn connect_abstract(name: &str) -> io::Result<()> {
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?).map(drop)
}

/// A pair needs no address, but one end of it can be told to send somewhere else.
fn datagram_pair(path: &str, kind: c_int) -> io::Result<()> {
    let kind = if kind == libc::SOCK_RAW { SockType::Raw } else { SockType::Datagram };
    let (here, _there) = socketpair(AddressFamily::Unix, kind, None, SockFlag::SOCK_CLOEXEC)?;
    let address = UnixAddr::new(Path::new(path))?;
    let sent = sendto(here.as_raw_fd(), b"x", &address, nix::sys::socket::MsgFlags::empty());
    nix(sent)?;
    UnixDatagram::from(here).connect(path)
}

fn listen_unbound() -> io::Result<()> {
    // SAFETY: numbers only.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
    if socket < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: socket(2) has just made it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    call(libc::SYS_listen, &[socket.as_raw_fd().into(), 1])
}

/// Connects by sending, which asks no connect(2).
fn fast_open(port: u16) -> io::Result<()> {
    // SAFETY: numbers only.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
    if socket < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: socket(2) has just made it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let address = loopback(port);
    let length = size_of::<libc::sockaddr_in>().try_into().expect("a small number");
    let (socket, data) = (socket.as_raw_fd(), b"x");
    // SAFETY: data and address are read for the lengths given.
    let sent = unsafe {
        let (data, address) = (data.as_ptr().cast(), (&raw const address).cast());
        libc::sendto(socket, data, 1, libc::MSG_FASTOPEN, address, length)
    };
    if sent == 1 { Ok(()) } else { Err(Error::last_os_error()) }
}

/// A port of this machine.
fn loopback(port: u16) -> libc::sockaddr_in {
    // SAFETY: all zeroes is a valid address.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET.try_into().expect("a small number");
    address.sin_port = port.to_be();
    address.sin_addr.s_addr = u32::from(Ipv4Addr::LOCALHOST).to_be();
    address
}

fn type_into_terminal(request: libc::c_ulong) -> io::Result<()> {
    let byte = b'\n';
    // SAFETY: TIOCSTI reads one byte.
    match unsafe { libc::syscall(libc::SYS_ioctl, 0, request, &raw const byte) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

/// Sets the affinity that a process has already.
fn affinity(pid: i32) -> io::Result<()> {
    let pid = nix::unistd::Pid::from_raw(pid);
    nix(nix::sched::sched_setaffinity(pid, &nix::sched::sched_getaffinity(pid)?))
}

fn io_uring() -> io::Result<()> {
    let mut parameters = [0_u32; 30]; // struct io_uring_params
    // SAFETY: the call fills in the parameters that it is given.
    match unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) } {
        -1 => Err(Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A segment of System V shared memory, made and removed.
fn shared_memory() -> io::Result<()> {
    // SAFETY: numbers only.
    match unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, 0o600) } {
        -1 => Err(Error::last_os_error()),
        // SAFETY: removing takes no structure.
        id => match unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        },
    }
}

/// A POSIX message queue, made and removed.
fn queue() -> io::Result<()> {
    let name = format!("/st2-tools-probe-{}\0", std::process::id());
    let (flags, attributes) = (libc::O_CREAT | libc::O_EXCL, std::ptr::null::<libc::mq_attr>());
    // SAFETY: the name ends with NUL; no attributes means the default ones.
    match unsafe { libc::mq_open(name.as_ptr().cast(), flags, 0o600, attributes) } {
        -1 => Err(Error::last_os_error()),
        // SAFETY: as above.
        _ => match unsafe { libc::mq_unlink(name.as_ptr().cast()) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        },
    }
}

/// getpid by the 32-bit entry, which has numbers of its own; a filter that ends the process is seen
/// by its parent.
#[cfg(target_arch = "x86_64")]
fn int80() -> io::Result<()> {
    let mut result: i64 = 20;
    // SAFETY: the 32-bit getpid takes nothing; the entry clobbers r8 to r11.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inout("rax") result,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    if result > 0 { Ok(()) } else { Err(Error::from_raw_os_error(libc::ENOSYS)) }
}

#[cfg(not(target_arch = "x86_64"))]
fn int80() -> io::Result<()> {
    Err(Error::from_raw_os_error(libc::ENOSYS))
}

/// Whether a program that this one executes has a capability: `ok` is one.
fn capabilities_after_exec() -> io::Result<()> {
    let output = Command::new("/bin/cat").arg("/proc/self/status").output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let sets = ["CapPrm:", "CapEff:", "CapInh:", "CapAmb:", "CapBnd:"];
    let empty = text
        .lines()
        .filter(|line| sets.iter().any(|set| line.starts_with(set)))
        .all(|line| line.ends_with("\t0000000000000000"));
    if empty { Err(Error::from_raw_os_error(libc::EPERM)) } else { Ok(()) }
}

fn dead() -> Error {
    Error::from(ErrorKind::Other)
}
