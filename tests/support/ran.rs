//! A tool that runs to its end.

use std::path::Path;

use st2_tools::client::Dict;

use super::{Client, all_output, outcome, within};

/// What a tool said, how it ended, and how it was confined.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub said: String,
    pub confinement: Dict,
}

impl Ran {
    /// Whether the session stated a gap.
    pub fn has_gap(&self, gap: &str) -> bool {
        self.confinement.texts("gaps").contains(&gap)
    }

    /// Asserts that it did its work; gives what it said.
    pub fn worked(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.said
    }

    /// Asserts that it failed, and complained of this.
    pub fn failed(&self, complaint: &str) {
        assert_ne!(self.code, Some(0), "{self:?}");
        assert!(self.said.contains(complaint), "{complaint:?}: {self:?}");
    }
}

/// Runs a tool with these arguments.
pub async fn run(client: &Client, tool: &str, workspace: &Path, argv: &[&str]) -> Ran {
    let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
    let (session, _) = client.open(tool, within(workspace).with("argv", argv)).await.unwrap();
    let confinement = session.confinement().await.unwrap();
    let said = all_output(&session).await;
    Ran { code: outcome(&session).await.signed("code"), said, confinement }
}
