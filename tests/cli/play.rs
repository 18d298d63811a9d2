//! The plays: what a session of the fake does, by the first word of its argv.

use std::{
    collections::HashMap,
    os::{fd::OwnedFd as StdOwnedFd, unix::net::UnixStream},
    sync::{Arc, Mutex},
};

use serde_bytes::ByteBuf;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::watch,
};
use zbus::{Connection, ObjectServer, OwnedFd, interface};

use crate::fake::{Log, Options, Refused, UNIT, text, variant};

/// A session of the fake, which plays the first word of its argv.
pub struct Session {
    log: Arc<Log>,
    id: String,
    argv: Vec<String>,
    attached: Mutex<u32>,
    outcome: watch::Sender<Option<(String, i32)>>,
}

impl Session {
    pub fn new(log: Arc<Log>, id: &str, argv: Vec<String>) -> Self {
        let (outcome, _) = watch::channel(None);
        Self { log, id: id.to_owned(), argv, attached: Mutex::new(0), outcome }
    }

    fn play(&self) -> &str {
        self.argv.first().map_or("", String::as_str)
    }

    fn word(&self, at: usize) -> &str {
        self.argv.get(at).map_or("", String::as_str)
    }

    fn end(&self, signal: &str, code: i32) {
        self.outcome.send_replace(Some((signal.to_owned(), code)));
    }

    async fn ended(&self) -> Options {
        let mut outcome = self.outcome.subscribe();
        let ended = outcome.wait_for(Option::is_some).await.unwrap().clone();
        let (signal, code) = ended.unwrap();
        let kind = if signal.is_empty() { "exited" } else { "signaled" };
        let reason = if self.play() == "timeout" { "timeout" } else { "exit" };
        HashMap::from([
            ("kind".to_owned(), variant(kind)),
            ("code".to_owned(), variant(code)),
            ("signal".to_owned(), variant(signal)),
            ("reason".to_owned(), variant(reason)),
            ("survivors".to_owned(), variant(0_u32)),
        ])
    }

    /// Refuses control to all but a holder: the play `other` belongs to somebody else.
    fn controlled(&self) -> Result<(), Refused> {
        match self.play() {
            "other" | "over" => Err(Refused::NotOwner("the owner is :1.99".into())),
            _ => Ok(()),
        }
    }

    /// Plays one attached stream; the end of the returned future is the stream's end.
    async fn stream(&self, mut stream: tokio::net::UnixStream, attached: u32) {
        match (self.play(), attached) {
            ("say", _) => {
                stream.write_all(self.word(1).as_bytes()).await.unwrap();
                self.end("", self.word(2).parse().unwrap());
            }
            ("screen", _) => {
                stream.write_all(b"\x1b[?1049h\x1b[?25ldrawn").await.unwrap();
                self.cat(stream).await;
            }
            ("cut", 1) => stream.write_all(b"abc").await.unwrap(),
            ("cut", _) => {
                stream.write_all(b"ij").await.unwrap();
                self.end("", 0);
            }
            ("die" | "timeout", _) => self.end(self.word(1), 0),
            _ => self.cat(stream).await,
        }
    }

    /// Echoes until Ctrl-D, or until the session is ended.
    async fn cat(&self, mut stream: tokio::net::UnixStream) {
        let mut outcome = self.outcome.subscribe();
        let mut piece = [0; 256];
        loop {
            let read = tokio::select! {
                read = stream.read(&mut piece) => read.unwrap_or(0),
                _ = outcome.wait_for(Option::is_some) => return,
            };
            let typed = &piece[..read];
            if read > 0 {
                self.log.add(format!("{} typed {:?}", self.id, String::from_utf8_lossy(typed)));
            }
            let end = typed.iter().position(|byte| *byte == 4);
            let written = stream.write_all(&typed[..end.unwrap_or(read)]).await;
            if read == 0 || written.is_err() {
                return self.log.add(format!("{} detached", self.id));
            }
            if end.is_some() {
                return self.end("", 0);
            }
        }
    }
}

#[interface(name = "org.st2.Tools.Session1")]
impl Session {
    async fn attach(
        &self,
        options: Options,
        #[zbus(object_server)] server: &ObjectServer,
        #[zbus(connection)] connection: &Connection,
    ) -> Result<(OwnedFd, Options), Refused> {
        self.log.add(format!("{} Attach {}", self.id, text(&options)));
        let attached = {
            let mut attached = self.attached.lock().unwrap();
            *attached += 1;
            *attached
        };
        let mut info = Options::new();
        match (self.play(), attached) {
            ("quick", _) => {
                self.end("", 7);
                return Err(Refused::Closed("exit 7".into()));
            }
            ("other", _) => self.controlled()?,
            ("cut", 2) => drop(info.insert("begin".into(), variant(8_u64))),
            _ => {}
        }
        let (theirs, ours) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let ours = tokio::net::UnixStream::from_std(ours).unwrap();
        if self.play() == "vanish" {
            let connection = connection.clone();
            tokio::spawn(async move {
                drop(ours);
                connection.close().await
            });
            return Ok((StdOwnedFd::from(theirs).into(), info));
        }
        let path = format!("/org/st2/Tools/session/{}", self.id);
        let this = server.interface::<_, Self>(path).await.unwrap();
        tokio::spawn(async move { this.get().await.stream(ours, attached).await });
        Ok((StdOwnedFd::from(theirs).into(), info))
    }

    /// Of the play `cut`, "abcdefghij" was written and "de" is gone; of `quick`, "quick"; of `bytes`, no text;
    /// of `apart`, five bytes of standard error are gone.
    async fn read(
        &self,
        cursor: u64,
        max_bytes: u32,
        options: Options,
    ) -> Result<(ByteBuf, u64, u64, bool), Refused> {
        self.log.add(format!("{} Read {cursor} {max_bytes} {}", self.id, text(&options)));
        let ended = self.outcome.borrow().is_some();
        let reply = |data: &[u8], begin: u64, eof| {
            let next = begin + u64::try_from(data.len()).unwrap();
            Ok((ByteBuf::from(data), begin, next, eof))
        };
        if self.play() == "apart" {
            let stream = options.get("stream").map(|_| text(&options));
            if stream.is_some_and(|stream| stream.contains("stream=stderr")) {
                self.end("", 3);
                return if cursor == 0 { reply(b"err", 5, true) } else { reply(b"", cursor, true) };
            }
            return reply(b"out", 0, true);
        }
        match (self.play(), cursor) {
            ("quick", 0) => reply(b"quick", 0, true),
            ("cut", 3) => reply(b"fg", 5, false),
            ("bytes", 0) => reply(&[0xff, 0xfe], 0, true),
            ("text", 0) => reply(b"begin ", 0, false),
            ("text", 6) => reply(b"end", 6, true),
            ("gap", 0) => reply(b"rest", 100, true),
            _ => reply(b"", cursor, ended),
        }
    }

    fn write(&self, data: ByteBuf, options: Options) -> Result<u64, Refused> {
        let (data_text, options) = (String::from_utf8_lossy(&data), text(&options));
        self.log.add(format!("{} Write {data_text:?} {options}", self.id).trim_end().to_owned());
        self.controlled()?;
        Ok(data.len().try_into().unwrap())
    }

    /// Of the play `full`, there is room from the second time on; of `apart`, there are no keys.
    fn send_keys(&self, keys: Vec<String>, options: Options) -> Result<(), Refused> {
        let first = self.log.count(&format!("{} SendKeys", self.id)) == 0;
        self.log.add(format!("{} SendKeys {} {}", self.id, keys.join(","), text(&options)));
        match (self.play(), keys.iter().find(|key| key.as_str() == "nosuchkey")) {
            (_, Some(key)) => {
                Err(Refused::NotPermitted(format!("key {key:?} is no name of a key")))
            }
            ("apart", None) => Err(Refused::NotATerminal("the session has pipes".into())),
            ("full", None) if first => Err(Refused::InputFull("the queue is full".into())),
            _ => self.controlled(),
        }
    }

    fn paste(&self, pasted: &str, options: Options) -> Result<(), Refused> {
        self.log.add(format!("{} Paste {pasted:?} {}", self.id, text(&options)));
        self.controlled()
    }

    fn submit(&self) -> Result<(), Refused> {
        self.log.add(format!("{} Submit", self.id));
        self.controlled()
    }

    fn share(&self, mode: &str) -> Result<String, Refused> {
        self.log.add(format!("{} Share {mode}", self.id));
        self.controlled()?;
        Ok(format!("share-{}-{mode}", self.id))
    }

    fn resize(&self, columns: u16, rows: u16, _options: Options) {
        self.log.add(format!("{} Resize {columns} {rows}", self.id));
    }

    fn signal(&self, name: &str) {
        self.log.add(format!("{} Signal {name}", self.id));
    }

    async fn close(&self, options: Options) -> Result<Options, Refused> {
        self.log.add(format!("{} Close {}", self.id, text(&options)));
        self.controlled()?;
        self.end("SIGHUP", 0);
        Ok(self.ended().await)
    }

    async fn kill(&self) -> Result<Options, Refused> {
        self.log.add(format!("{} Kill", self.id));
        self.controlled()?;
        self.end("SIGKILL", 0);
        Ok(self.ended().await)
    }

    async fn wait(&self, _timeout_ms: u64) -> (bool, Options) {
        (true, self.ended().await)
    }

    #[zbus(property)]
    fn id(&self) -> String {
        self.id.clone()
    }

    #[zbus(property)]
    fn io(&self) -> &str {
        if self.play() == "apart" { "pipe" } else { "pty" }
    }

    /// Of the play `over`: it ended, and its lease with it.
    #[zbus(property)]
    fn phase(&self) -> &str {
        if self.play() == "over" { "closed" } else { "running" }
    }

    #[zbus(property)]
    fn outcome(&self) -> Options {
        HashMap::from([
            ("kind".to_owned(), variant("exited")),
            ("code".to_owned(), variant(4_i32)),
            ("reason".to_owned(), variant("exit")),
        ])
    }

    #[zbus(property)]
    fn unit(&self) -> String {
        UNIT.into()
    }

    #[zbus(property)]
    fn command(&self) -> Vec<String> {
        self.argv.clone()
    }

    #[zbus(property)]
    fn bytes_out(&self) -> u64 {
        u64::MAX
    }
}
