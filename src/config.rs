//! The broker's settings: `broker.toml` of the policy's search path, and what the environment of an
//! uninstalled run says.
//!
//! Read once, at the start: `Limits` is a constant property on the bus.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use serde::Deserialize;

use crate::{
    launch::report::Tier,
    policy::{
        file::{self, FileError},
        search_path::{self, SearchPath},
        template::FixedPath,
    },
};

mod limits;

pub use limits::{Limits, RING_MIN_BYTES};

/// The best tier that may be used: `none`, `seccomp`, `resolve-unix` or `mounts`.
pub const MAX_TIER_VARIABLE: &str = "ST2_TOOLS_MAX_TIER";

/// Acts as on a kernel with at most this Landlock ABI, 0..=255.
pub const LANDLOCK_ABI_VARIABLE: &str = "ST2_TOOLS_LANDLOCK_ABI";

/// The settings file of a policy directory.
pub const FILE_NAME: &str = "broker.toml";

/// The settings of one broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What it bounds.
    pub limits: Limits,
    /// Directories of every tool's `PATH`, in order; those that do not exist are passed over.
    pub path: Vec<FixedPath>,
    /// Whether a Landlock ABI below 6 is accepted, its gaps listed.
    pub allow_degraded: bool,
    /// What the environment says.
    pub overrides: Overrides,
    /// The file in force, if there is one.
    pub source: Option<PathBuf>,
    /// Why `broker.toml` is not in force. The broker then serves what it has, with the default
    /// limits, and opens nothing: bounds that somebody set and that are not known cannot be kept.
    pub fault: Option<FileError>,
}

/// Settings of an uninstalled run or a test, by environment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The best tier that may be used.
    pub max_tier: MaxTier,
    /// Act as on a kernel with at most this Landlock ABI.
    pub landlock_abi_cap: Option<u32>,
}

/// The best tier that may be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MaxTier {
    /// The best there is.
    #[default]
    Best,
    /// None: everything is refused.
    Nothing,
    /// This one.
    Most(Tier),
}

impl MaxTier {
    /// Whether a tier may be used.
    #[must_use]
    pub fn admits(self, tier: Tier) -> bool {
        match self {
            Self::Best => true,
            Self::Nothing => false,
            // The better of two tiers is the lesser: they are declared best first.
            Self::Most(most) => tier >= most,
        }
    }
}

/// An environment that the broker does not start with: it would otherwise confine less than it was
/// told to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OverrideError {
    /// Not a tier.
    #[error("{MAX_TIER_VARIABLE} is {0:?}, not none, seccomp, resolve-unix or mounts")]
    MaxTier(OsString),
    /// Not a number.
    #[error("{LANDLOCK_ABI_VARIABLE} is {0:?}, not a number in 0..=255")]
    LandlockAbi(OsString),
}

/// What `broker.toml` says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    path: Vec<FixedPath>,
    allow_degraded: bool,
    limits: Limits,
}

impl Settings {
    /// Reads the strongest `broker.toml` of the search path; the defaults hold where there is none,
    /// or where it is masked. Never fails: see [`Settings::fault`].
    #[must_use]
    pub fn load(search: &SearchPath, overrides: Overrides) -> Self {
        let Some(source) = search_path::strongest(search, FILE_NAME) else {
            return Self::of(File::default(), overrides);
        };
        match file::read(&source) {
            Ok(file) => Self { source: Some(source), ..Self::of(file, overrides) },
            Err(fault) => Self { fault: Some(fault), ..Self::of(File::default(), overrides) },
        }
    }

    fn of(file: File, overrides: Overrides) -> Self {
        let File { path, allow_degraded, limits } = file;
        Self { limits, path, allow_degraded, overrides, source: None, fault: None }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::of(File::default(), Overrides::default())
    }
}

impl Default for File {
    fn default() -> Self {
        // The user manager's own environment is thin: what the user installed is found only if it
        // is named here.
        let path = ["-~/.local/bin", "-~/.cargo/bin", "-~/go/bin"]
            .into_iter()
            .chain(["-/usr/local/bin", "-/usr/bin", "-/bin"])
            .chain(["-/usr/local/sbin", "-/usr/sbin", "-/sbin"])
            .map(|path| {
                FixedPath::try_from(path.to_owned()).expect("the default path is well formed")
            })
            .collect();
        Self { path, allow_degraded: false, limits: Limits::default() }
    }
}

impl Overrides {
    /// What this environment says.
    ///
    /// # Errors
    /// [`OverrideError`] for a value that is not understood.
    pub fn from_environment(
        environment: &BTreeMap<OsString, OsString>,
    ) -> Result<Self, OverrideError> {
        let value = |name: &str| environment.get(OsStr::new(name));
        Ok(Self {
            max_tier: value(MAX_TIER_VARIABLE).map_or(Ok(MaxTier::Best), |word| max_tier(word))?,
            landlock_abi_cap: value(LANDLOCK_ABI_VARIABLE).map(|word| abi(word)).transpose()?,
        })
    }
}

fn max_tier(word: &OsStr) -> Result<MaxTier, OverrideError> {
    match word.to_str() {
        Some("none") => Ok(MaxTier::Nothing),
        Some("seccomp") => Ok(MaxTier::Most(Tier::Seccomp)),
        Some("resolve-unix") => Ok(MaxTier::Most(Tier::ResolveUnix)),
        Some("mounts") => Ok(MaxTier::Most(Tier::Mounts)),
        _ => Err(OverrideError::MaxTier(word.to_owned())),
    }
}

fn abi(word: &OsStr) -> Result<u32, OverrideError> {
    let number = word.to_str().and_then(|word| word.parse::<u8>().ok());
    number.map(u32::from).ok_or_else(|| OverrideError::LandlockAbi(word.to_owned()))
}

#[cfg(test)]
mod tests;
