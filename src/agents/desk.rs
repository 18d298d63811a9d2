//! What every tool works with: the broker, the settings, and the sessions of this server.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::task::JoinHandle;

use super::{
    arguments::Label,
    call::Call,
    entry::{Entry, Facts},
    failure::{Code, Failure},
    follow::follow,
    roster::Roster,
    settings::Settings,
    text::Bounds,
};
use crate::client::{Client, ClientError, OpenOptions, Opened, Refusal};

/// Columns and rows of a terminal that no person looks at: few lines wrap.
const SIZE: (u16, u16) = (120, 40);

/// How a server was started.
#[derive(Debug, Clone)]
pub struct Place {
    /// Where `exec` runs what names no directory.
    pub root: PathBuf,
    /// Labels of every session, unless a call says otherwise.
    pub labels: BTreeMap<String, String>,
}

/// What every tool works with.
#[derive(Debug)]
pub struct Desk {
    /// The broker.
    pub client: Client,
    /// What may be asked.
    pub settings: Settings,
    /// The sessions of this server.
    pub roster: Roster,
    place: Place,
    /// How long the broker lets one read wait.
    read_wait: Duration,
}

/// What is to be opened.
#[derive(Debug)]
pub struct Opening {
    /// The catalogue entry.
    pub tool: String,
    /// With what.
    pub options: OpenOptions,
    /// What it is that the catalogue does not permit.
    pub not_permitted: Code,
}

/// What opening gave.
#[derive(Debug)]
pub struct Found {
    /// The session.
    pub entry: Arc<Entry>,
    /// Whether it was there already.
    pub reused: bool,
}

impl Desk {
    /// One without sessions.
    ///
    /// # Errors
    /// Any [`ClientError`]: the broker is asked for its limits.
    pub async fn new(
        client: Client,
        settings: Settings,
        place: Place,
    ) -> Result<Self, ClientError> {
        let limits = client.manager().limits().await?;
        let read_wait = limits.get("read_wait_ms").copied().unwrap_or_default();
        let ended = usize::try_from(settings.limits.ended).unwrap_or(usize::MAX);
        let (roster, read_wait) = (Roster::new(ended), Duration::from_millis(read_wait));
        Ok(Self { client, settings, roster, place, read_wait })
    }

    /// The labels of a session: those of the server, and of the call.
    #[must_use]
    pub fn labels(&self, more: &[(&str, Option<&Label>)]) -> BTreeMap<String, String> {
        let mut labels = self.place.labels.clone();
        labels.extend(labels_of(more));
        labels
    }

    /// The directory that a call means: what it names, or the server's own.
    ///
    /// # Errors
    /// `SESSION_START_FAILED`, if it is no directory.
    pub fn workdir(&self, named: Option<&str>) -> Result<PathBuf, Failure> {
        match named {
            Some(named) => real_directory(named, "workdir", Code::SessionStartFailed),
            None => Ok(self.place.root.clone()),
        }
    }

    /// Options that hold for every session of this server.
    #[must_use]
    pub fn options(&self, root: &Path, labels: BTreeMap<String, String>) -> OpenOptions {
        OpenOptions {
            workspace: root.to_str().map(str::to_owned),
            labels,
            grace: self.settings.grace_ms.map(Duration::from_millis),
            size: Some(SIZE),
            ..OpenOptions::default()
        }
    }

    /// Most output in one answer.
    #[must_use]
    pub fn answer_bounds(&self) -> Bounds {
        let bytes = usize::try_from(self.settings.limits.answer_bytes).unwrap_or(usize::MAX);
        Bounds { lines: usize::MAX, bytes }
    }

    /// Opens a session. It is opened, and known, also if nobody waits for it any more.
    ///
    /// # Errors
    /// That of the broker, or that nobody waits any more.
    pub async fn open(self: &Arc<Self>, opening: Opening, call: &Call) -> Result<Found, Failure> {
        let (desk, not_permitted) = (self.clone(), opening.not_permitted);
        let opened: JoinHandle<_> = tokio::spawn(async move { desk.open_now(opening).await });
        match call.wait_long(opened).await {
            Some(Ok(found)) => found.map_err(|error| match error.refusal() {
                Some(Refusal::NotPermitted) => Failure::of(&error, not_permitted),
                _ => Failure::of(&error, Code::SessionStartFailed),
            }),
            Some(Err(_)) => {
                Err(Failure::recoverable(Code::SessionRuntimeError, "opening broke off"))
            }
            None => Err(Failure::recoverable(Code::SessionRuntimeError, "cancelled while opening")),
        }
    }

    async fn open_now(&self, opening: Opening) -> Result<Found, ClientError> {
        let Opening { tool, options, .. } = opening;
        let (opened, program) =
            tokio::join!(self.client.open(&tool, &options), self.program(&tool, &options));
        let opened = opened?;
        if let Some(entry) = self.roster.get(opened.session.id().as_str()) {
            return Ok(Found { entry, reused: true });
        }
        let facts = facts(&opened, program, options.labels).await?;
        let text_bytes = usize::try_from(self.settings.limits.text_bytes).unwrap_or(usize::MAX);
        let entry = Arc::new(Entry::new(opened.session, facts, text_bytes));
        self.roster.add(entry.clone());
        tokio::spawn(follow(entry.clone(), self.read_wait));
        Ok(Found { entry, reused: false })
    }

    /// The file that the tool's command is.
    async fn program(&self, tool: &str, options: &OpenOptions) -> Option<String> {
        let explained = self.client.explain(tool, options).await.ok()?;
        explained.text("program").filter(|program| !program.is_empty()).map(str::to_owned)
    }
}

async fn facts(
    opened: &Opened,
    program: Option<String>,
    labels: BTreeMap<String, String>,
) -> Result<Facts, ClientError> {
    let properties = opened.session.properties().await?;
    Ok(Facts {
        program,
        labels,
        pid: opened.info.number("pid"),
        fallback: opened.fell_back(),
        ..Facts::of(&properties)
    })
}

/// Those of the labels that are given.
#[must_use]
pub fn labels_of(given: &[(&str, Option<&Label>)]) -> BTreeMap<String, String> {
    let given = given
        .iter()
        .filter_map(|(name, label)| Some(((*name).to_owned(), label.as_ref()?.0.clone())));
    given.filter(|(_, value)| !value.is_empty()).collect()
}

/// The canonical path of an existing directory that is not itself a symbolic link.
///
/// # Errors
/// `code`, saying what it is instead.
pub fn real_directory(path: &str, what: &str, code: Code) -> Result<PathBuf, Failure> {
    let wrong = |why: &str| Failure::recoverable(code, format!("{what} {path:?} {why}"));
    let named = Path::new(path);
    if !named.is_absolute() {
        return Err(wrong("is not an absolute path"));
    }
    let metadata =
        named.symlink_metadata().map_err(|error| wrong(&format!("cannot be used: {error}")))?;
    if metadata.is_symlink() {
        return Err(wrong("is a symbolic link, not a directory"));
    }
    if !metadata.is_dir() {
        return Err(wrong("is not a directory"));
    }
    named.canonicalize().map_err(|error| wrong(&format!("cannot be used: {error}")))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_root_is_a_real_directory() {
        let bench = tempfile::tempdir().unwrap();
        let at = |name: &str| bench.path().join(name);
        fs::create_dir(at("real")).unwrap();
        fs::write(at("file"), "").unwrap();
        symlink(at("real"), at("link")).unwrap();
        let judge =
            |path: &Path| real_directory(path.to_str().unwrap(), "root", Code::SessionStartFailed);
        assert_eq!(judge(&at("real/../real")).unwrap(), at("real").canonicalize().unwrap());
        for (name, why) in
            [("file", "is not a directory"), ("link", "symbolic link"), ("absent", "No such file")]
        {
            let failure = format!("{:?}", judge(&at(name)).unwrap_err());
            assert!(failure.contains(why), "{failure}");
        }
        assert!(judge(Path::new("relative")).is_err());
    }
}
