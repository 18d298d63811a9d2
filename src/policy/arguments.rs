//! What arguments a request may add to a tool's command.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    os::unix::ffi::OsStrExt,
};

use serde::{Deserialize, Deserializer, de};

/// The arguments policy of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Arguments {
    /// None.
    #[default]
    None,
    /// Any, as they are.
    Any,
    /// Declared options, then declared operands, with `--` set between them.
    Declared(Declared),
}

/// Options and operands that a request may give.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Declared {
    /// Options, each at most once a pattern's value allows; none where empty.
    pub options: Vec<OptionPattern>,
    /// What the arguments that are no options may be.
    pub operands: Operands,
}

/// One option: `-q`, `--lines=NUMBER` (one argument) or `-n NUMBER` (two).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct OptionPattern {
    name: String,
    value: Option<(Joint, ValueKind)>,
}

/// What stands between an option and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joint {
    Equals,
    Space,
}

/// What an option's value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    /// 1 to 9 digits.
    Number,
    /// 1 to 64 letters, digits, `.`, `_`, `-`; the first a letter or digit.
    Word,
}

/// What operands a request may give.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operands {
    /// What each may be.
    pub kind: OperandKind,
    /// Fewest.
    #[serde(default)]
    pub at_least: u16,
    /// Most.
    #[serde(default = "Operands::most")]
    pub at_most: u16,
}

/// What one operand may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperandKind {
    /// Any bytes.
    Any,
    /// A path that, its symlinks followed, stays inside the workspace.
    Path,
}

/// An argument that the tool's declaration does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// The tool takes none.
    #[error("argument {0:?}: the tool takes none")]
    NoneTaken(OsString),
    /// Not a declared option.
    #[error("argument {argument:?} is not a declared option: {}", declared(.options))]
    UnknownOption {
        /// The argument.
        argument: OsString,
        /// The options that are.
        options: Vec<String>,
    },
    /// The value of an option is missing or not of its kind.
    #[error("argument {argument:?} does not follow the declared option {pattern:?}")]
    OptionValue {
        /// The argument.
        argument: OsString,
        /// The pattern.
        pattern: String,
    },
    /// More or fewer operands than declared.
    #[error("{given} operands given, {at_least}..={at_most} declared")]
    OperandCount {
        /// How many there are.
        given: usize,
        /// Fewest.
        at_least: u16,
        /// Most.
        at_most: u16,
    },
    /// A path that is not inside the workspace.
    #[error("argument {0:?} is not a path inside the workspace")]
    OutsideWorkspace(OsString),
}

/// A pattern that does not follow its rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "option {0:?} is not -x, --name, or one of these with =NUMBER, =WORD, ' NUMBER' or ' WORD'"
)]
pub struct PatternError(String);

/// Whether a path, relative to the working directory, stays inside the workspace.
pub trait Inside {
    /// Whether it does, its symlinks followed.
    fn holds(&self, path: &OsStr) -> bool;
}

impl Arguments {
    /// Judges the arguments of a request; gives what is appended to the command.
    ///
    /// # Errors
    /// [`ArgumentError`] for the first argument that is not allowed.
    pub fn judge(
        &self,
        given: &[OsString],
        inside: &impl Inside,
    ) -> Result<Vec<OsString>, ArgumentError> {
        match self {
            Self::Any => Ok(given.to_vec()),
            Self::None => match given.first() {
                None => Ok(Vec::new()),
                Some(first) => Err(ArgumentError::NoneTaken(first.clone())),
            },
            Self::Declared(declared) => declared.judge(given, inside),
        }
    }
}

impl Declared {
    fn judge(
        &self,
        given: &[OsString],
        inside: &impl Inside,
    ) -> Result<Vec<OsString>, ArgumentError> {
        let mut appended = Vec::new();
        let mut rest = given;
        while let [argument, after @ ..] = rest {
            if argument == "--" {
                rest = after;
                break;
            }
            if !is_option(argument) {
                break;
            }
            let taken = self.option(argument, after.first())?;
            appended.extend_from_slice(&rest[..taken]);
            rest = &rest[taken..];
        }
        self.operands.judge(rest, inside)?;
        if !rest.is_empty() {
            // An operand can then begin with '-' and still never be read as an option.
            appended.push(OsString::from("--"));
            appended.extend_from_slice(rest);
        }
        Ok(appended)
    }

    /// How many arguments the option takes, itself included.
    fn option(&self, argument: &OsStr, next: Option<&OsString>) -> Result<usize, ArgumentError> {
        let Some(pattern) = self.options.iter().find(|pattern| pattern.is_named_by(argument))
        else {
            return Err(ArgumentError::UnknownOption {
                argument: argument.to_owned(),
                options: self.options.iter().map(ToString::to_string).collect(),
            });
        };
        pattern.taken(argument, next).ok_or_else(|| ArgumentError::OptionValue {
            argument: argument.to_owned(),
            pattern: pattern.to_string(),
        })
    }
}

impl OptionPattern {
    fn is_named_by(&self, argument: &OsStr) -> bool {
        let bytes = argument.as_bytes();
        let name = match self.value {
            Some((Joint::Equals, _)) => bytes.split(|byte| *byte == b'=').next().unwrap_or(bytes),
            Some((Joint::Space, _)) | None => bytes,
        };
        name == self.name.as_bytes()
    }

    fn taken(&self, argument: &OsStr, next: Option<&OsString>) -> Option<usize> {
        match self.value {
            None => Some(1),
            Some((Joint::Equals, kind)) => {
                let value = argument.as_bytes().get(self.name.len() + 1..)?;
                kind.takes(value).then_some(1)
            }
            Some((Joint::Space, kind)) => kind.takes(next?.as_bytes()).then_some(2),
        }
    }
}

impl TryFrom<String> for OptionPattern {
    type Error = PatternError;

    fn try_from(written: String) -> Result<Self, PatternError> {
        let (name, value) = match written.split_once(['=', ' ']) {
            None => (written.as_str(), None),
            Some((name, kind)) => {
                let equals = written.as_bytes().get(name.len()) == Some(&b'=');
                let joint = if equals { Joint::Equals } else { Joint::Space };
                let kind = match kind {
                    "NUMBER" => ValueKind::Number,
                    "WORD" => ValueKind::Word,
                    _ => return Err(PatternError(written)),
                };
                (name, Some((joint, kind)))
            }
        };
        let letters = name.strip_prefix("--").or_else(|| name.strip_prefix('-')).unwrap_or("");
        if ValueKind::Word.takes(letters.as_bytes()) {
            Ok(Self { name: name.to_owned(), value })
        } else {
            Err(PatternError(written))
        }
    }
}

impl ValueKind {
    fn takes(self, value: &[u8]) -> bool {
        match self {
            Self::Number => (1..=9).contains(&value.len()) && value.iter().all(u8::is_ascii_digit),
            Self::Word => {
                (1..=64).contains(&value.len())
                    && value[0].is_ascii_alphanumeric()
                    && value
                        .iter()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
            }
        }
    }
}

impl Operands {
    /// Bounded by the length of argv anyway.
    fn most() -> u16 {
        u16::MAX
    }

    fn judge(&self, given: &[OsString], inside: &impl Inside) -> Result<(), ArgumentError> {
        let Self { kind, at_least, at_most } = *self;
        if given.len() < usize::from(at_least) || given.len() > usize::from(at_most) {
            return Err(ArgumentError::OperandCount { given: given.len(), at_least, at_most });
        }
        let outside = match kind {
            OperandKind::Any => None,
            OperandKind::Path => given.iter().find(|path| !inside.holds(path)),
        };
        outside.map_or(Ok(()), |path| Err(ArgumentError::OutsideWorkspace(path.clone())))
    }
}

impl Default for Operands {
    fn default() -> Self {
        Self { kind: OperandKind::Any, at_least: 0, at_most: 0 }
    }
}

/// `-` alone is the name of standard input, an operand.
fn is_option(argument: &OsStr) -> bool {
    argument.len() > 1 && argument.as_bytes()[0] == b'-'
}

fn declared(options: &[String]) -> String {
    if options.is_empty() { "none is".to_owned() } else { options.join(", ") }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl<'de> de::Visitor<'de> for Visitor {
    type Value = Arguments;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"none\", \"any\" or a table with options and operands")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Arguments, E> {
        match word {
            "none" => Ok(Arguments::None),
            "any" => Ok(Arguments::Any),
            _ => Err(E::invalid_value(de::Unexpected::Str(word), &self)),
        }
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Arguments, A::Error> {
        Declared::deserialize(de::value::MapAccessDeserializer::new(map)).map(Arguments::Declared)
    }
}

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let declared = match self {
            Self::None => return f.write_str("none"),
            Self::Any => return f.write_str("any"),
            Self::Declared(declared) => declared,
        };
        let Operands { kind, at_least, at_most } = declared.operands;
        let kind = match kind {
            OperandKind::Any => "any",
            OperandKind::Path => "path inside the workspace",
        };
        for option in &declared.options {
            write!(f, "[{option}] ")?;
        }
        write!(f, "{at_least}..={at_most} × {kind}")
    }
}

impl fmt::Display for OptionPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match self.value {
            None => Ok(()),
            Some((joint, kind)) => {
                f.write_str(if joint == Joint::Equals { "=" } else { " " })?;
                f.write_str(if kind == ValueKind::Number { "NUMBER" } else { "WORD" })
            }
        }
    }
}

#[cfg(test)]
mod tests;
