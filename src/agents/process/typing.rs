//! `write`, `send-keys`, `paste` and `submit`.

use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use crate::{
    agents::{
        arguments::{Paste, SendKeys, Submit, Write},
        call::Call,
        desk::Desk,
        entry::Entry,
        failure::{Code, Failure},
        input,
        record::only,
        server::Answer,
    },
    client::Bracketed,
    terminal::keys::Keys,
};

/// Input, as it is.
pub async fn write(desk: &Desk, arguments: Write, call: &Call) -> Answer {
    let entry = desk.roster.find(&arguments.session_id.0)?;
    let (session, Write { data, eof, .. }) = (entry.clone(), arguments);
    let typing = async move {
        let data = data.0.as_bytes();
        input::type_bytes(&session, data).await?;
        if eof {
            let told = input::act(&session, async |session| session.write_last(&[]).await).await;
            told.map_err(|failure| after_bytes(data.len(), failure))?;
        }
        Ok(data.len())
    };
    let bytes = input::in_turn(&entry, call, typing).await?;
    Ok(typed(&entry, bytes))
}

/// Text, bytes and keys, in this order. All is understood before anything is sent.
pub async fn send_keys(desk: &Desk, arguments: SendKeys, call: &Call) -> Answer {
    let entry = desk.roster.find(&arguments.session_id.0)?;
    let strokes = Strokes::of(&entry, arguments)?;
    let (session, waits) = (entry.clone(), call.clone());
    let typing = async move {
        input::type_bytes(&session, &strokes.bytes).await?;
        press(&session, &strokes, &waits).await?;
        Ok(strokes.bytes.len())
    };
    let bytes = input::in_turn(&entry, call, typing).await?;
    Ok(typed(&entry, bytes))
}

/// What `send-keys` sends.
struct Strokes {
    bytes: Vec<u8>,
    keys: Vec<String>,
    delay: Option<Duration>,
}

impl Strokes {
    /// Understands it.
    fn of(entry: &Entry, arguments: SendKeys) -> Result<Self, Failure> {
        let wrong = |message: String| Failure::lasting(Code::SessionWriteFailed, message);
        let keys: Vec<_> = arguments.keys.0.into_iter().map(|key| key.0).collect();
        Keys::parse(&keys).map_err(|error| wrong(error.to_string()))?;
        if entry.facts.pipes && !keys.is_empty() {
            let id = entry.id();
            return Err(wrong(format!("session {id} has no terminal to press keys on")));
        }
        let mut bytes = arguments.literal.map_or_else(Vec::new, |literal| literal.0.into_bytes());
        for hex in &arguments.hex.0 {
            bytes.push(byte(&hex.0).ok_or_else(|| wrong(no_byte(&hex.0)))?);
        }
        let delay = arguments.delay_ms.map(|delay| Duration::from_millis(delay.0));
        Ok(Self { bytes, keys, delay })
    }
}

/// Presses the keys: all at once, or with a pause after each.
async fn press(entry: &Entry, strokes: &Strokes, call: &Call) -> Result<(), Failure> {
    let Strokes { bytes, keys, delay } = strokes;
    let at_once = delay.map_or(keys.len(), |_| 1).max(1);
    let mut pressed = 0;
    for keys in keys.chunks(at_once) {
        if let (1.., Some(delay)) = (pressed, *delay) {
            // Where nobody waits any more, the rest is not pressed.
            let pause = call.wait_long(sleep(delay)).await;
            let cancelled =
                || Failure::recoverable(Code::SessionWriteFailed, "cancelled between keys");
            pause.ok_or_else(cancelled)?;
        }
        let sent = input::act(entry, async |session| session.send_keys(keys).await).await;
        sent.map_err(|failure| match pressed {
            0 => after_bytes(bytes.len(), failure),
            _ => failure.after(format_args!(
                "{} bytes were taken and {pressed} of {} keys pressed",
                bytes.len(),
                strokes.keys.len()
            )),
        })?;
        pressed += keys.len();
    }
    Ok(())
}

/// A text, as if pasted.
pub async fn paste(desk: &Desk, arguments: Paste, call: &Call) -> Answer {
    let entry = desk.roster.find(&arguments.session_id.0)?;
    let bracketed = match arguments.bracketed {
        None => Bracketed::Auto,
        Some(true) => Bracketed::On,
        Some(false) => Bracketed::Off,
    };
    let (session, text) = (entry.clone(), arguments.text.0);
    let bytes = text.len();
    let typing = async move {
        input::act(&session, async |session| session.paste(&text, bracketed).await).await
    };
    input::in_turn(&entry, call, typing).await?;
    Ok(typed(&entry, bytes))
}

/// Enter, after everything before it.
pub async fn submit(desk: &Desk, arguments: &Submit, call: &Call) -> Answer {
    let entry = desk.roster.find(&arguments.session_id.0)?;
    let session = entry.clone();
    input::in_turn(&entry, call, async move { input::submit(&session).await }).await?;
    Ok(only(&entry))
}

/// Says what was taken before something else was not.
fn after_bytes(bytes: usize, failure: Failure) -> Failure {
    match bytes {
        0 => failure,
        _ => failure.after(format_args!("{bytes} bytes were taken, and nothing after them")),
    }
}

fn typed(entry: &Entry, bytes: usize) -> Value {
    let mut answer = only(entry);
    answer["bytes"] = bytes.into();
    answer
}

/// A byte of two hexadecimal digits.
fn byte(digits: &str) -> Option<u8> {
    let two = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    two.then(|| u8::from_str_radix(digits, 16).ok())?
}

fn no_byte(digits: &str) -> String {
    format!("hex {digits:?} is not two hexadecimal digits")
}
