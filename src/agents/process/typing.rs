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
pub async fn write(desk: &Desk, arguments: &Write) -> Answer {
    let entry = desk.roster.find(&arguments.session_id.0)?;
    let data = arguments.data.0.as_bytes();
    input::type_bytes(&entry, data).await?;
    if arguments.eof {
        input::act(&entry, async |session| session.write_last(&[]).await).await?;
    }
    Ok(typed(&entry, data.len()))
}

/// Text, bytes and keys, in this order. All is understood before anything is sent.
pub async fn send_keys(desk: &Desk, arguments: &SendKeys, call: &Call) -> Answer {
    let entry = desk.roster.find(&arguments.session_id.0)?;
    let keys: Vec<_> = arguments.keys.0.iter().map(|key| key.0.clone()).collect();
    let wrong = |message: String| Failure::lasting(Code::SessionWriteFailed, message);
    Keys::parse(&keys).map_err(|error| wrong(error.to_string()))?;
    let raw = arguments.hex.0.iter().map(|hex| byte(&hex.0).ok_or_else(|| wrong(no_byte(&hex.0))));
    let raw = raw.collect::<Result<Vec<u8>, _>>()?;
    let literal = arguments.literal.as_ref().map_or("", |literal| &literal.0).as_bytes();
    for bytes in [literal, &raw] {
        if !bytes.is_empty() {
            input::type_bytes(&entry, bytes).await?;
        }
    }
    press(&entry, &keys, arguments.delay_ms.map(|delay| delay.0), call).await?;
    Ok(typed(&entry, literal.len() + raw.len()))
}

async fn press(
    entry: &Entry,
    keys: &[String],
    delay: Option<u64>,
    call: &Call,
) -> Result<(), Failure> {
    let at_once = delay.map_or(keys.len(), |_| 1).max(1);
    for (index, keys) in keys.chunks(at_once).enumerate() {
        if let (1.., Some(delay)) = (index, delay) {
            let pause = call.wait_long(sleep(Duration::from_millis(delay))).await;
            let cancelled =
                || Failure::recoverable(Code::SessionWriteFailed, "cancelled between keys");
            pause.ok_or_else(cancelled)?;
        }
        input::act(entry, async |session| session.send_keys(keys).await).await?;
    }
    Ok(())
}

/// A text, as if pasted.
pub async fn paste(desk: &Desk, arguments: &Paste) -> Answer {
    let entry = desk.roster.find(&arguments.session_id.0)?;
    let bracketed = match arguments.bracketed {
        None => Bracketed::Auto,
        Some(true) => Bracketed::On,
        Some(false) => Bracketed::Off,
    };
    let text = &arguments.text.0;
    input::act(&entry, async |session| session.paste(text, bracketed).await).await?;
    Ok(typed(&entry, text.len()))
}

/// Enter, after everything before it.
pub async fn submit(desk: &Desk, arguments: &Submit) -> Answer {
    let entry = desk.roster.find(&arguments.session_id.0)?;
    input::submit(&entry).await?;
    Ok(only(&entry))
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
