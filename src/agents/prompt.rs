//! What an agent's session is launched with beyond its command: a language, and what it is told first.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::timeout;

use super::{
    arguments::Language,
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

/// Types a first prompt, once the terminal is up. Whoever types into the session meanwhile waits.
///
/// # Errors
/// `SESSION_WRITE_FAILED`, or `SESSION_NOT_HEALTHY` where it has ended already. It names the session, which is there:
/// to open it again gives no prompt.
pub async fn type_prompt(entry: &Entry, prompt: &str) -> Result<(), Failure> {
    let _turn = entry.turn().await;
    let shows = entry.until(|state| state.transcript.position() > 0 || state.end.is_some());
    // Its time being over is no failure.
    let _ = timeout(UP, shows).await;
    input::type_line(entry, prompt.as_bytes()).await.map_err(|failure| not_given(entry, failure))
}

fn not_given(entry: &Entry, failure: Failure) -> Failure {
    let id = entry.id();
    let then = if entry.has_ended() {
        ""
    } else {
        ", and open gives it none again; write it with coordinate_agents_session_write"
    };
    failure.for_good().after(format_args!("session {id} was not given its initialPrompt{then}"))
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
