//! What an attempt came to.

use super::{attempt::Attempt, side::Side};

/// What one attempt came to on one side.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The word of the probe, and what was complained of.
    pub said: (String, String),
    /// Whether it had its effect, where that can be seen.
    pub effect: Option<bool>,
    /// What the session says is open.
    pub gaps: Vec<String>,
}

/// A field of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// It works unconfined, as it must.
    Works,
    /// It does not work for anybody here, for the reason that it gives.
    Excused(String),
    /// It is refused to a tool.
    Refused(String),
    /// There is no session to try it in: the tier cannot give what its tool asks for.
    NotOpened(String),
    /// It is open to a tool, and the session says so.
    Declared(String),
    /// What must not be; the reason.
    Wrong(String),
}

/// How the word of an attempt begins that was not made; the rest is the error.
pub const NOT_OPENED: &str = "not opened: ";

/// What a tool is refused with. Anything else would say that the attempt itself is at fault.
const REFUSALS: [i32; 9] = [
    libc::EACCES,
    libc::EPERM,
    libc::ENOSYS,
    libc::EXDEV,
    libc::EROFS,
    // What is outside is not there at all, in some tiers.
    libc::ENOENT,
    libc::ESRCH,
    libc::EBADF,
    // What is protected by a mount of its own cannot be renamed away.
    libc::EBUSY,
];

/// The same, in the words of programs.
const COMPLAINTS: [&str; 3] = ["ermission denied", "not permitted", "No such file"];

impl Verdict {
    /// A verdict of the test's own: whether something was seen to happen.
    pub fn seen(happened: bool, gaps: Vec<String>) -> Self {
        let said = if happened { "ok" } else { "prevented" }.to_owned();
        Self { said: (said, String::new()), effect: Some(happened), gaps }
    }

    /// Of an attempt for which there is no session.
    pub fn not_opened(error: &str) -> Self {
        Self {
            said: (format!("{NOT_OPENED}{error}"), String::new()),
            effect: None,
            gaps: Vec::new(),
        }
    }

    fn errno(&self) -> Option<i32> {
        self.said.0.strip_prefix("errno ").map(|number| number.parse().unwrap())
    }

    /// The errno's name; of programs, the end of what they complained of.
    fn word(&self) -> String {
        let last = self.said.1.trim().lines().last().unwrap_or_default();
        let complaint = last.rsplit(": ").next().filter(|word| !word.is_empty());
        match self.errno() {
            Some(number) => format!("{:?}", nix::errno::Errno::from_raw(number)),
            None if self.said.0 == "ok" => "without effect".to_owned(),
            None => complaint.unwrap_or(&self.said.0).to_owned(),
        }
    }

    /// Holds it against what it should be.
    pub fn judge(&self, attempt: &Attempt, side: &Side) -> Field {
        match side {
            Side::Unconfined => self.unconfined(attempt),
            Side::Tier(tier) => match self.said.0.strip_prefix(NOT_OPENED) {
                Some(error) if attempt.from.refused_in(tier) == Some(error) => {
                    Field::NotOpened(error.to_owned())
                }
                Some(error) => Field::Wrong(format!("no session: {error} {}", self.said.1)),
                None => self.confined(attempt),
            },
        }
    }

    fn unconfined(&self, attempt: &Attempt) -> Field {
        if attempt.excuse.is_some() && self.errno() == attempt.excuse {
            return Field::Excused(self.word());
        }
        match (self.said.0.as_str(), self.effect) {
            ("ok", None | Some(true)) => Field::Works,
            ("ok", Some(false)) => Field::Wrong("without effect".to_owned()),
            _ => Field::Wrong(format!("{} {}", self.word(), self.said.1.trim())),
        }
    }

    fn confined(&self, attempt: &Attempt) -> Field {
        // What a tool does to a place of its own that has an outside name has no effect outside.
        let open = self.effect.unwrap_or(self.said.0 == "ok");
        let stated = attempt.gaps.iter().find(|gap| self.gaps.iter().any(|stated| stated == *gap));
        match (open, stated) {
            (true, Some(gap)) => Field::Declared((*gap).to_owned()),
            (true, None) => Field::Wrong(format!("ESCAPES: {} {:?}", self.word(), self.effect)),
            (false, Some(gap)) => Field::Wrong(format!("{}, though {gap} is stated", self.word())),
            (false, None) if self.is_refusal(attempt) => Field::Refused(self.word()),
            (false, None) => Field::Wrong(format!("fails of itself: {}", self.word())),
        }
    }

    fn is_refusal(&self, attempt: &Attempt) -> bool {
        let complaint = || COMPLAINTS.iter().any(|complaint| self.said.1.contains(complaint));
        match (self.errno(), self.said.0.as_str()) {
            (Some(number), _) => REFUSALS.contains(&number) || attempt.refusal == Some(number),
            (None, "script failed") => complaint(),
            (None, word) => word != "timeout",
        }
    }
}
