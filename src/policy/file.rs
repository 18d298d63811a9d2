//! One TOML file of the policy: read within bounds, and every fault of it placed by file, line,
//! column and key.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, Read},
    ops::Range,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, de};
use toml::{Spanned, de::DeTable};

use crate::policy::{cause::Cause, composition::DEPTH_MAX};

/// Longest policy file, bytes.
pub const FILE_MAX: u64 = 64 * 1024;

/// Longest key and longest words in an error, characters: both may be taken from the file.
const KEY_MAX: usize = 64;
const WORDS_MAX: usize = 500;

/// A place in a file, as an editor counts: lines and columns from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}

/// A policy file that is not in force, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    /// The file (or directory).
    pub file: PathBuf,
    /// Where in it.
    pub position: Option<Position>,
    /// The key at fault, dotted (`arguments.operands`).
    pub key: Option<String>,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a policy file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It cannot be read.
    #[error("cannot read: {0}")]
    Read(Cause),
    /// It is a directory, a pipe, a device.
    #[error("not a regular file")]
    NotAFile,
    /// Anybody may change it.
    #[error("writable by every user (mode {mode:03o}), so its word counts for nothing")]
    WorldWritable {
        /// Permission bits.
        mode: u32,
    },
    /// It is longer than [`FILE_MAX`].
    #[error("longer than {FILE_MAX} bytes")]
    TooLong,
    /// It is not text.
    #[error("not UTF-8")]
    NotUtf8,
    /// Not TOML, or an unknown key, a wrong type, a value outside its rule: in the words of who
    /// refused it.
    #[error("{0}")]
    Content(String),
    /// The file's name is not the name of a tool or profile.
    #[error("{0}")]
    Name(#[from] crate::broker::name::NameError),
    /// There are more files than are read.
    #[error("more than {most} files: none from {first:?} on is read")]
    TooMany {
        /// How many are read.
        most: usize,
        /// The first that is not.
        first: String,
    },
    /// A tool that is no program and lets a request name none.
    #[error("an empty command needs arguments = \"any\"")]
    NoCommand,
    /// The profile that a tool or another profile names is not there.
    #[error("profile {0:?} is not declared")]
    NoProfile(String),
    /// The profile that a tool or another profile names is masked.
    #[error("profile {0:?} is masked")]
    MaskedProfile(String),
    /// The profile a tool names is broken.
    #[error("profile {name:?} cannot be used: {error}")]
    BrokenProfile {
        /// The profile.
        name: String,
        /// Its own fault.
        error: Box<FileError>,
    },
    /// A profile includes itself.
    #[error("profiles include each other: {0}")]
    ProfileCycle(String),
    /// Profiles include each other too far down.
    #[error("with profile {0:?} more than {DEPTH_MAX} profiles include each other in a row")]
    ProfileDepth(String),
    /// Networks that mean nothing together.
    #[error(
        "network {network:?} of profile {profile:?} does not join with that of another profile: \
         \"loopback\" leads nowhere else"
    )]
    ProfileNetwork {
        /// The profile that is added.
        profile: String,
        /// Its network.
        network: Box<str>,
    },
    /// Two profiles set a variable, to different values.
    #[error("profile {profile:?} sets {variable} to something else than another profile")]
    ProfileVariable {
        /// The profile that is added.
        profile: String,
        /// The variable.
        variable: Box<str>,
    },
}

impl FileError {
    /// A fault of the file as a whole.
    #[must_use]
    pub fn whole(file: &Path, fault: Fault) -> Self {
        Self { file: file.to_owned(), position: None, key: None, fault }
    }

    /// The fault and its place, for where the file is named already.
    pub(super) fn without_file(&self) -> String {
        let place = self.position.map(|Position { line, column }| format!("{line}:{column}: "));
        let key = self.key.as_ref().map(|key| format!("key {key:?}: "));
        format!("{}{}{}", place.unwrap_or_default(), key.unwrap_or_default(), self.fault)
    }

    fn read(file: &Path, error: &io::Error) -> Self {
        Self::whole(file, Fault::Read(error.into()))
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(Position { line, column }) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ": key {key:?}")?;
        }
        write!(f, ": {}", self.fault)
    }
}

impl std::error::Error for FileError {}

/// Reads and parses one policy file.
///
/// # Errors
/// [`FileError`], placed as exactly as the fault allows.
pub fn read<T: for<'de> Deserialize<'de>>(file: &Path) -> Result<T, FileError> {
    parse(file, &text(file)?)
}

/// Parses the text of a policy file; `file` is for the error only.
///
/// # Errors
/// [`FileError`] with [`Fault::Content`].
pub fn parse<T: for<'de> Deserialize<'de>>(file: &Path, text: &str) -> Result<T, FileError> {
    toml::from_str(text).map_err(|error| FileError {
        file: file.to_owned(),
        position: error.span().map(|span| position(text, span.start)),
        key: error.span().and_then(|span| key_at(text, &span)),
        fault: Fault::Content(plain(error.message(), WORDS_MAX)),
    })
}

/// Places a fault that was found after parsing, at a value that was kept with its span.
#[must_use]
pub fn at<T>(file: &Path, text: &str, value: &Spanned<T>, fault: Fault) -> FileError {
    FileError {
        file: file.to_owned(),
        position: Some(position(text, value.span().start)),
        key: key_at(text, &value.span()),
        fault,
    }
}

/// Reads the text of a policy file.
///
/// # Errors
/// [`FileError`] where it is no regular file, longer than [`FILE_MAX`], writable by everybody, or
/// not UTF-8.
pub fn text(file: &Path) -> Result<String, FileError> {
    let opened = open(file).map_err(|error| FileError::read(file, &error))?;
    let metadata = opened.metadata().map_err(|error| FileError::read(file, &error))?;
    if !metadata.is_file() {
        return Err(FileError::whole(file, Fault::NotAFile));
    }
    if metadata.mode() & 0o002 != 0 {
        let mode = metadata.mode() & 0o777;
        return Err(FileError::whole(file, Fault::WorldWritable { mode }));
    }
    let mut bytes = Vec::new();
    opened
        .take(FILE_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| FileError::read(file, &error))?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(FileError::whole(file, Fault::TooLong));
    }
    String::from_utf8(bytes).map_err(|_| FileError::whole(file, Fault::NotUtf8))
}

/// Opens without waiting: a pipe in the policy directory would otherwise hold the broker until
/// somebody writes.
fn open(file: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(file)
}

fn position(text: &str, offset: usize) -> Position {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Position {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

/// The innermost key whose name or value holds the start of the span; where the parser saw none,
/// the line's own.
fn key_at(text: &str, span: &Range<usize>) -> Option<String> {
    let (table, _) = DeTable::parse_recoverable(text);
    let mut path = innermost(table.get_ref(), span.start);
    path.reverse();
    let key = if path.is_empty() { bare_key(text, span.start)? } else { path.join(".") };
    Some(plain(&key, KEY_MAX))
}

/// The bare key with which the line of this offset begins.
fn bare_key(text: &str, offset: usize) -> Option<String> {
    let line_start = text.get(..offset)?.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text.get(line_start..)?.lines().next()?.trim_start();
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let key = &line[..line.find(|c| !is_bare(c)).unwrap_or(line.len())];
    (!key.is_empty()).then(|| key.to_owned())
}

/// Its path, the innermost first. The span of a `[table]` is its heading only, so every table is
/// looked into.
fn innermost(table: &DeTable<'_>, offset: usize) -> Vec<String> {
    for (key, value) in table {
        let mut inner =
            value.get_ref().as_table().map(|inner| innermost(inner, offset)).unwrap_or_default();
        let holds = key.span().contains(&offset) || value.span().contains(&offset);
        if !inner.is_empty() || holds {
            inner.push(key.get_ref().to_string());
            return inner;
        }
    }
    Vec::new()
}

/// An error is one line of bounded length, without the control characters that a file may hold.
fn plain(message: &str, most: usize) -> String {
    message.chars().take(most).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// For `deserialize_with`: a whole number in `MIN..=MAX`.
pub(super) fn within<'de, D, const MIN: u64, const MAX: u64>(
    deserializer: D,
) -> Result<u64, D::Error>
where
    D: Deserializer<'de>,
{
    let number = i64::deserialize(deserializer)?;
    u64::try_from(number)
        .ok()
        .filter(|number| (MIN..=MAX).contains(number))
        .ok_or_else(|| de::Error::custom(format_args!("{number} is outside {MIN}..={MAX}")))
}

/// For `deserialize_with`: the same, of a key that may be absent.
pub(super) fn within_option<'de, D, const MIN: u64, const MAX: u64>(
    deserializer: D,
) -> Result<Option<u64>, D::Error>
where
    D: Deserializer<'de>,
{
    within::<D, MIN, MAX>(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
