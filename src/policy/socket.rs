//! A socket of somebody else, as a declaration names it.

use std::fmt;

use serde::Deserialize;

use crate::policy::template::{FixedPath, TemplateError};

/// A socket that a profile or tool names; written with a leading `-` it need not be there.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct DeclaredSocket {
    /// Which one.
    pub socket: Socket,
    /// Whether it is passed over where there is none, or where the tier grants none.
    pub optional: bool,
}

/// What can be named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Socket {
    /// The agent that signs with the user's SSH keys (`SSH_AUTH_SOCK`).
    SshAgent,
    /// The agent that signs with the user's GnuPG keys, restricted to what it does for others.
    GpgAgent,
    /// The user's screen (`WAYLAND_DISPLAY`).
    Wayland,
    /// One by its path.
    At {
        /// The path.
        path: FixedPath,
        /// It as written, for messages.
        written: String,
    },
}

/// A name that is none of a socket.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SocketNameError {
    /// Not one of the words, and no path.
    #[error("socket {0:?} is not ssh-agent, gpg-agent, wayland or an absolute path")]
    Unknown(String),
    /// Not a path by the rules of paths.
    #[error(transparent)]
    Path(#[from] TemplateError),
}

impl TryFrom<String> for DeclaredSocket {
    type Error = SocketNameError;

    fn try_from(written: String) -> Result<Self, SocketNameError> {
        let (name, optional) = match written.strip_prefix('-') {
            Some(name) => (name, true),
            None => (written.as_str(), false),
        };
        let socket = match name {
            "ssh-agent" => Socket::SshAgent,
            "gpg-agent" => Socket::GpgAgent,
            "wayland" => Socket::Wayland,
            _ if name.starts_with(['/', '~', '$']) => {
                let path = FixedPath::try_from(name.to_owned())?;
                Socket::At { path, written: name.to_owned() }
            }
            _ => return Err(SocketNameError::Unknown(written)),
        };
        Ok(Self { socket, optional })
    }
}

impl fmt::Display for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SshAgent => "ssh-agent",
            Self::GpgAgent => "gpg-agent",
            Self::Wayland => "wayland",
            Self::At { written, .. } => written,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(written: &str) -> Result<(String, bool), String> {
        let parsed = DeclaredSocket::try_from(written.to_owned());
        parsed.map(|it| (it.socket.to_string(), it.optional)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_socket_is_a_word_or_a_path() {
        for word in ["ssh-agent", "gpg-agent", "wayland", "/run/foo.sock", "~/.x/sock"] {
            assert_eq!(parse(word), Ok((word.to_owned(), false)));
            assert_eq!(parse(&format!("-{word}")), Ok((word.to_owned(), true)));
        }
        let words = ["", "-", "x11", "--wayland", "foo.sock", "${TMPDIR}", "/run/../x"];
        let refusals = words.map(|word| parse(word).unwrap_err()).join("\n");
        insta::assert_snapshot!(refusals, @r#"
        socket "" is not ssh-agent, gpg-agent, wayland or an absolute path
        socket "-" is not ssh-agent, gpg-agent, wayland or an absolute path
        socket "x11" is not ssh-agent, gpg-agent, wayland or an absolute path
        socket "--wayland" is not ssh-agent, gpg-agent, wayland or an absolute path
        socket "foo.sock" is not ssh-agent, gpg-agent, wayland or an absolute path
        path "${TMPDIR}" depends on the session, where one is wanted that does not
        path "/run/../x" holds an empty, '.' or '..' component
        "#);
    }
}
