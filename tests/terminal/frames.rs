//! A client that speaks the frames of the attach stream.

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    sync::Arc,
};

use st2_tools::terminal::{Framing, Mode};

pub use crate::frame::*;
use crate::tool::{PATIENCE, Tool, client};

/// A frame that came.
pub type Frame = (u8, Vec<u8>);

pub struct Client(UnixStream);

/// A GEOMETRY frame.
pub fn geometry(columns: u16, rows: u16) -> Frame {
    (GEOMETRY, size(columns, rows))
}

impl Client {
    /// A stream that has said nothing yet.
    pub fn connect(tool: &Tool, mode: Mode) -> Self {
        let framing = Framing::Pty(Arc::new(|| "{\"phase\":\"running\"}".to_owned()));
        let socket = tool.terminal.attach("", mode, framing).unwrap().socket;
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(socket)
    }

    /// One that has attached with control, from a terminal of this size.
    pub fn attach(tool: &Tool, columns: u16, rows: u16) -> Self {
        let mut client = Self::connect(tool, Mode::Control);
        client.send(ATTACH, &size(columns, rows));
        client
    }

    pub fn send(&mut self, kind: u8, payload: &[u8]) {
        self.0.write_all(&encode(kind, payload)).unwrap();
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Closes the sending half.
    pub fn send_no_more(&self) {
        self.0.shutdown(Shutdown::Write).unwrap();
    }

    pub fn into_inner(self) -> UnixStream {
        self.0
    }

    fn read(&mut self) -> Option<Frame> {
        let mut header = [0; 5];
        if self.0.read(&mut header[..1]).unwrap() == 0 {
            return None;
        }
        self.0.read_exact(&mut header[1..]).unwrap();
        let mut payload = vec![0; u32::from_be_bytes(header[1..].try_into().unwrap()) as usize];
        self.0.read_exact(&mut payload).unwrap();
        Some((header[0], payload))
    }

    /// The next frame; `None` at the end.
    pub async fn next(&mut self) -> Option<Frame> {
        let mut copy = Self(self.0.try_clone().unwrap());
        client(move || copy.read()).await
    }

    /// The next frame, which must be one of this kind.
    pub async fn expect(&mut self, kind: u8) -> Vec<u8> {
        let (got, payload) = self.next().await.expect("a frame");
        assert_eq!(got, kind, "{:?}", String::from_utf8_lossy(&payload));
        payload
    }

    /// All frames to the end; those of DATA joined.
    pub async fn rest(&mut self) -> Vec<Frame> {
        let mut frames: Vec<Frame> = Vec::new();
        while let Some((kind, payload)) = self.next().await {
            match frames.last_mut() {
                Some((DATA, last)) if kind == DATA => last.extend(payload),
                _ => frames.push((kind, payload)),
            }
        }
        frames
    }

    /// DATA until it ends with this text; other frames must not come.
    pub async fn until(&mut self, end: &str) -> Vec<u8> {
        let mut text = Vec::new();
        while !text.ends_with(end.as_bytes()) {
            text.extend(self.expect(DATA).await);
        }
        text
    }
}
