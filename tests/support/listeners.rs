//! Whoever listens outside, and what was heard.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    os::{
        fd::AsRawFd,
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream},
    },
    path::Path,
    sync::{Arc, Mutex},
    thread,
};

use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, UnixAddr, accept, bind, connect, listen,
    send, socket,
};

use super::wait_for;

/// What the probe sends.
const ATTEMPT: &[u8] = b"attempt";
/// What the test sends, to know that all that came before was heard.
const KNOCK: &[u8] = b"knock";

/// One that listens until the test program ends.
pub struct Listener {
    heard: Arc<Mutex<Vec<u8>>>,
    knock: Box<dyn Fn()>,
}

impl Listener {
    /// Hears what `next` gives, over and over.
    fn new(mut next: impl FnMut() -> Vec<u8> + Send + 'static, knock: impl Fn() + 'static) -> Self {
        let heard = Arc::default();
        let ear: Arc<Mutex<Vec<u8>>> = Arc::clone(&heard);
        thread::spawn(move || {
            loop {
                let said = next();
                ear.lock().unwrap().extend(said);
            }
        });
        Self { heard, knock: Box::new(knock) }
    }

    /// On a path.
    pub fn stream(path: &Path) -> Self {
        let (listener, path) = (UnixListener::bind(path).unwrap(), path.to_owned());
        let accept = move || all(listener.accept().unwrap().0);
        Self::new(accept, move || say(UnixStream::connect(&path).unwrap()))
    }

    /// On an abstract name.
    pub fn hidden(name: &str) -> Self {
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let accept = move || all(listener.accept().unwrap().0);
        Self::new(accept, move || say(UnixStream::connect_addr(&address).unwrap()))
    }

    /// For datagrams, on a path.
    pub fn datagram(path: &Path) -> Self {
        let (socket, path) = (UnixDatagram::bind(path).unwrap(), path.to_owned());
        let receive = move || received(|piece| socket.recv(piece).unwrap());
        Self::new(receive, move || {
            UnixDatagram::unbound().unwrap().send_to(KNOCK, &path).unwrap();
        })
    }

    /// For sequenced packets, on a path.
    pub fn sequence(path: &Path) -> Self {
        let new = || {
            let (kind, flags) = (SockType::SeqPacket, SockFlag::SOCK_CLOEXEC);
            socket(AddressFamily::Unix, kind, flags, None).unwrap()
        };
        let (listener, address) = (new(), UnixAddr::new(path).unwrap());
        bind(listener.as_raw_fd(), &address).unwrap();
        listen(&listener, Backlog::new(8).unwrap()).unwrap();
        let accept = move || all(UnixStream::from(accept(&listener).unwrap()));
        Self::new(accept, move || {
            let socket = new();
            connect(socket.as_raw_fd(), &address).unwrap();
            send(socket.as_raw_fd(), KNOCK, MsgFlags::empty()).unwrap();
        })
    }

    /// For TCP on an address; gives the address.
    pub fn tcp(address: &str) -> (Self, String) {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let accept = move || all(listener.accept().unwrap().0);
        let knock = move || say(TcpStream::connect(address).unwrap());
        (Self::new(accept, knock), address.to_string())
    }

    /// For UDP on an address; gives the address.
    pub fn udp(address: &str) -> (Self, String) {
        let socket = UdpSocket::bind(address).unwrap();
        let address = socket.local_addr().unwrap();
        let receive = move || received(|piece| socket.recv(piece).unwrap());
        let knock = move || {
            UdpSocket::bind((address.ip(), 0)).unwrap().send_to(KNOCK, address).unwrap();
        };
        (Self::new(receive, knock), address.to_string())
    }

    /// Whether an attempt was heard.
    pub fn heard(&self) -> bool {
        self.has(ATTEMPT)
    }

    fn has(&self, word: &[u8]) -> bool {
        self.heard.lock().unwrap().windows(word.len()).any(|window| window == word)
    }

    /// Waits until all that was sent so far has been heard.
    pub fn settle(&self) {
        (self.knock)();
        wait_for("a knock", || self.has(KNOCK));
    }
}

fn all(mut stream: impl Read) -> Vec<u8> {
    let mut said = Vec::new();
    // A peer that is killed may reset the connection: what came before counts.
    let _ = stream.read_to_end(&mut said);
    said
}

fn received(receive: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut piece = [0; 64];
    let count = receive(&mut piece);
    piece[..count].to_vec()
}

fn say(mut stream: impl Write) {
    stream.write_all(KNOCK).unwrap();
}
