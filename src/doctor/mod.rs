//! What sessions get on this machine, why nothing better, and what to do about it.
//!
//! ```text
//! gather: the machine, the bus, the policy ─→ Facts ─→ judge ─→ Diagnosis ─→ the command shows it
//! ```
//!
//! Needs no broker and no bus, starts nothing but the launcher's probe, and changes nothing.
#![forbid(unsafe_code)]

pub mod facts;
mod gather;
mod judge;

pub use self::{gather::gather, judge::judge};

/// How good what was found is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is lost.
    Good,
    /// It works, and something is lost.
    Lesser,
    /// It is not there.
    Missing,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What it is: a word of the documentation.
    pub name: &'static str,
    /// What was found, one line.
    pub found: String,
    /// How good that is.
    pub verdict: Verdict,
    /// What it costs a session; none where nothing is lost.
    pub cost: Option<String>,
    /// What to do about it: a command where one does it.
    pub advice: Option<String>,
}

/// All that was looked at, and what it comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// From the kernel up to what a tool may be granted.
    pub checks: Vec<Check>,
    /// The tier that sessions get; none where no tool can be opened.
    pub tier: Option<String>,
    /// The one sentence.
    pub summary: String,
}

impl Verdict {
    /// The word that is shown.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Lesser => "lesser",
            Self::Missing => "missing",
        }
    }
}

impl Check {
    fn good(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, found: found.into(), verdict: Verdict::Good, cost: None, advice: None }
    }

    fn lesser(name: &'static str, found: impl Into<String>) -> Self {
        Self { verdict: Verdict::Lesser, ..Self::good(name, found) }
    }

    fn missing(name: &'static str, found: impl Into<String>) -> Self {
        Self { verdict: Verdict::Missing, ..Self::good(name, found) }
    }

    fn costs(mut self, cost: impl Into<String>) -> Self {
        self.cost = Some(cost.into());
        self
    }

    fn mended_by(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}
