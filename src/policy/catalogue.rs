//! Every tool that is declared, as the files stand.

use std::{collections::BTreeMap, path::PathBuf};

use crate::{
    broker::name::ToolName,
    policy::{
        arguments::Arguments,
        file::{self, Fault, FileError},
        search_path::{SearchPath, is_masked},
        tool::{Declaration, Tool},
    },
};

mod profiles;
mod scan;

use profiles::Profiles;
use scan::{Scan, Stamps};

/// The directory of tools in a policy directory; a file in it is named `TOOL.toml`.
const TOOLS: &str = "tools.d";

/// The directory of profiles, likewise.
const PROFILES: &str = "profiles.d";

/// Most tools, and most profiles, that are read.
pub const ENTRIES_MAX: usize = 256;

/// The tools of a search path. Nothing in it is half in force: a file is usable as a whole or not
/// at all.
#[derive(Debug)]
pub struct Catalogue {
    search: SearchPath,
    tools: BTreeMap<ToolName, Entry>,
    faults: Vec<FileError>,
    stamps: Stamps,
}

/// What the strongest file of a name makes of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// It can be asked for.
    Ready(Box<Tool>),
    /// It is masked by this symlink to `/dev/null`.
    Masked(PathBuf),
    /// It is disabled.
    Broken(FileError),
}

/// A row of `ListTools`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolRow {
    /// Its name.
    pub name: String,
    /// One line for a person.
    pub title: String,
    /// The declared command, variables as written.
    pub command: Vec<String>,
    /// What arguments a request may add.
    pub arguments: String,
    /// How input and output may be carried.
    pub io: Vec<String>,
    /// Names and titles of its profiles: `git, git-remote: TITLE; TITLE`.
    pub profile: String,
    /// Whether it is an agent.
    pub agent: bool,
    /// How it takes a prompt: `argument`, `terminal`, or not at all.
    pub prompt: String,
    /// The file that declares (or masks) it.
    pub source: String,
    /// Why it is disabled; empty where it is not.
    pub error: String,
}

impl Catalogue {
    /// Reads what is declared. Never fails: what cannot be used is disabled, with its reason.
    #[must_use]
    pub fn load(search: SearchPath) -> Self {
        let stamps = Stamps::take(&search);
        let mut faults = Vec::new();
        let profiles = Profiles::read(&search, &mut faults);
        let tools = read_tools(&search, &profiles, &mut faults);
        Self { search, tools, faults, stamps }
    }

    /// Reads again if a file or directory of the search path changed; tells whether it did.
    pub fn refresh(&mut self) -> bool {
        let changed = self.stamps.are_stale(&self.search);
        if changed {
            *self = Self::load(self.search.clone());
        }
        changed
    }

    /// Looks a tool up.
    #[must_use]
    pub fn get(&self, name: &ToolName) -> Option<&Entry> {
        self.tools.get(name)
    }

    /// Every tool, by name.
    pub fn entries(&self) -> impl Iterator<Item = (&ToolName, &Entry)> {
        self.tools.iter()
    }

    /// Every symlink by which a tool or a profile is masked.
    #[must_use]
    pub fn masked(&self) -> Vec<PathBuf> {
        let files = |kind| scan(&self.search, kind, &mut Vec::new()).into_iter();
        let files = [TOOLS, PROFILES].into_iter().flat_map(files).map(|(_, file)| file);
        files.filter(|file| is_masked(file)).collect()
    }

    /// Where it was read from.
    #[must_use]
    pub fn search_path(&self) -> &SearchPath {
        &self.search
    }

    /// Every file that is not in force, to be logged: those of broken tools and profiles, and those
    /// that declare none.
    pub fn faults(&self) -> impl Iterator<Item = &FileError> {
        let broken = self.tools.values().filter_map(|entry| match entry {
            Entry::Broken(error) => Some(error),
            Entry::Ready(_) | Entry::Masked(_) => None,
        });
        self.faults.iter().chain(broken)
    }

    /// The rows of `ListTools`, by name.
    #[must_use]
    pub fn rows(&self) -> Vec<ToolRow> {
        self.tools.iter().map(|(name, entry)| entry.row(name)).collect()
    }
}

impl Entry {
    fn row(&self, name: &ToolName) -> ToolRow {
        let name = name.to_string();
        match self {
            Self::Ready(tool) => tool.row(),
            Self::Masked(by) => ToolRow {
                name,
                source: by.display().to_string(),
                error: "masked".to_owned(),
                ..ToolRow::default()
            },
            Self::Broken(error) => ToolRow {
                name,
                source: error.file.display().to_string(),
                error: error.to_string(),
                ..ToolRow::default()
            },
        }
    }
}

impl Tool {
    fn row(&self) -> ToolRow {
        let Declaration { title, command, arguments, io, agent, .. } = &self.declaration;
        let prompt = agent.as_ref().and_then(|agent| agent.prompt.as_ref());
        ToolRow {
            name: self.name.to_string(),
            title: title.clone(),
            command: command.get_ref().iter().map(ToString::to_string).collect(),
            arguments: arguments.to_string(),
            io: io.iter().map(ToString::to_string).collect(),
            profile: self.profiles(),
            agent: agent.is_some(),
            prompt: prompt.map(ToString::to_string).unwrap_or_default(),
            source: self.source.display().to_string(),
            error: String::new(),
        }
    }

    /// Those that its file names, without what they include and what was passed over.
    fn profiles(&self) -> String {
        let named = self.declaration.profile.iter();
        let layers = named.filter_map(|named| self.profile.layer(&named.get_ref().name));
        let (names, titles): (Vec<&str>, Vec<&str>) =
            layers.map(|layer| (layer.name.as_str(), layer.profile.title.as_str())).unzip();
        if names.is_empty() {
            return "none: nothing but the tool's own grants".to_owned();
        }
        format!("{}: {}", names.join(", "), titles.join("; "))
    }
}

fn read_tools(
    search: &SearchPath,
    profiles: &Profiles,
    faults: &mut Vec<FileError>,
) -> BTreeMap<ToolName, Entry> {
    let read = |(name, file): (ToolName, PathBuf)| {
        let entry = if is_masked(&file) {
            Entry::Masked(file)
        } else {
            read_tool(&name, file, profiles)
                .map_or_else(Entry::Broken, |tool| Entry::Ready(Box::new(tool)))
        };
        (name, entry)
    };
    scan(search, TOOLS, faults).into_iter().map(read).collect()
}

fn read_tool(name: &ToolName, source: PathBuf, profiles: &Profiles) -> Result<Tool, FileError> {
    let text = file::text(&source)?;
    let declaration: Declaration = file::parse(&source, &text)?;
    let command = &declaration.command;
    if command.get_ref().is_empty() && declaration.arguments != Arguments::Any {
        return Err(file::at(&source, &text, command, Fault::NoCommand));
    }
    let profile = profiles.join(&source, &text, &declaration.profile)?;
    Ok(Tool { name: name.clone(), source, declaration, profile })
}

/// The strongest files of a kind, by name; those whose name is none become faults.
fn scan(search: &SearchPath, kind: &str, faults: &mut Vec<FileError>) -> Vec<(ToolName, PathBuf)> {
    let mut scan = Scan::of(search, kind);
    scan.bound(ENTRIES_MAX);
    faults.append(&mut scan.faults);
    let mut named = Vec::new();
    for (stem, file) in scan.files {
        match ToolName::new(stem.to_string_lossy()) {
            Ok(name) => named.push((name, file)),
            Err(error) => faults.push(FileError::whole(&file, Fault::Name(error))),
        }
    }
    named
}

#[cfg(test)]
mod tests;
