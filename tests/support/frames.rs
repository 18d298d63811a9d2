//! A client of the bus that speaks the frames of an attached stream.

use std::io;

use st2_tools::client::Attached;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub use super::frame::*;
use super::soon;

/// A client that speaks them.
#[derive(Debug)]
pub struct Frames(Attached);

impl Frames {
    /// Over a stream that was attached for that.
    pub fn over(attached: Attached) -> Self {
        Self(attached)
    }

    pub async fn send(&mut self, kind: u8, payload: &[u8]) {
        self.try_send(kind, payload).await.unwrap();
    }

    pub async fn try_send(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        self.0.write_all(&encode(kind, payload)).await
    }

    /// The next frame; `None` at the end.
    pub async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let next = async {
            let kind = self.0.read_u8().await.ok()?;
            let length = self.0.read_u32().await.unwrap();
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            self.0.read_exact(&mut payload).await.unwrap();
            Some((kind, payload))
        };
        soon("a frame", next).await
    }

    /// The next frame, which must be one of this kind.
    pub async fn expect(&mut self, kind: u8) -> Vec<u8> {
        let (got, payload) = self.next().await.expect("a frame");
        assert_eq!(got, kind, "{:?}", String::from_utf8_lossy(&payload));
        payload
    }

    /// DATA up to and with this text; other frames must not come.
    pub async fn until(&mut self, end: &str) -> String {
        let mut text = Vec::new();
        while !text.ends_with(end.as_bytes()) {
            text.extend(self.expect(DATA).await);
        }
        String::from_utf8(text).unwrap()
    }
}
