//! An identity of Agent Spec, and the directory that its catalogue says it works in.
//!
//! The catalogue is somebody else's, and only read: `agents/HOST/IDENTITY/agent.kdl` beneath it, a KDL document with a node
//! `agent "IDENTITY" { host "HOST"; workspace "/a/directory" }`, of which nothing else counts here. What the path and the
//! file say of the names has to agree.

use std::{
    env, fmt,
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    str::FromStr,
    thread,
};

use kdl::{KdlDocument, KdlNode};

/// Longest name of a host and of an identity, bytes.
const NAME_MAX: usize = 64;
/// Longest declaration, bytes.
const FILE_MAX: u64 = 64 * 1024;
/// Deepest nesting: the parser goes down as far as the text does.
const DEPTH_MAX: usize = 24;
/// Stack of the parser, bytes: it also goes down with each fault that it passes over, of which each byte may be one. Up to
/// 1.6 KiB a byte were seen without optimisation; what is not used is not there.
const STACK: usize = 8 << 20;
const STACK_PER_BYTE: usize = 4 << 10;
/// Names another catalogue.
pub const CATALOG_VARIABLE: &str = "ST2_TOOLS_CATALOG";

/// `HOST.IDENTITY`: whom a session is attributed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The machine's name in the catalogue.
    pub host: String,
    /// The agent's name there.
    pub name: String,
}

/// A text that names no identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not HOST.IDENTITY, each 1 to {NAME_MAX} letters, digits, '-' and '_', beginning with a letter or digit"
)]
pub struct IdentityError(String);

/// Why a catalogue gives no workspace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The catalogue that was named is none.
    #[error("{CATALOG_VARIABLE} {0:?} is not the absolute path of a directory")]
    NoCatalog(PathBuf),
    /// It does not declare the agent.
    #[error("the catalogue {catalog:?} declares no agent {identity}: there is no {file:?}")]
    Absent {
        /// The catalogue.
        catalog: PathBuf,
        /// Who was looked for.
        identity: Identity,
        /// Where.
        file: PathBuf,
    },
    /// The declaration cannot be read.
    #[error("cannot read {file:?}: {source}")]
    Read {
        /// The declaration.
        file: PathBuf,
        /// The call's error.
        source: io::Error,
    },
    /// The declaration cannot be used.
    #[error("{file:?}{}: {fault}", line.map(|line| format!(" line {line}")).unwrap_or_default())]
    Declaration {
        /// The declaration.
        file: PathBuf,
        /// Where in it, from 1.
        line: Option<usize>,
        /// What is wrong.
        fault: DeclarationFault,
    },
}

/// What is wrong with the declaration of an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeclarationFault {
    /// A directory, a pipe, a device.
    #[error("not a regular file")]
    NotAFile,
    /// Too long.
    #[error("longer than {FILE_MAX} bytes")]
    TooLong,
    /// Too deep.
    #[error("nested more than {DEPTH_MAX} deep")]
    TooDeep,
    /// Not text.
    #[error("not UTF-8")]
    NotUtf8,
    /// Not KDL.
    #[error("not KDL: {0}")]
    Syntax(String),
    /// No node of an agent, or several.
    #[error("{0} nodes `agent`, where one is expected")]
    Agents(usize),
    /// The file speaks of another.
    #[error("{what} is {written:?}, in the place of {expected:?}")]
    Another {
        /// `agent` or `host`.
        what: &'static str,
        /// What the file says.
        written: String,
        /// What its path says.
        expected: String,
    },
    /// Which counts is not said.
    #[error("a second {0}, where one is expected")]
    Twice(&'static str),
    /// It has none.
    #[error("the agent declares no workspace")]
    NoWorkspace,
    /// Not a text.
    #[error("workspace is not one string")]
    NotAString,
    /// Not a directory of this machine.
    #[error("workspace {0:?} is not the absolute path of a directory")]
    NotADirectory(PathBuf),
}

impl FromStr for Identity {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        match text.split_once('.') {
            Some((host, name)) if is_name(host) && is_name(name) => {
                Ok(Self { host: host.to_owned(), name: name.to_owned() })
            }
            _ => Err(IdentityError(text.chars().take(2 * NAME_MAX).collect())),
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.host, self.name)
    }
}

/// Neither a path nor hidden, nor an option.
fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    begins && name.len() <= NAME_MAX && name.bytes().all(allowed)
}

/// The catalogue of this user, if there is one: that of [`CATALOG_VARIABLE`], else `st2/default/catalog` in
/// `XDG_STATE_HOME`.
///
/// # Errors
/// [`CatalogError::NoCatalog`] where one is named that is none.
pub fn catalog() -> Result<Option<PathBuf>, CatalogError> {
    let absolute =
        |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(named) = env::var_os(CATALOG_VARIABLE).map(PathBuf::from) {
        let is_one = named.is_absolute() && named.is_dir();
        return if is_one { Ok(Some(named)) } else { Err(CatalogError::NoCatalog(named)) };
    }
    let state = absolute("XDG_STATE_HOME");
    let state = state.or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    Ok(state.map(|state| state.join("st2/default/catalog")).filter(|catalog| catalog.is_dir()))
}

/// The workspace that a catalogue declares for an identity.
///
/// # Errors
/// [`CatalogError`], with the file and, where it is known, the line.
pub fn workspace(catalog: &Path, identity: &Identity) -> Result<PathBuf, CatalogError> {
    let file = catalog.join("agents").join(&identity.host).join(&identity.name).join("agent.kdl");
    let text = match read(&file) {
        Ok(text) => text,
        Err(Unread::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
            let catalog = catalog.to_owned();
            return Err(CatalogError::Absent { catalog, identity: identity.clone(), file });
        }
        Err(Unread::Io(source)) => return Err(CatalogError::Read { file, source }),
        Err(Unread::Fault(fault)) => {
            return Err(CatalogError::Declaration { file, line: None, fault });
        }
    };
    let parsed = match with_stack(text.len(), || declared(&text, identity)) {
        Ok(parsed) => parsed,
        Err(source) => return Err(CatalogError::Read { file, source }),
    };
    parsed.map_err(|(offset, fault)| {
        let line = offset.map(|offset| line_of(&text, offset));
        CatalogError::Declaration { file, line, fault }
    })
}

/// Does it on a stack that is enough to parse so many bytes.
fn with_stack<T: Send>(bytes: usize, parse: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let stack = thread::Builder::new().stack_size(STACK + STACK_PER_BYTE * bytes);
        let parser = stack.spawn_scoped(scope, parse)?;
        parser.join().map_err(|_| io::Error::other("the parser panicked"))
    })
}

enum Unread {
    Io(io::Error),
    Fault(DeclarationFault),
}

fn read(file: &Path) -> Result<String, Unread> {
    // A pipe in its place holds nobody up.
    let options = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(file);
    let opened: File = options.map_err(Unread::Io)?;
    if !opened.metadata().map_err(Unread::Io)?.is_file() {
        return Err(Unread::Fault(DeclarationFault::NotAFile));
    }
    let mut bytes = Vec::new();
    opened.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(Unread::Io)?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(Unread::Fault(DeclarationFault::TooLong));
    }
    String::from_utf8(bytes).map_err(|_| Unread::Fault(DeclarationFault::NotUtf8))
}

type Fault = (Option<usize>, DeclarationFault);

fn declared(text: &str, identity: &Identity) -> Result<PathBuf, Fault> {
    if is_deep(text) {
        return Err((None, DeclarationFault::TooDeep));
    }
    let document = KdlDocument::parse_v2(text).map_err(|error| syntax(&error))?;
    let agents: Vec<&KdlNode> =
        document.nodes().iter().filter(|node| node.name().value() == "agent").collect();
    let &[agent] = agents.as_slice() else {
        let second = agents.get(1).map(|node| node.span().offset());
        return Err((second, DeclarationFault::Agents(agents.len())));
    };
    agrees("agent", Some(agent), &identity.name)?;
    agrees("host", only(agent, "host")?, &identity.host)?;
    let at = |node: &KdlNode| Some(node.span().offset());
    let node = only(agent, "workspace")?;
    let node = node.ok_or_else(|| (at(agent), DeclarationFault::NoWorkspace))?;
    let workspace = match node.entries() {
        [entry] if entry.name().is_none() => entry.value().as_string(),
        _ => None,
    };
    let workspace =
        PathBuf::from(workspace.ok_or_else(|| (at(node), DeclarationFault::NotAString))?);
    if workspace.is_absolute() && workspace.is_dir() {
        return Ok(workspace);
    }
    Err((at(node), DeclarationFault::NotADirectory(workspace)))
}

/// The child of this name, if there is one.
fn only<'a>(agent: &'a KdlNode, what: &'static str) -> Result<Option<&'a KdlNode>, Fault> {
    let children = agent.children().map(KdlDocument::nodes).unwrap_or_default();
    let mut named = children.iter().filter(|node| node.name().value() == what);
    match (named.next(), named.next()) {
        (first, None) => Ok(first),
        (_, Some(second)) => Err((Some(second.span().offset()), DeclarationFault::Twice(what))),
    }
}

/// A name that is written in the file is that of its path; one that is not written is taken from there.
fn agrees(what: &'static str, node: Option<&KdlNode>, expected: &str) -> Result<(), Fault> {
    let value = node.and_then(|node| node.get(0));
    // What is no string is written as KDL has it.
    let written = value.map(|value| value.as_string().map_or(value.to_string(), str::to_owned));
    match (node, written) {
        (Some(node), Some(written)) if written != expected => {
            let (written, expected) =
                (written.chars().take(NAME_MAX).collect(), expected.to_owned());
            Err((Some(node.span().offset()), DeclarationFault::Another { what, written, expected }))
        }
        _ => Ok(()),
    }
}

fn syntax(error: &kdl::KdlError) -> Fault {
    let first = error.diagnostics.first();
    let words = first.map(ToString::to_string).unwrap_or_else(|| error.to_string());
    let words = words.chars().take(500).map(|c| if c.is_control() { ' ' } else { c }).collect();
    (first.map(|first| first.span.offset()), DeclarationFault::Syntax(words))
}

/// Counts braces and comments wherever they stand, in strings too.
fn is_deep(text: &str) -> bool {
    let (mut rest, mut depth) = (text.as_bytes(), 0_usize);
    while !rest.is_empty() && depth <= DEPTH_MAX {
        let length = match rest {
            [b'/', b'*', ..] | [b'*', b'/', ..] => 2,
            _ => 1,
        };
        match rest[0] {
            b'{' => depth += 1,
            b'/' if length == 2 => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b'*' if length == 2 => depth = depth.saturating_sub(1),
            _ => {}
        }
        rest = &rest[length..];
    }
    depth > DEPTH_MAX
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests;
