//! JSON-RPC over two byte streams, one message a line.
//!
//! What cannot be a message is answered as JSON-RPC 2.0 has it, section 5.1, and does not end the connection: nobody
//! waits for an answer that never comes. `rmcp`'s own transport is silent about a line that is no JSON or too long.

use std::{io, sync::Arc};

use rmcp::{
    RoleServer,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::Mutex,
};

/// "Invalid JSON was received by the server."
const PARSE_ERROR: i32 = -32700;
/// "The JSON sent is not a valid Request object."
const INVALID_REQUEST: i32 = -32600;

/// A connection to one client.
#[derive(Debug)]
pub struct Lines<R, W> {
    reader: BufReader<R>,
    writer: Arc<Mutex<W>>,
    /// The line so far. It outlives a `receive` that is dropped half-way, which happens with each answer that is sent.
    line: Vec<u8>,
    /// Whether the rest of the line is thrown away: it was too long.
    skipping: bool,
    longest: usize,
    /// What is to be answered before the next line is read; kept for the same reason as the line.
    complaint: Option<Value>,
}

/// How far reading came.
enum Progress {
    /// A whole line.
    Line,
    /// The line became too long.
    TooLong,
    /// Not at the end of a line yet.
    More,
}

impl<R: AsyncRead + Unpin, W> Lines<R, W> {
    /// A connection that takes lines of at most `longest` bytes.
    pub fn new(reader: R, writer: W, longest: usize) -> Self {
        Self {
            reader: BufReader::new(reader),
            writer: Arc::new(Mutex::new(writer)),
            line: Vec::new(),
            skipping: false,
            longest,
            complaint: None,
        }
    }

    /// Reads to the end of a line; none at the end of the stream.
    async fn next_line(&mut self) -> io::Result<Option<Progress>> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok(None);
            }
            let end = memchr::memchr(b'\n', available);
            let taken = end.map_or(available.len(), |end| end + 1);
            let piece = available[..end.unwrap_or(taken)].to_vec();
            self.reader.consume(taken);
            match self.add(&piece, end.is_some()) {
                Progress::More => {}
                progress => return Ok(Some(progress)),
            }
        }
    }

    fn add(&mut self, piece: &[u8], ends: bool) -> Progress {
        if std::mem::take(&mut self.skipping) {
            self.skipping = !ends;
            return Progress::More;
        }
        if self.line.len() + piece.len() > self.longest {
            self.line = Vec::new();
            self.skipping = !ends;
            return Progress::TooLong;
        }
        self.line.extend_from_slice(piece);
        if ends { Progress::Line } else { Progress::More }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let writer = self.writer.clone();
        async move { write_line(&writer, &message).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(complaint) = &self.complaint {
                write_line(&self.writer, complaint).await.ok()?;
                self.complaint = None;
            }
            match self.next_line().await.ok()?? {
                Progress::More => {}
                Progress::TooLong => {
                    let text = format!("the message is longer than {} bytes", self.longest);
                    self.complaint = Some(complaint(&Value::Null, INVALID_REQUEST, &text));
                }
                Progress::Line => {
                    let line = std::mem::take(&mut self.line);
                    match read(&line) {
                        Ok(message) => return Some(*message),
                        Err(complaint) => self.complaint = complaint,
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.lock().await.shutdown().await
    }
}

/// Writes in one piece and outside of any `select!`: a line that is cut would take the next one with it.
async fn write_line<W>(writer: &Arc<Mutex<W>>, message: &impl serde::Serialize) -> io::Result<()>
where
    W: AsyncWrite + Unpin + Send + 'static,
{
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let writer = writer.clone();
    let written = tokio::spawn(async move {
        let mut writer = writer.lock().await;
        writer.write_all(&line).await?;
        writer.flush().await
    });
    written.await.map_err(io::Error::other)?
}

/// One line as a message, or what is to be answered to it; nothing to a blank line, or to a notification that the
/// protocol does not know.
fn read(line: &[u8]) -> Result<Box<RxJsonRpcMessage<RoleServer>>, Option<Value>> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Err(None);
    }
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        Some(complaint(&Value::Null, PARSE_ERROR, &format!("not JSON: {error}")))
    })?;
    let id = value.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
    let is_notification =
        value.get("id").is_none() && value.get("method").is_some_and(Value::is_string);
    serde_json::from_value(value).map(Box::new).map_err(|_| {
        let text = "not a request, notification or response of this protocol";
        let id = id.unwrap_or(Value::Null);
        (!is_notification).then(|| complaint(&id, INVALID_REQUEST, text))
    })
}

fn complaint(id: &Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

#[cfg(test)]
mod tests {
    use rmcp::model::JsonRpcMessage;
    use tokio::io::{AsyncReadExt, DuplexStream, duplex};

    use super::*;

    const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

    async fn received(input: &str, longest: usize) -> (Vec<String>, Vec<Value>) {
        let (mut client, server) = duplex(1 << 20);
        let (answers, mut theirs): (DuplexStream, DuplexStream) = duplex(1 << 20);
        client.write_all(input.as_bytes()).await.unwrap();
        drop(client);
        let mut lines = Lines::new(server, answers, longest);
        let mut messages = Vec::new();
        while let Some(message) = lines.receive().await {
            messages.push(match message {
                JsonRpcMessage::Request(request) => format!("{}", request.id),
                JsonRpcMessage::Notification(_) => "notification".into(),
                _ => "other".into(),
            });
        }
        drop(lines);
        let mut said = String::new();
        theirs.read_to_string(&mut said).await.unwrap();
        (messages, said.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    #[tokio::test]
    async fn what_is_no_message_is_answered_and_the_next_one_is_read() {
        let input = format!("{{\n\n[1]\n{{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":3}}\n{PING}\r\n");
        let (messages, said) = received(&input, 1024).await;
        assert_eq!(messages, ["7"]);
        let codes: Vec<_> =
            said.iter().map(|answer| (&answer["id"], &answer["error"]["code"])).collect();
        let (null, nine) = (json!(null), json!(9));
        let (parse, invalid) = (json!(PARSE_ERROR), json!(INVALID_REQUEST));
        assert_eq!(codes, [(&null, &parse), (&null, &invalid), (&nine, &invalid)]);
    }

    #[tokio::test]
    async fn a_line_above_the_bound_is_refused_as_a_whole_and_holds_no_memory() {
        let input = format!("{}\n{PING}\n", "x".repeat(1 << 19));
        let (messages, said) = received(&input, 1000).await;
        assert_eq!(messages, ["7"]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert_eq!(said[0]["error"]["message"], "the message is longer than 1000 bytes");
    }

    #[tokio::test]
    async fn a_line_of_exactly_the_bound_is_a_message() {
        let (messages, said) = received(&format!("{PING}\n"), PING.len()).await;
        assert_eq!((messages.len(), said.len()), (1, 0));
        let (messages, said) = received(&format!("{PING}\n"), PING.len() - 1).await;
        assert_eq!((messages.len(), said.len()), (0, 1));
    }
}
