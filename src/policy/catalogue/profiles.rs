//! The profiles of a search path, each with what it includes.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use toml::Spanned;

use super::{PROFILES, scan};
use crate::{
    broker::name::ToolName,
    policy::{
        composition::{Composition, Layer},
        file::{self, Fault, FileError},
        profile::{Profile, ProfileName, ProfileNames},
        search_path::{SearchPath, is_masked},
    },
};

/// Every profile that is declared.
#[derive(Debug)]
pub(super) struct Profiles(BTreeMap<ToolName, Entry>);

/// What the strongest file of a name makes of a profile.
#[derive(Debug)]
enum Entry {
    Ready(Composition),
    Masked,
    /// Its own fault, or that of one that it includes.
    Broken(FileError),
}

/// What a file says, before what it includes is known.
enum Declared {
    Read { file: PathBuf, text: String, profile: Profile },
    Masked,
    Broken(FileError),
}

impl Profiles {
    /// Reads and joins them; what is wrong with them is added to `faults`.
    pub(super) fn read(search: &SearchPath, faults: &mut Vec<FileError>) -> Self {
        let declared = scan(search, PROFILES, faults);
        let declared = declared.into_iter().map(|(name, file)| (name, Declared::read(file)));
        let declared: BTreeMap<ToolName, Declared> = declared.collect();
        let mut joining = Joining { declared: &declared, way: Vec::new(), done: BTreeMap::new() };
        for name in declared.keys() {
            joining.settle(name);
        }
        let profiles = Self(joining.done);
        for entry in profiles.0.values() {
            if let Entry::Broken(error) = entry
                && !faults.contains(error)
            {
                faults.push(error.clone());
            }
        }
        profiles
    }

    /// Joins the profiles that a tool's file names.
    pub(super) fn join(
        &self,
        file: &Path,
        text: &str,
        names: &ProfileNames,
    ) -> Result<Composition, FileError> {
        let mut composition = Composition::default();
        for named in names.iter() {
            let ProfileName { name, .. } = named.get_ref();
            let fault = |fault| file::at(file, text, named, fault);
            match found(&self.0, named.get_ref()).map_err(fault)? {
                Some(Ok(profile)) => composition.join(name, profile).map_err(fault)?,
                Some(Err(error)) => {
                    let (name, error) = (name.to_string(), Box::new(error.clone()));
                    return Err(fault(Fault::BrokenProfile { name, error }));
                }
                None => {}
            }
        }
        Ok(composition)
    }
}

/// The profile of this name; none where it may be passed over and is not there.
fn found<'p>(
    profiles: &'p BTreeMap<ToolName, Entry>,
    named: &ProfileName,
) -> Result<Option<Result<&'p Composition, &'p FileError>>, Fault> {
    match profiles.get(&named.name) {
        Some(Entry::Ready(profile)) => Ok(Some(Ok(profile))),
        Some(Entry::Broken(error)) => Ok(Some(Err(error))),
        Some(Entry::Masked) | None if named.optional => Ok(None),
        Some(Entry::Masked) => Err(Fault::MaskedProfile(named.name.to_string())),
        None => Err(Fault::NoProfile(named.name.to_string())),
    }
}

impl Declared {
    fn read(file: PathBuf) -> Self {
        if is_masked(&file) {
            return Self::Masked;
        }
        let read = file::text(&file).and_then(|text| {
            let profile = file::parse(&file, &text)?;
            Ok((text, profile))
        });
        match read {
            Ok((text, profile)) => Self::Read { file, text, profile },
            Err(error) => Self::Broken(error),
        }
    }
}

/// Profiles on the way to being joined with what they include: each once.
struct Joining<'d> {
    declared: &'d BTreeMap<ToolName, Declared>,
    /// Those that wait for what they include, the outermost first.
    way: Vec<&'d ToolName>,
    done: BTreeMap<ToolName, Entry>,
}

impl<'d> Joining<'d> {
    fn settle(&mut self, name: &'d ToolName) {
        if self.done.contains_key(name) {
            return;
        }
        let Some(declared) = self.declared.get(name) else { return };
        let entry = match declared {
            Declared::Masked => Entry::Masked,
            Declared::Broken(error) => Entry::Broken(error.clone()),
            Declared::Read { file, text, profile } => {
                self.way.push(name);
                let layer =
                    Layer { name: name.clone(), source: file.clone(), profile: profile.clone() };
                let whole = self.with_included(layer, text, &profile.include);
                self.way.pop();
                whole.map_or_else(Entry::Broken, Entry::Ready)
            }
        };
        self.done.insert(name.clone(), entry);
    }

    fn with_included(
        &mut self,
        layer: Layer,
        text: &str,
        include: &'d ProfileNames,
    ) -> Result<Composition, FileError> {
        let file = layer.source.clone();
        let mut whole = Composition::of(layer);
        for named in include.iter() {
            let name = &named.get_ref().name;
            let fault = |fault| file::at(&file, text, named, fault);
            self.check_cycle(named).map_err(fault)?;
            self.settle(name);
            match found(&self.done, named.get_ref()).map_err(fault)? {
                Some(Ok(included)) => whole.include(name, included).map_err(fault)?,
                Some(Err(error)) => return Err(error.clone()),
                None => {}
            }
        }
        Ok(whole)
    }

    fn check_cycle(&self, named: &Spanned<ProfileName>) -> Result<(), Fault> {
        let name = &named.get_ref().name;
        let Some(at) = self.way.iter().position(|waiting| *waiting == name) else { return Ok(()) };
        let way = self.way[at..].iter().map(|name| name.as_str()).chain([name.as_str()]);
        Err(Fault::ProfileCycle(way.collect::<Vec<_>>().join(" → ")))
    }
}

#[cfg(test)]
mod tests;
