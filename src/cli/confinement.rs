//! What a tool may touch, for a person: of an explanation and of a session alike.

use std::collections::BTreeMap;

use super::{gaps, sheet::Section};
use crate::client::Dict;

/// The keys that are shown here.
pub(super) const KEYS: [&str; 14] = [
    "read",
    "write",
    "execute",
    "devices",
    "protect",
    "network",
    "unix_sockets",
    "sockets",
    "tier",
    "landlock_abi",
    "signals",
    "syscalls",
    "capabilities",
    "gaps",
];

/// What may be touched, each path once, under all that may be done with it.
pub(super) fn grants(dict: &Dict) -> Section {
    let texts = |key| dict.texts(key).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let mut by_access: BTreeMap<(bool, bool), Vec<String>> = BTreeMap::new();
    let (write, execute) = (dict.texts("write"), dict.texts("execute"));
    for path in dict.texts("read") {
        let access = (write.contains(&path), execute.contains(&path));
        by_access.entry(access).or_default().push(path.to_owned());
    }
    let mut take = |write, execute| by_access.remove(&(write, execute)).unwrap_or_default();
    Section::new("may")
        .lines("read, write, run", take(true, true))
        .lines("read, write", take(true, false))
        .lines("read, run", take(false, true))
        .lines("read", take(false, false))
        .lines("but not change", texts("protect"))
        .lines("use devices", texts("devices"))
        .lines("use sockets", texts("sockets"))
        .row("use the network", dict.text("network").unwrap_or_default())
}

/// How that is enforced, and what is not.
pub(super) fn enforcement(dict: &Dict) -> Section {
    let gaps = dict.texts("gaps");
    let widest = gaps.iter().map(|gap| gap.len()).max().unwrap_or(0);
    let gap = |gap: &&str| format!("{gap:widest$}  {}", gaps::meaning(gap)).trim_end().to_owned();
    let tier = match (dict.text("tier"), dict.number("landlock_abi")) {
        (Some(tier), Some(abi)) => format!("{tier}, Landlock ABI {abi}"),
        (tier, _) => tier.unwrap_or_default().to_owned(),
    };
    let word = |key| dict.text(key).unwrap_or_default();
    Section::new("confined by")
        .row("tier", tier)
        .row("local sockets", word("unix_sockets"))
        .row("signals", word("signals"))
        .row("system calls", word("syscalls"))
        .row("capabilities", word("capabilities"))
        .lines("gaps", gaps.iter().map(gap).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::sheet::Sheet;

    #[test]
    fn a_path_stands_once_under_all_that_may_be_done_with_it() {
        let list = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
        let dict = Dict::new()
            .with("read", list(&["/w", "/t", "/usr", "/proc"]))
            .with("write", list(&["/w", "/t"]))
            .with("execute", list(&["/w", "/usr"]))
            .with("protect", list(&["/w/.git/hooks"]))
            .with("devices", list(&["terminal"]))
            .with("network", "none")
            .with("tier", "mounts")
            .with("landlock_abi", 7_u32)
            .with("gaps", list(&["udp-open", "audit", "new"]));
        let text = Sheet::default().with(grants(&dict)).with(enforcement(&dict)).text();
        insta::assert_snapshot!(text, @r"
        may
          read, write, run  /w
          read, write       /t
          read, run         /usr
          read              /proc
          but not change    /w/.git/hooks
          use devices       terminal
          use the network   none

        confined by
          tier              mounts, Landlock ABI 7
          gaps              udp-open  UDP is open
                            audit     what it is refused is not in the audit log
                            new
        ");
    }
}
