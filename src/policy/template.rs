//! Texts and paths in a declaration that depend on the session: `~/.gitconfig`, `${TMPDIR}/state`.
//!
//! A closed set of [`Variable`]s, expanded once and never again: what a value holds is not looked
//! at for variables.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    path::{Component, Path, PathBuf},
};

use serde::Deserialize;

/// What a declaration may refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variable {
    /// The user's home directory.
    Home,
    /// The user's name.
    User,
    /// The session's workspace.
    Workspace,
    /// The session's private temporary directory.
    TmpDir,
    /// `XDG_CONFIG_HOME` of the broker; `~/.config` where unset (XDG Base Directory Specification).
    ConfigHome,
}

/// The values of the variables for one session.
pub trait Values {
    /// The value of one.
    fn value(&self, variable: Variable) -> &OsStr;
}

/// A text with variables in it, such as an argument or the value of an environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Text {
    written: String,
    parts: Vec<Part>,
}

/// A path in a profile, with at most one variable, at its beginning.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct PathTemplate {
    base: Option<Variable>,
    rest: PathBuf,
    optional: bool,
}

/// A path that is the same for every session: without `${WORKSPACE}` and `${TMPDIR}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct FixedPath(PathTemplate);

/// A text or path that does not follow its rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// Not one of the variables.
    #[error("unknown variable ${{{0}}}: known are HOME, USER, WORKSPACE, TMPDIR, XDG_CONFIG_HOME")]
    UnknownVariable(String),
    /// `${` without `}`.
    #[error("${{ without }} in {0:?}: write $${{ for the characters themselves")]
    Unclosed(String),
    /// A NUL byte.
    #[error("NUL byte in {0:?}")]
    Nul(String),
    /// A path from nowhere.
    #[error("path {0:?} does not begin with /, ~/ or a variable")]
    NotAbsolute(String),
    /// `..` or `.` or `//` in a path.
    #[error("path {0:?} holds an empty, '.' or '..' component")]
    NotNormal(String),
    /// A path that the tool itself could replace.
    #[error(
        "path {0:?} lies beneath ${{WORKSPACE}} or ${{TMPDIR}}, \
         where the tool could replace it: grant the whole"
    )]
    BeneathTool(String),
    /// A path that would differ between sessions.
    #[error("path {0:?} depends on the session, where one is wanted that does not")]
    NotFixed(String),
    /// The user's name is not a directory.
    #[error("path {0:?} begins with ${{USER}}, which is not a path")]
    NotAPath(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Variable(Variable),
}

impl Variable {
    fn named(name: &str) -> Result<Self, TemplateError> {
        match name {
            "HOME" => Ok(Self::Home),
            "USER" => Ok(Self::User),
            "WORKSPACE" => Ok(Self::Workspace),
            "TMPDIR" => Ok(Self::TmpDir),
            "XDG_CONFIG_HOME" => Ok(Self::ConfigHome),
            other => Err(TemplateError::UnknownVariable(other.to_owned())),
        }
    }
}

impl Text {
    /// The text with every variable replaced.
    #[must_use]
    pub fn expand(&self, values: &impl Values) -> OsString {
        let mut expanded = OsString::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => expanded.push(literal),
                Part::Variable(variable) => expanded.push(values.value(*variable)),
            }
        }
        expanded
    }

    /// The text as it was written.
    #[must_use]
    pub fn as_written(&self) -> &str {
        &self.written
    }
}

impl TryFrom<String> for Text {
    type Error = TemplateError;

    fn try_from(written: String) -> Result<Self, TemplateError> {
        if written.contains('\0') {
            return Err(TemplateError::Nul(written));
        }
        let mut parts = Vec::new();
        let mut rest = written.as_str();
        while let Some(start) = rest.find("${") {
            let (before, from) = rest.split_at(start);
            if let Some(escaped) = before.strip_suffix('$') {
                parts.push(Part::Literal(format!("{escaped}${{")));
                rest = &from[2..];
                continue;
            }
            let end = from.find('}').ok_or_else(|| TemplateError::Unclosed(written.clone()))?;
            parts.push(Part::Literal(before.to_owned()));
            parts.push(Part::Variable(Variable::named(&from[2..end])?));
            rest = &from[end + 1..];
        }
        parts.push(Part::Literal(rest.to_owned()));
        Ok(Self { written, parts })
    }
}

impl PathTemplate {
    /// The variable it begins with.
    #[must_use]
    pub fn base(&self) -> Option<Variable> {
        self.base
    }

    /// Whether it may be absent: written with a leading `-`, as in systemd.exec(5),
    /// `ReadOnlyPaths=`.
    #[must_use]
    pub fn optional(&self) -> bool {
        self.optional
    }

    /// The path for one session.
    #[must_use]
    pub fn expand(&self, values: &impl Values) -> PathBuf {
        match self.base {
            None => self.rest.clone(),
            Some(base) if self.rest.as_os_str().is_empty() => PathBuf::from(values.value(base)),
            Some(base) => Path::new(values.value(base)).join(&self.rest),
        }
    }

    /// Splits `~/x` and `${NAME}/x` into the variable and `x`.
    fn split(written: &str) -> Result<(Option<Variable>, &str), TemplateError> {
        let (base, rest) = if let Some(rest) = written.strip_prefix('~') {
            (Variable::Home, rest)
        } else if let Some(braced) = written.strip_prefix("${") {
            let (name, rest) = braced
                .split_once('}')
                .ok_or_else(|| TemplateError::Unclosed(written.to_owned()))?;
            (Variable::named(name)?, rest)
        } else {
            return Ok((None, written));
        };
        match rest.strip_prefix('/') {
            Some(rest) => Ok((Some(base), rest)),
            None if rest.is_empty() => Ok((Some(base), rest)),
            None => Err(TemplateError::NotAbsolute(written.to_owned())),
        }
    }
}

impl TryFrom<String> for PathTemplate {
    type Error = TemplateError;

    fn try_from(written: String) -> Result<Self, TemplateError> {
        if written.contains('\0') {
            return Err(TemplateError::Nul(written));
        }
        let (path, optional) = match written.strip_prefix('-') {
            Some(path) => (path, true),
            None => (written.as_str(), false),
        };
        let (base, rest) = Self::split(path)?;
        match base {
            None if !rest.starts_with('/') => return Err(TemplateError::NotAbsolute(written)),
            Some(Variable::User) => return Err(TemplateError::NotAPath(written)),
            Some(Variable::Workspace | Variable::TmpDir) if !rest.is_empty() => {
                return Err(TemplateError::BeneathTool(written));
            }
            _ => {}
        }
        if !is_normal(rest) {
            return Err(TemplateError::NotNormal(written));
        }
        Ok(Self { base, rest: PathBuf::from(rest), optional })
    }
}

impl FixedPath {
    /// The path, to be expanded.
    #[must_use]
    pub fn template(&self) -> &PathTemplate {
        &self.0
    }
}

impl TryFrom<String> for FixedPath {
    type Error = TemplateError;

    fn try_from(written: String) -> Result<Self, TemplateError> {
        let template = PathTemplate::try_from(written.clone())?;
        match template.base {
            Some(Variable::Workspace | Variable::TmpDir) => Err(TemplateError::NotFixed(written)),
            _ => Ok(Self(template)),
        }
    }
}

/// Whether a path holds names only: what is compared by prefix must not say the same thing in two
/// ways.
fn is_normal(path: &str) -> bool {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.is_empty()
        || path.split('/').all(|name| {
            let first = Path::new(name).components().next();
            first == Some(Component::Normal(OsStr::new(name)))
        })
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sample;

    impl Values for Sample {
        fn value(&self, variable: Variable) -> &OsStr {
            OsStr::new(match variable {
                Variable::Home => "/home/${USER}",
                Variable::User => "ann",
                Variable::Workspace => "/work",
                Variable::TmpDir => "/tmp/s",
                Variable::ConfigHome => "/config",
            })
        }
    }

    #[test]
    fn a_text_is_expanded_once() {
        for (written, expected) in [
            ("", ""),
            ("plain $x $ $$", "plain $x $ $$"),
            ("${USER}@${WORKSPACE}", "ann@/work"),
            ("${HOME}", "/home/${USER}"),
            ("$${USER}", "${USER}"),
            ("${TMPDIR}${XDG_CONFIG_HOME}", "/tmp/s/config"),
        ] {
            let text = Text::try_from(written.to_owned()).unwrap();
            assert_eq!((text.expand(&Sample), text.as_written()), (expected.into(), written));
        }
    }

    #[test]
    fn a_path_begins_with_at_most_one_variable() {
        for (written, expected, optional) in [
            ("/", "/", false),
            ("/etc/x", "/etc/x", false),
            ("-/etc/x", "/etc/x", true),
            ("~", "/home/${USER}", false),
            ("-~/.gitconfig", "/home/${USER}/.gitconfig", true),
            ("${HOME}/.x", "/home/${USER}/.x", false),
            ("${XDG_CONFIG_HOME}/git", "/config/git", false),
            ("${WORKSPACE}", "/work", false),
            ("/a/${USER}", "/a/${USER}", false),
        ] {
            let path = PathTemplate::try_from(written.to_owned()).unwrap();
            assert_eq!(
                (path.expand(&Sample), path.optional()),
                (expected.into(), optional),
                "{written}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn an_accepted_path_is_absolute_and_normal(
            written in "[-~$]?[{]?(HOME|USER|TMPDIR|X)?[}]?[/.a~]{0,8}",
        ) {
            if let Ok(path) = PathTemplate::try_from(written) {
                let path = path.expand(&Sample);
                proptest::prop_assert!(path.is_absolute());
                proptest::prop_assert!(!path.components().any(|part| part == Component::ParentDir));
            }
        }
    }
}
