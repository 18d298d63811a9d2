//! Profiles joined: what a tool may touch by all of its profiles and by those that they include.
//!
//! Joining only adds, so the order of names has no meaning but for showing them. What cannot be
//! added up is a [`Fault`] of the file that names both.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use crate::{
    broker::name::ToolName,
    launch::spec::{Network, Protected},
    policy::{
        file::Fault,
        profile::{Grants, Profile},
        protect::{self, ProtectedPath},
        socket::DeclaredSocket,
        template::Text,
        variable::VariableName,
    },
};

/// Most profiles that include each other in a row.
pub const DEPTH_MAX: usize = 8;

/// A profile and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Its name: that of its file.
    pub name: ToolName,
    /// The file that declares it.
    pub source: PathBuf,
    /// What the file says.
    pub profile: Profile,
}

/// Profiles joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composition {
    layers: Vec<Arc<Layer>>,
    network: Network,
    depth: usize,
}

impl Default for Composition {
    /// Of no profile.
    fn default() -> Self {
        Self { layers: Vec::new(), network: Network::None, depth: 0 }
    }
}

impl Composition {
    /// Of one profile, without what it includes.
    #[must_use]
    pub fn of(layer: Layer) -> Self {
        let network = layer.profile.network.clone();
        Self { layers: vec![Arc::new(layer)], network, depth: 1 }
    }

    /// Adds what the profile `name` is composed of.
    ///
    /// # Errors
    /// [`Fault`] where the two cannot be joined; nothing is added then.
    pub fn include(&mut self, name: &ToolName, other: &Self) -> Result<(), Fault> {
        let depth = self.depth.max(other.depth + 1);
        if depth > DEPTH_MAX {
            return Err(Fault::ProfileDepth(name.to_string()));
        }
        self.join(name, other)?;
        self.depth = depth;
        Ok(())
    }

    /// Adds a profile beside the others, not beneath them.
    ///
    /// # Errors
    /// [`Fault`] where they cannot be joined; nothing is added then.
    pub fn join(&mut self, name: &ToolName, other: &Self) -> Result<(), Fault> {
        let network =
            joined(&self.network, &other.network).ok_or_else(|| Fault::ProfileNetwork {
                profile: name.to_string(),
                network: other.network.to_string().into(),
            })?;
        let known: BTreeSet<&ToolName> = self.layers.iter().map(|layer| &layer.name).collect();
        let news = other.layers.iter().filter(|layer| !known.contains(&layer.name));
        let news: Vec<Arc<Layer>> = news.cloned().collect();
        let set = self.environment();
        for layer in &news {
            let differs = |(variable, value): &(&VariableName, &Text)| {
                set.get(variable).is_some_and(|other| other != value)
            };
            if let Some((variable, _)) = layer.profile.environment.iter().find(differs) {
                let variable = variable.as_str().into();
                return Err(Fault::ProfileVariable { profile: layer.name.to_string(), variable });
            }
        }
        self.depth = self.depth.max(other.depth);
        self.network = network;
        self.layers.extend(news);
        Ok(())
    }

    /// The profiles that it is of, each once, in the order in which they are named; one before those
    /// that it includes.
    pub fn layers(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().map(AsRef::as_ref)
    }

    /// A profile that it is of.
    #[must_use]
    pub fn layer(&self, name: &ToolName) -> Option<&Layer> {
        self.layers().find(|layer| layer.name == *name)
    }

    /// The paths.
    pub fn grants(&self) -> impl Iterator<Item = &Grants> {
        self.layers().map(|layer| &layer.profile.grants)
    }

    /// Sockets of others.
    pub fn sockets(&self) -> impl Iterator<Item = &DeclaredSocket> {
        self.layers().flat_map(|layer| &layer.profile.sockets)
    }

    /// Variables that are set.
    #[must_use]
    pub fn environment(&self) -> BTreeMap<&VariableName, &Text> {
        self.layers().flat_map(|layer| &layer.profile.environment).collect()
    }

    /// The network: of `none` and another the other, of ports all of them, of anything and `all`
    /// that.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// What stays as it is inside a writable workspace: what any of the profiles says, or the
    /// default where none says anything.
    #[must_use]
    pub fn protect(&self) -> Vec<Protected> {
        let said: Vec<_> =
            self.layers().filter_map(|layer| layer.profile.protect.as_ref()).collect();
        let default = protect::default_paths();
        let said = if said.is_empty() { vec![&default] } else { said };
        let mut paths: Vec<Protected> = Vec::new();
        for path in said.into_iter().flatten().map(ProtectedPath::protected) {
            if !paths.contains(path) {
                paths.push(path.clone());
            }
        }
        paths
    }

    /// Whether a linked worktree gets the directory that it shares with its repository.
    #[must_use]
    pub fn git_common_dir(&self) -> bool {
        self.layers().any(|layer| layer.profile.git_common_dir)
    }
}

/// What both networks are together; none where one leads nowhere else and the other does.
fn joined(one: &Network, other: &Network) -> Option<Network> {
    match (one, other) {
        (Network::None, network) | (network, Network::None) => Some(network.clone()),
        (Network::Loopback, Network::Loopback) => Some(Network::Loopback),
        (Network::Loopback, _) | (_, Network::Loopback) => None,
        (Network::All, _) | (_, Network::All) => Some(Network::All),
        (Network::TcpConnect(one), Network::TcpConnect(other)) => {
            let ports: BTreeSet<u16> = one.iter().chain(other).copied().collect();
            Some(Network::TcpConnect(ports.into_iter().collect()))
        }
    }
}
