//! Which files a search path holds, and whether they changed.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::{
    config,
    policy::{
        file::{Fault, FileError},
        search_path::{SearchPath, is_absent},
    },
};

/// Most names that are looked at in one directory.
const NAMES_MAX: usize = 4096;

/// How far a file system's clock may lag behind ours: a change within that of the last look may
/// keep the old stamp.
const CLOCK_LAG: Duration = Duration::from_millis(100);

/// The strongest file of each name in one directory of the search path (`tools.d`, `profiles.d`).
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// File by name, without `.toml`.
    pub(super) files: BTreeMap<OsString, PathBuf>,
    /// Directories that could not be read.
    pub(super) faults: Vec<FileError>,
}

impl Scan {
    /// Looks into `kind` of every directory of the search path.
    pub(super) fn of(search: &SearchPath, kind: &str) -> Self {
        let mut scan = Self::default();
        for directory in search.directories() {
            scan.add(&directory.join(kind));
        }
        scan
    }

    fn add(&mut self, directory: &Path) {
        match names(directory) {
            Ok(names) => {
                for name in names {
                    if let Some(stem) = declared(&name) {
                        self.files.insert(stem, directory.join(name));
                    }
                }
            }
            Err(error) if is_absent(&error) => {}
            Err(error) => {
                self.faults.push(FileError::whole(directory, Fault::Read((&error).into())))
            }
        }
    }

    /// Drops all names but the first `most`, as a fault.
    pub(super) fn bound(&mut self, most: usize) {
        let Some(first) = self.files.keys().nth(most).cloned() else {
            return;
        };
        let dropped = self.files.split_off(&first);
        if let Some(file) = dropped.values().next() {
            let first = first.to_string_lossy().into_owned();
            let directory = file.parent().unwrap_or(file);
            self.faults.push(FileError::whole(directory, Fault::TooMany { most, first }));
        }
    }
}

/// The name that a file declares: `NAME.toml`, not hidden. Anything else is not policy (an editor's
/// copy, a README).
fn declared(file_name: &OsString) -> Option<OsString> {
    let path = Path::new(file_name);
    let hidden = file_name.as_bytes().first() == Some(&b'.');
    (!hidden && path.extension()? == "toml").then(|| path.file_stem().map(OsString::from))?
}

fn names(directory: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(directory)?.take(NAMES_MAX).map(|entry| Ok(entry?.file_name())).collect()
}

/// What told one state of the files from another when they were last read.
#[derive(Debug)]
pub(super) struct Stamps {
    stamps: BTreeMap<PathBuf, Stamp>,
    taken: SystemTime,
}

/// One file or directory: device, inode, size, and times of change with nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamps {
    /// Looks at every directory and file that counts.
    pub(super) fn take(search: &SearchPath) -> Self {
        let taken = SystemTime::now();
        let directories = policy_directories(search);
        let files = directories.iter().flat_map(|directory| {
            let names = names(directory).unwrap_or_default();
            names.into_iter().map(|name| directory.join(name))
        });
        Self {
            stamps: stamps(settings_files(search).chain(files).chain(directories.clone())),
            taken,
        }
    }

    /// Looks again at what was there, and for what was not. A directory is not listed: where a name in it is new, its
    /// own stamp is.
    fn retake(&self, search: &SearchPath) -> Self {
        let taken = SystemTime::now();
        let places = settings_files(search).chain(policy_directories(search));
        Self { stamps: stamps(places.chain(self.stamps.keys().cloned())), taken }
    }

    /// Whether the files are no longer what they were, or changed so shortly before that their
    /// stamps cannot tell.
    pub(super) fn are_stale(&self, search: &SearchPath) -> bool {
        let now = self.retake(search);
        now.stamps != self.stamps || (self.is_racy() && now.taken > self.taken + CLOCK_LAG)
    }

    fn is_racy(&self) -> bool {
        let latest = self.stamps.values().map(|stamp| stamp.changed).max().unwrap_or_default();
        let since_epoch =
            |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let settled = since_epoch(self.taken).saturating_sub(CLOCK_LAG);
        let latest = Duration::new(
            u64::try_from(latest.0).unwrap_or_default(),
            u32::try_from(latest.1).unwrap_or_default(),
        );
        latest >= settled
    }
}

fn settings_files(search: &SearchPath) -> impl Iterator<Item = PathBuf> {
    search.directories().iter().map(|directory| directory.join(config::FILE_NAME))
}

fn policy_directories(search: &SearchPath) -> Vec<PathBuf> {
    let kinds = [super::TOOLS, super::PROFILES];
    search
        .directories()
        .iter()
        .flat_map(|directory| kinds.map(|kind| directory.join(kind)))
        .collect()
}

/// Stamps paths as they are, and what they point to where they are symlinks.
fn stamps(paths: impl Iterator<Item = PathBuf>) -> BTreeMap<PathBuf, Stamp> {
    let mut stamps = BTreeMap::new();
    for path in paths {
        let Ok(link) = path.symlink_metadata() else { continue };
        if link.is_symlink()
            && let (Ok(target), Ok(metadata)) = (path.canonicalize(), path.metadata())
        {
            stamps.insert(target, Stamp::of(&metadata));
        }
        stamps.insert(path, Stamp::of(&link));
    }
    stamps
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}
