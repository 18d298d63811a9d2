//! One way out.

use super::{from::From, scene::Scene};

type Words = Box<dyn Fn(&Scene) -> Vec<String>>;
type Trace = Box<dyn Fn(&Scene) -> bool>;

/// One way out: what the probe is to try, and what to look for afterwards.
pub struct Attempt {
    /// What it is, for the table.
    pub name: &'static str,
    /// From where it is tried.
    pub from: From,
    /// Lays out what it needs, and gives the words of the probe.
    pub words: Words,
    /// Whether it has had its effect; without one, its own word counts.
    pub trace: Option<Trace>,
    /// The gaps by any of which a session states that it is open.
    pub gaps: &'static [&'static str],
    /// The error with which even an unconfined program may be refused.
    pub excuse: Option<i32>,
    /// Another error that is as good as a refusal.
    pub refusal: Option<i32>,
}

impl Attempt {
    /// Tries these words.
    pub fn new(name: &'static str, words: impl Fn(&Scene) -> Vec<String> + 'static) -> Self {
        let words = Box::new(words);
        let (trace, excuse, refusal) = (None, None, None);
        Self { name, from: From::Repository, words, trace, gaps: &[], excuse, refusal }
    }

    /// Has real programs try.
    pub fn shell(name: &'static str, script: impl Fn(&Scene) -> String + 'static) -> Self {
        Self::new(name, move |scene| vec!["shell".to_owned(), script(scene)])
    }

    /// Looks for its effect.
    pub fn trace(mut self, trace: impl Fn(&Scene) -> bool + 'static) -> Self {
        self.trace = Some(Box::new(trace));
        self
    }

    /// May be open, if the session says so.
    pub fn gap(mut self, gaps: &'static [&'static str]) -> Self {
        self.gaps = gaps;
        self
    }

    /// May be refused to everybody: by a kernel without it, or by a broker that closes itself.
    pub fn excuse(mut self, errno: i32) -> Self {
        self.excuse = Some(errno);
        self
    }

    /// Leads a tool to a place of its own, where nobody listens.
    pub fn alone(mut self) -> Self {
        self.refusal = Some(libc::ECONNREFUSED);
        self
    }

    /// Is tried from elsewhere.
    pub fn from(mut self, from: From) -> Self {
        self.from = from;
        self
    }
}

/// Words, from whatever can be shown.
macro_rules! words {
    ($($word:expr),+ $(,)?) => { vec![$($word.to_string()),+] };
}
pub(super) use words;
