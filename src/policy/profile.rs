//! What a tool may touch, as data.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, SeqAccess, Visitor, value::SeqAccessDeserializer},
};
use toml::Spanned;

use crate::{
    broker::name::ToolName,
    launch::spec::Network,
    policy::{
        protect::ProtectedPath, socket::DeclaredSocket, template::PathTemplate, template::Text,
        variable::VariableName,
    },
};

/// A file of `profiles.d`: what every tool that names it may touch.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// One line for a person.
    pub title: String,
    /// Profiles whose content this one has too.
    #[serde(default)]
    pub include: ProfileNames,
    /// The paths.
    #[serde(default)]
    pub grants: Grants,
    /// Sockets of others that a tool may connect to.
    #[serde(default)]
    pub sockets: Vec<DeclaredSocket>,
    /// What stays as it is inside a writable workspace, in the tiers that can. Where no profile of a
    /// tool says anything of it: `.git/hooks/` and `.git/config`.
    pub protect: Option<Vec<ProtectedPath>>,
    /// `none`, `loopback`, `all`, or `tcp:PORT,…`: connections to these ports, no listener.
    #[serde(default = "no_network", deserialize_with = "network")]
    pub network: Network,
    /// Variables that are set.
    #[serde(default)]
    pub environment: BTreeMap<VariableName, Text>,
    /// Whether a workspace that is a linked worktree gets the directory that it shares with its
    /// repository.
    #[serde(default)]
    pub git_common_dir: bool,
}

/// Paths by kind of access; each holds for everything beneath it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grants {
    /// Read and list.
    pub read: Vec<PathTemplate>,
    /// Read, write, create, remove.
    pub write: Vec<PathTemplate>,
    /// Read and execute.
    pub execute: Vec<PathTemplate>,
    /// Device nodes: read, write, `ioctl`.
    pub devices: Vec<PathTemplate>,
}

/// A profile by name; written with a leading `-` it need not be there.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ProfileName {
    /// The name.
    pub name: ToolName,
    /// Whether it is passed over where it is absent or masked.
    pub optional: bool,
}

/// A name that is none of a profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "profile name {0:?} is not 1 to 32 of a-z, 0-9 and '-', beginning with a letter or digit, \
     after a '-' where it may be absent"
)]
pub struct ProfileNameError(String);

/// Profiles by name, written as one string or a list of them, each with its place in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfileNames(Vec<Spanned<ProfileName>>);

impl ProfileNames {
    /// One profile that has to be there; `name` is well formed.
    pub(super) fn one(name: &str) -> Self {
        let name = ToolName::new(name).expect("the name of a shipped profile is well formed");
        Self(vec![Spanned::new(0..0, ProfileName { name, optional: false })])
    }

    /// The names as written, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Spanned<ProfileName>> {
        self.0.iter()
    }
}

impl TryFrom<String> for ProfileName {
    type Error = ProfileNameError;

    fn try_from(written: String) -> Result<Self, ProfileNameError> {
        let (name, optional) = match written.strip_prefix('-') {
            Some(name) => (name, true),
            None => (written.as_str(), false),
        };
        match ToolName::new(name) {
            Ok(name) => Ok(Self { name, optional }),
            Err(_) => Err(ProfileNameError(written)),
        }
    }
}

impl<'de> Deserialize<'de> for ProfileNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Spanned::<Written>::deserialize(deserializer)?;
        let span = written.span();
        Ok(match written.into_inner() {
            Written::One(name) => Self(vec![Spanned::new(span, name)]),
            Written::Many(names) => Self(names),
        })
    }
}

/// An untagged enum of serde would lose the places.
enum Written {
    One(ProfileName),
    Many(Vec<Spanned<ProfileName>>),
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WrittenVisitor)
    }
}

struct WrittenVisitor;

impl<'de> Visitor<'de> for WrittenVisitor {
    type Value = Written;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a profile, or a list of names")
    }

    fn visit_str<E: de::Error>(self, written: &str) -> Result<Written, E> {
        ProfileName::try_from(written.to_owned()).map(Written::One).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<Written, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(names)).map(Written::Many)
    }
}

fn no_network() -> Network {
    Network::None
}

fn network<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Network, D::Error> {
    let written = String::deserialize(deserializer)?;
    parse_network(&written).ok_or_else(|| {
        let found = de::Unexpected::Str(&written);
        de::Error::invalid_value(
            found,
            &"\"none\", \"loopback\", \"all\" or \"tcp:PORT,…\" with ports in 1..=65535",
        )
    })
}

fn parse_network(written: &str) -> Option<Network> {
    match written {
        "none" => Some(Network::None),
        "loopback" => Some(Network::Loopback),
        "all" => Some(Network::All),
        _ => written
            .strip_prefix("tcp:")?
            .split(',')
            .map(|port| port.trim().parse().ok().filter(|port| *port != 0))
            .collect::<Option<Vec<u16>>>()
            .map(Network::TcpConnect),
    }
}
