//! What a tool may touch, as data.

use serde::{Deserialize, Deserializer, de};

use crate::{
    launch::spec::Network,
    policy::{
        protect::{self, ProtectedPath},
        template::PathTemplate,
    },
};

/// A file of `profiles.d`: what every tool that names it may touch.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// One line for a person.
    pub title: String,
    /// The paths.
    #[serde(default)]
    pub grants: Grants,
    /// What stays as it is inside a writable workspace, in the tiers that can; `.git/hooks/` and
    /// `.git/config` where absent.
    #[serde(default = "protect::default_paths")]
    pub protect: Vec<ProtectedPath>,
    /// `none`, `all`, or `tcp:PORT,…`: connections to these ports, no listener.
    #[serde(default = "no_network", deserialize_with = "network")]
    pub network: Network,
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

fn no_network() -> Network {
    Network::None
}

fn network<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Network, D::Error> {
    let written = String::deserialize(deserializer)?;
    parse_network(&written).ok_or_else(|| {
        let found = de::Unexpected::Str(&written);
        de::Error::invalid_value(
            found,
            &"\"none\", \"all\" or \"tcp:PORT,…\" with ports in 1..=65535",
        )
    })
}

fn parse_network(written: &str) -> Option<Network> {
    match written {
        "none" => Some(Network::None),
        "all" => Some(Network::All),
        _ => written
            .strip_prefix("tcp:")?
            .split(',')
            .map(|port| port.trim().parse().ok().filter(|port| *port != 0))
            .collect::<Option<Vec<u16>>>()
            .map(Network::TcpConnect),
    }
}
