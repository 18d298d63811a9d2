//! What an agent's session is launched with beyond its command: a language, and what it is told first.

use std::{collections::BTreeMap, time::Duration};

use super::{
    arguments::Language,
    call::Call,
    desk::Desk,
    entry::Entry,
    failure::{Code, Failure},
    input,
};
use crate::client::{OpenOptions, Refusal};

/// A terminal that shows nothing for so long is up all the same.
const UP: Duration = Duration::from_millis(2500);

/// How a catalogue entry takes a first prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// As an argument, by the broker.
    Argument,
    /// Typed, once its terminal is up.
    Terminal,
}

impl Way {
    /// How this entry takes it.
    ///
    /// # Errors
    /// `INVALID_AGENT_CONFIG`, where it takes none; `SESSION_START_FAILED`, where the broker cannot be asked.
    pub async fn of(desk: &Desk, tool: &str) -> Result<Self, Failure> {
        let tools = desk.client.tools().await;
        let tools = tools.map_err(|error| Failure::of(&error, Code::SessionStartFailed))?;
        let row = tools.iter().find(|row| row.text("name") == Some(tool));
        match row.and_then(|row| row.text("prompt")) {
            Some("argument") => Ok(Self::Argument),
            Some("terminal") => Ok(Self::Terminal),
            _ => {
                let message = format!("catalogue entry {tool:?} takes no initialPrompt");
                Err(Failure::lasting(Code::InvalidAgentConfig, message))
            }
        }
    }
}

/// Types a first prompt, once the terminal is up.
///
/// # Errors
/// `SESSION_WRITE_FAILED`, or `SESSION_NOT_HEALTHY` where it has ended already.
pub async fn type_prompt(entry: &Entry, prompt: &str, call: &Call) -> Result<(), Failure> {
    let shows = entry.until(|state| state.transcript.position() > 0 || state.end.is_some());
    call.wait(UP, shows).await;
    if call.is_cancelled() {
        return Err(Failure::recoverable(Code::SessionWriteFailed, "cancelled before the prompt"));
    }
    input::type_bytes(entry, prompt.as_bytes()).await?;
    input::submit(entry).await
}

/// Adds a language to what is to be opened, where the catalogue lets it pass; gives whether it does.
///
/// # Errors
/// `SESSION_START_FAILED`, where the broker cannot be asked.
pub async fn add_language(
    desk: &Desk,
    tool: &str,
    language: Language,
    options: &mut OpenOptions,
) -> Result<bool, Failure> {
    let locale = language.locale().to_owned();
    let names = ["LANG", "LC_ALL"].map(str::to_owned);
    let env: BTreeMap<_, _> = names.into_iter().map(|name| (name, locale.clone())).collect();
    let asked = OpenOptions { env, ..options.clone() };
    let explained = desk.client.explain(tool, &asked).await;
    let explained = explained.map_err(|error| Failure::of(&error, Code::SessionStartFailed))?;
    let not_permitted = Refusal::NotPermitted.as_str();
    let refused = explained.text("refusal").is_some_and(|name| name.ends_with(not_permitted));
    if !refused {
        *options = asked;
    }
    Ok(!refused)
}
