//! The environment of a tool: built from what is named, never inherited.
//!
//! Scrubbing stops accidents; what stops impersonation is that no socket of the parent agent can be
//! reached.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
};

/// Names that never pass, whatever is declared or asked; `*` at the end stands for any rest.
///
/// They load code into programs, move their configuration, reach the user's bus and service
/// manager, or carry the identity of the parent agent.
const NEVER: &[&str] = &[
    "LD_*",
    "DYLD_*",
    "BASH_ENV",
    "ENV",
    "BASH_FUNC_*",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "NODE_OPTIONS",
    "PYTHONSTARTUP",
    "PERL5OPT",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "GIT_CONFIG_*",
    "GIT_EXEC_PATH",
    "DBUS_*",
    "XDG_RUNTIME_DIR",
    "NOTIFY_SOCKET",
    "LISTEN_*",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "SYSTEMD_*",
    "MANAGERPID",
    "MANAGERPIDFDID",
    "ST_*",
    "ST2_*",
    "ST3_*",
    "PTY_*",
    "CATALOG",
    "CLAUDE_*",
    "CODEX_*",
    "PI_*",
];

/// Names that [`build`] sets itself, so that no request changes where a program is looked up or
/// files are put.
const FIXED: &[&str] = &["HOME", "USER", "LOGNAME", "SHELL", "PATH", "TERM", "TMPDIR", "PWD"];

/// Names that lead to a socket of somebody else: the broker sets them where that socket is granted.
const SOCKETS: &[&str] = &["SSH_AUTH_SOCK", "WAYLAND_DISPLAY"];

/// Names taken from the broker's own environment without a declaration.
const LOCALE: &[&str] = &["LANG", "LC_*", "TZ", "COLORTERM"];

/// What every tool's environment starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// `HOME`.
    pub home: PathBuf,
    /// `USER` and `LOGNAME`.
    pub user: OsString,
    /// `SHELL`.
    pub shell: PathBuf,
    /// `PATH`: the declared one, none of its directories inside a workspace.
    pub path: OsString,
    /// `TERM`.
    pub term: OsString,
    /// `TMPDIR`.
    pub tmpdir: PathBuf,
    /// `PWD`: the working directory.
    pub cwd: PathBuf,
}

/// An environment name that may not pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("environment name {name:?} may not pass: {rule}")]
pub struct ForbiddenName {
    /// The name.
    pub name: String,
    /// The rule that it breaks.
    pub rule: &'static str,
}

/// Tells which rule forbids a name for every tool, if one does; names that are none (empty, with
/// `=` or NUL) included.
#[must_use]
pub fn forbidden(name: &str) -> Option<&'static str> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Some("a name is not empty and holds neither '=' nor NUL");
    }
    NEVER.iter().copied().find(|rule| matches(rule, name.as_bytes()))
}

/// Builds a tool's environment.
///
/// From `broker`, the broker's own environment, come the locale (`LANG`, `LC_*`, `TZ`, `COLORTERM`)
/// and the `declared` names; `request` may give other values for declared names.
///
/// # Errors
/// [`ForbiddenName`] for a declared or requested name that never passes, and for a requested name
/// that is fixed or not declared.
pub fn build(
    base: &Base,
    declared: &BTreeSet<String>,
    broker: &BTreeMap<OsString, OsString>,
    request: &BTreeMap<String, String>,
) -> Result<BTreeMap<OsString, OsString>, ForbiddenName> {
    for name in declared {
        refuse(name, forbidden(name))?;
    }
    for name in request.keys() {
        let undeclared = (!declared.contains(name)).then_some("the tool does not declare it");
        refuse(name, forbidden(name).or_else(|| fixed(name)).or(undeclared))?;
    }
    let passes = |name: &OsStr| {
        let declared = name.to_str().is_some_and(|name| declared.contains(name));
        declared || LOCALE.iter().any(|rule| matches(rule, name.as_bytes()))
    };
    let mut environment: BTreeMap<OsString, OsString> = broker
        .iter()
        .filter(|(name, _)| passes(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    environment.extend(request.iter().map(|(name, value)| (name.into(), value.into())));
    environment.extend(base.variables());
    Ok(environment)
}

impl Base {
    /// The [`FIXED`] names and their values.
    fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        let values: [&OsStr; 8] = [
            self.home.as_ref(),
            &self.user,
            &self.user,
            self.shell.as_ref(),
            &self.path,
            &self.term,
            self.tmpdir.as_ref(),
            self.cwd.as_ref(),
        ];
        FIXED.iter().map(OsString::from).zip(values.map(OsStr::to_owned))
    }
}

fn refuse(name: &str, rule: Option<&'static str>) -> Result<(), ForbiddenName> {
    rule.map_or(Ok(()), |rule| Err(ForbiddenName { name: name.to_owned(), rule }))
}

/// Tells why a name cannot be declared or asked for although it reaches every tool, or those with a
/// granted socket, if it is such a name.
#[must_use]
pub fn fixed(name: &str) -> Option<&'static str> {
    if FIXED.contains(&name) {
        return Some("it is set by the broker");
    }
    SOCKETS.contains(&name).then_some("it is set where the profile grants that socket")
}

fn matches(rule: &str, name: &[u8]) -> bool {
    match rule.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix.as_bytes()),
        None => name == rule.as_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn base() -> Base {
        Base {
            home: "/home/a".into(),
            user: "a".into(),
            shell: "/bin/sh".into(),
            path: "/usr/bin:/bin".into(),
            term: "xterm".into(),
            tmpdir: "/tmp/x".into(),
            cwd: "/w".into(),
        }
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn values<K: Ord + From<&'static str>>(
        pairs: &[(&'static str, &'static str)],
    ) -> BTreeMap<K, K> {
        pairs.iter().map(|(name, value)| (K::from(name), K::from(value))).collect()
    }

    #[test]
    fn nothing_but_the_base_and_the_locale_comes_undeclared() {
        let broker = values(&[
            ("LANG", "de_DE.UTF-8"),
            ("LC_TIME", "C"),
            ("SECRET", "1"),
            ("PATH", "/evil"),
            ("LD_PRELOAD", "x"),
            ("DBUS_SESSION_BUS_ADDRESS", "unix:"),
        ]);
        let built = build(&base(), &names(&[]), &broker, &BTreeMap::new()).unwrap();
        let expected = values(&[
            ("HOME", "/home/a"),
            ("USER", "a"),
            ("LOGNAME", "a"),
            ("SHELL", "/bin/sh"),
            ("PATH", "/usr/bin:/bin"),
            ("TERM", "xterm"),
            ("TMPDIR", "/tmp/x"),
            ("PWD", "/w"),
            ("LANG", "de_DE.UTF-8"),
            ("LC_TIME", "C"),
        ]);
        assert_eq!(built, expected);
    }

    #[test]
    fn a_declared_name_passes_and_a_request_goes_before_the_broker() {
        let declared = names(&["EDITOR", "PAGER"]);
        let broker = values(&[("EDITOR", "vi"), ("PAGER", "less")]);
        let built = build(&base(), &declared, &broker, &values(&[("PAGER", "cat")])).unwrap();
        assert_eq!(built[OsStr::new("EDITOR")], "vi");
        assert_eq!(built[OsStr::new("PAGER")], "cat");
    }

    #[test]
    fn each_rule_forbids_what_it_names() {
        for (name, rule) in [
            ("LD_PRELOAD", "LD_*"),
            ("BASH_FUNC_ls%%", "BASH_FUNC_*"),
            ("GIT_CONFIG_COUNT", "GIT_CONFIG_*"),
            ("ENV", "ENV"),
            ("ST2_SESSION", "ST2_*"),
            ("CLAUDE_CODE", "CLAUDE_*"),
            ("PI_HOME", "PI_*"),
        ] {
            assert_eq!(forbidden(name), Some(rule), "{name}");
        }
        for name in NEVER {
            let example = name.replace('*', "X");
            assert_eq!(forbidden(&example), Some(*name));
        }
        for name in ["ENVIRONMENT", "PIP_INDEX_URL", "STATE", "GIT_PAGER", "LDFLAGS"] {
            assert_eq!(forbidden(name), None, "{name}");
        }
        for name in ["", "A=B", "A\0"] {
            assert!(forbidden(name).is_some(), "{name:?}");
        }
    }

    #[test]
    fn refusals_name_the_name_and_the_rule() {
        let refused = |declared: &[&str], asked: &[(&'static str, &'static str)]| {
            build(&base(), &names(declared), &BTreeMap::new(), &values(asked))
                .unwrap_err()
                .to_string()
        };
        insta::assert_snapshot!(
            [
                refused(&["LD_PRELOAD"], &[]),
                refused(&["PATH"], &[("PATH", "/evil")]),
                refused(&[], &[("EDITOR", "vi")]),
                refused(&[], &[("ST_AGENT", "x")]),
                refused(&["SSH_AUTH_SOCK"], &[("SSH_AUTH_SOCK", "/evil")]),
            ]
            .join("\n"),
            @r#"
        environment name "LD_PRELOAD" may not pass: LD_*
        environment name "PATH" may not pass: it is set by the broker
        environment name "EDITOR" may not pass: the tool does not declare it
        environment name "ST_AGENT" may not pass: ST_*
        environment name "SSH_AUTH_SOCK" may not pass: it is set where the profile grants that socket
        "#
        );
    }

    /// Names of which some are forbidden.
    const NAMES: &str = "[A-Z_]{1,8}|(LD|ST2|DBUS|LC)_[A-Z]{1,4}";

    proptest! {
        #[test]
        fn no_forbidden_name_is_ever_built(
            broker in prop::collection::btree_map(NAMES, ".*", 0..16),
            declared in prop::collection::btree_set(NAMES, 0..8),
        ) {
            let broker = broker.into_iter().map(|(n, v)| (n.into(), v.into())).collect();
            if let Ok(built) = build(&base(), &declared, &broker, &BTreeMap::new()) {
                for name in built.keys() {
                    prop_assert_eq!(forbidden(name.to_str().unwrap()), None);
                }
            }
        }
    }
}
