//! What a person would see of a session: its bytes, drawn on a screen.

use std::num::NonZero;

use st2_tools::client::{Dict, session::SessionProxy};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

use super::PATIENCE;

/// An attached terminal.
pub struct Screen<'a> {
    session: &'a SessionProxy<'static>,
    stream: UnixStream,
    parser: vt100::Parser,
}

impl<'a> Screen<'a> {
    /// Attaches to a session, and draws all that it has written so far.
    pub async fn attach(session: &'a SessionProxy<'static>) -> Self {
        let options = Dict::new().with("framing", "raw").with("cursor", 0u64);
        let (stream, info) = session.attach(&options).await.unwrap();
        let stream = std::os::unix::net::UnixStream::from(std::os::fd::OwnedFd::from(stream));
        stream.set_nonblocking(true).unwrap();
        let stream = UnixStream::from_std(stream).unwrap();
        let size =
            |key| NonZero::try_from(u16::try_from(info.number(key).unwrap()).unwrap()).unwrap();
        let parser = vt100::Parser::new(size("rows"), size("columns"), 0);
        Self { session, stream, parser }
    }

    /// Waits until the screen is as described; gives its text.
    pub async fn until(&mut self, what: &str, holds: impl Fn(&vt100::Screen) -> bool) -> String {
        let drawn = timeout(PATIENCE, async {
            let mut piece = [0; 4096];
            while !holds(self.parser.screen()) {
                let count = self.stream.read(&mut piece).await.unwrap();
                assert!(count > 0, "the stream ended before {what}: {}", self.text());
                self.parser.process(&piece[..count]);
            }
        });
        let drawn = drawn.await;
        assert!(drawn.is_ok(), "no {what} within {PATIENCE:?}, but:\n{}", self.text());
        self.text()
    }

    /// Waits until the screen shows a text; gives all of its text.
    pub async fn shows(&mut self, text: &str) -> String {
        self.until(&format!("{text:?} on the screen"), |screen| screen.contents().contains(text))
            .await
    }

    /// Waits until a line of the screen is this one; gives all of its text.
    pub async fn line(&mut self, wanted: &str) -> String {
        let is_there =
            |screen: &vt100::Screen| screen.contents().lines().any(|line| line == wanted);
        self.until(&format!("line {wanted:?}"), is_there).await
    }

    /// Waits until the screen does not show a text.
    pub async fn hides(&mut self, text: &str) -> String {
        self.until(&format!("screen without {text:?}"), |screen| !screen.contents().contains(text))
            .await
    }

    /// The text on the screen now.
    pub fn text(&self) -> String {
        self.parser.screen().contents()
    }

    /// Presses keys.
    pub async fn press(&mut self, keys: &str) {
        self.stream.write_all(keys.as_bytes()).await.unwrap();
    }

    /// Gives the terminal another size.
    pub async fn resize(&mut self, columns: u16, rows: u16) {
        self.session.resize(columns, rows, &Dict::new()).await.unwrap();
        let size = |count| NonZero::new(count).unwrap();
        self.parser.screen_mut().set_size(size(rows), size(columns));
    }

    /// Reads to the end of the stream; gives what the screen shows then.
    pub async fn end(mut self) -> String {
        let mut rest = Vec::new();
        let read = timeout(PATIENCE, self.stream.read_to_end(&mut rest)).await;
        assert!(read.is_ok(), "no end of the stream within {PATIENCE:?}, but:\n{}", self.text());
        self.parser.process(&rest);
        self.text()
    }
}
