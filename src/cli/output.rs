//! What a subcommand prints: text for a person, or one JSON document.

use std::io::{self, Write};

use serde_json::Value;

use super::error::CliError;

/// Which of the two is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    /// One JSON document.
    pub(super) json: bool,
}

impl Output {
    /// Prints one answer; only the form that is wanted is made.
    pub(super) fn print(
        self,
        json: impl FnOnce() -> Value,
        text: impl FnOnce() -> String,
    ) -> Result<(), CliError> {
        let answer = if self.json { format!("{:#}\n", json()) } else { text() };
        write(answer.as_bytes())
    }
}

/// Writes bytes to standard output as they are.
pub(super) fn write(bytes: &[u8]) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(CliError::output)
}
