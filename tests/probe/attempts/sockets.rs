//! Ways to whoever listens.

use std::{
    io::{self, Error, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket},
    os::{
        fd::{AsRawFd, OwnedFd},
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream},
    },
};

use libc::c_int;
use nix::{
    sched::{CloneFlags, unshare},
    sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, send, socket},
};

use super::{check, descriptor, loopback, nix, number, ring};

/// What listeners are sent.
const WORD: &[u8] = b"attempt";

pub fn run(name: &str, arguments: &[&str]) -> Option<io::Result<()>> {
    Some(match (name, arguments) {
        ("send-stream", [path]) => UnixStream::connect(path).and_then(say),
        ("send-abstract", [name]) => SocketAddr::from_abstract_name(name)
            .and_then(|address| UnixStream::connect_addr(&address))
            .and_then(say),
        ("send-datagram", [path]) => {
            UnixDatagram::unbound().and_then(|socket| socket.send_to(WORD, path)).map(drop)
        }
        ("send-sequence", [path]) => send_sequence(path),
        ("send-by-ring", [path]) => send_by_ring(path),
        ("listen-stream", [path]) => UnixListener::bind(path).map(drop),
        ("send-tcp", [address]) => TcpStream::connect(address).and_then(say),
        ("send-udp", [address]) => send_udp(address),
        ("send-mptcp", [port]) => send_mptcp(port.parse().expect("a port")),
        ("talk-over-loopback", []) => meet_tcp().and_then(|()| meet_udp()),
        ("listen-udp", []) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map(drop),
        ("listen-everywhere", []) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).map(drop),
        ("meet-tcp", []) => meet_tcp(),
        ("meet-udp", []) => meet_udp(),
        ("routes", []) => ask_kernel(libc::NETLINK_ROUTE, libc::RTM_GETLINK, 16),
        ("sockets-of-all", []) => ask_kernel(libc::NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, 56),
        ("device-events", []) => device_events(),
        ("listen-vsock", []) => listen_vsock(),
        ("in-namespace", [family, protocol]) => in_namespace(family, protocol),
        _ => return None,
    })
}

fn say(mut stream: impl Write) -> io::Result<()> {
    stream.write_all(WORD)
}

fn new_socket(family: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: numbers only.
    descriptor(unsafe { libc::socket(family, kind, protocol) }.into())
}

fn send_sequence(path: &str) -> io::Result<()> {
    let (kind, flags) = (SockType::SeqPacket, SockFlag::SOCK_CLOEXEC);
    let socket = socket(AddressFamily::Unix, kind, flags, None)?;
    connect(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    nix(send(socket.as_raw_fd(), WORD, MsgFlags::empty()))
}

/// Has io_uring(7) make the socket: no filter of system calls sees that.
fn send_by_ring(path: &str) -> io::Result<()> {
    let socket = ring::socket(libc::AF_UNIX, libc::SOCK_STREAM)?;
    connect(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    say(UnixStream::from(socket))
}

fn send_udp(address: &str) -> io::Result<()> {
    let here = if address.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
    UdpSocket::bind(here)?.send_to(WORD, address).map(drop)
}

/// Listens, and speaks to itself.
fn meet_tcp() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    TcpStream::connect(listener.local_addr()?).and_then(say)?;
    heard(|piece| listener.accept()?.0.read(piece))
}

fn meet_udp() -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.send_to(WORD, socket.local_addr()?)?;
    heard(|piece| socket.recv(piece))
}

fn heard(receive: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<()> {
    let mut piece = [0; WORD.len()];
    let count = receive(&mut piece)?;
    if &piece[..count] == WORD { Ok(()) } else { Err(Error::from_raw_os_error(libc::EIO)) }
}

/// A protocol over which TCP connections are made that are none to many a hook.
fn send_mptcp(port: u16) -> io::Result<()> {
    let socket = new_socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_MPTCP)?;
    let address = loopback(port);
    let length = size_of_val(&address).try_into().expect("a small number");
    // SAFETY: the address is read for the length given.
    check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    say(TcpStream::from(socket))
}

/// `SOCK_DIAG_BY_FAMILY` of sock_diag(7).
const SOCK_DIAG_BY_FAMILY: u16 = 20;

/// Asks for a list, and reads the beginning of it (netlink(7)).
fn ask_kernel(protocol: c_int, kind: u16, body: u8) -> io::Result<()> {
    const REQUEST_DUMP: u16 = 0x301; // NLM_F_REQUEST | NLM_F_DUMP
    let socket = new_socket(libc::AF_NETLINK, libc::SOCK_RAW, protocol)?;
    let length = 16 + u32::from(body);
    let mut message = vec![0; usize::from(body) + 16];
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message[4..6].copy_from_slice(&kind.to_ne_bytes());
    message[6..8].copy_from_slice(&REQUEST_DUMP.to_ne_bytes());
    if kind == SOCK_DIAG_BY_FAMILY {
        // Of every TCP socket, in every state.
        (message[16], message[17]) = (libc::AF_INET as u8, libc::IPPROTO_TCP as u8);
        message[20..24].fill(0xff);
    }
    send(socket.as_raw_fd(), &message, MsgFlags::empty())?;
    let mut answer = [0; 8192];
    let read = nix::sys::socket::recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    let answered = u16::from_ne_bytes([answer[4], answer[5]]);
    let error = libc::NLMSG_ERROR as u16;
    if read >= 16 && answered != error { Ok(()) } else { Err(Error::from_raw_os_error(libc::EIO)) }
}

/// Joins the group that hears of every device (udev(7)).
fn device_events() -> io::Result<()> {
    use nix::sys::socket::{NetlinkAddr, bind};
    let socket = new_socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT)?;
    nix(bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 1)))
}

/// Listens to the host of a virtual machine, or to the machines of a host (vsock(7)).
fn listen_vsock() -> io::Result<()> {
    use nix::sys::socket::{VsockAddr, bind};
    let socket = new_socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0)?;
    nix(bind(socket.as_raw_fd(), &VsockAddr::new(libc::VMADDR_CID_ANY, libc::VMADDR_PORT_ANY)))
}

/// Makes a raw socket with the capabilities that a user namespace gives.
fn in_namespace(family: &str, protocol: &str) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?;
    let number = |text| c_int::try_from(number(text)).expect("a small number");
    new_socket(number(family), libc::SOCK_RAW, number(protocol)).map(drop)
}
