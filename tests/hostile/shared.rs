//! What programs of one user share without files, and what became of it: made, looked at and removed by the probe.

use std::process::Command;

use serde_json::Value;

use crate::support::program;

/// Objects that exist until they are dropped.
pub struct Shared {
    made: Value,
    name: String,
}

impl Shared {
    /// Makes one of each; `name` is that of those that have one.
    pub fn new(name: &str) -> Self {
        Self { made: ask(&["make", name]), name: name.to_owned() }
    }

    /// The id of one that has no name.
    pub fn id(&self, kind: &str) -> String {
        self.made[kind].to_string()
    }

    /// The name of those that have one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether one is not any more as it was made.
    pub fn changed(&self, kind: &str) -> bool {
        ask(&["look", &self.name, &self.made.to_string()])[kind].as_bool().unwrap()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        ask(&["remove", &self.name, &self.made.to_string()]);
    }
}

fn ask(words: &[&str]) -> Value {
    let output = Command::new(program("st2-tools-probe")).arg("shared").args(words).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}
