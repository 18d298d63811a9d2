//! What every tool works with: the broker, the settings, and the sessions of this server.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::task::spawn_blocking;

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
use crate::client::{Client, ClientError, Dict, OpenOptions, Opened, Refusal};

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
    pub async fn workdir(&self, named: Option<&str>) -> Result<PathBuf, Failure> {
        match named {
            Some(named) => real_directory(named, "workdir", Code::SessionStartFailed).await,
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
    /// As [`Self::open_now`], or that nobody waits any more.
    pub async fn open(self: &Arc<Self>, opening: Opening, call: &Call) -> Result<Found, Failure> {
        let desk = self.clone();
        let opening = async move { desk.open_now(opening).await };
        call.see_through(Code::SessionRuntimeError, "opening", opening).await
    }

    /// Opens a session; for what is not dropped half-way, or a session is there that nobody knows.
    ///
    /// # Errors
    /// `SESSION_START_FAILED`, or what the broker's refusal is.
    pub async fn open_now(&self, opening: Opening) -> Result<Found, Failure> {
        let Opening { tool, options, not_permitted } = opening;
        let (opened, explained) =
            tokio::join!(self.client.open(&tool, &options), self.client.explain(&tool, &options));
        let explained = explained.unwrap_or_default();
        let opened = opened.map_err(|error| not_opened(&error, not_permitted, &explained))?;
        let reused = opened.reused;
        if let Some(entry) = self.roster.get(opened.session.id().as_str()) {
            return Ok(Found { entry, reused });
        }
        let facts = facts(&opened, &explained).await;
        let facts = facts.map_err(|error| Failure::of(&error, Code::SessionStartFailed))?;
        let text_bytes = usize::try_from(self.settings.limits.text_bytes).unwrap_or(usize::MAX);
        let ours = Arc::new(Entry::new(opened.session, facts, text_bytes));
        // Another call may have been given the same session meanwhile; one of them has it followed.
        let entry = self.roster.add(ours.clone());
        if Arc::ptr_eq(&entry, &ours) {
            tokio::spawn(follow(entry.clone(), self.read_wait));
        }
        Ok(Found { entry, reused })
    }
}

/// Why nothing was opened. A limit that a dry run meets too is no quota, but the size of what was asked.
fn not_opened(error: &ClientError, not_permitted: Code, explained: &Dict) -> Failure {
    let too_large = explained.text("refusal").is_some_and(|refusal| !refusal.is_empty());
    match error.refusal() {
        Some(Refusal::NotPermitted) => Failure::of(error, not_permitted),
        Some(Refusal::LimitReached) if too_large => {
            Failure::of(error, Code::SessionStartFailed).for_good()
        }
        _ => Failure::of(error, Code::SessionStartFailed),
    }
}

async fn facts(opened: &Opened, explained: &Dict) -> Result<Facts, ClientError> {
    let properties = opened.session.properties().await?;
    let program = explained.text("program").filter(|program| !program.is_empty());
    Ok(Facts {
        program: program.map(str::to_owned),
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
pub async fn real_directory(
    path: &str,
    what: &'static str,
    code: Code,
) -> Result<PathBuf, Failure> {
    let path = path.to_owned();
    off_thread(code, move || look_at(&path, what, code)).await
}

/// Looks at files, which may take as long as a file system likes: not on the thread that answers calls.
///
/// # Errors
/// Those of `look`.
pub async fn off_thread<T: Send + 'static>(
    code: Code,
    look: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let broke_off = |_| Err(Failure::recoverable(code, "looking at a directory broke off"));
    spawn_blocking(look).await.unwrap_or_else(broke_off)
}

/// As [`real_directory`], on this thread.
///
/// # Errors
/// As [`real_directory`].
pub fn look_at(path: &str, what: &str, code: Code) -> Result<PathBuf, Failure> {
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
    fn what_a_dry_run_refuses_too_is_no_quota() {
        let error = ClientError::Refused {
            refusal: Refusal::LimitReached,
            message: "too many".into(),
            step: None,
        };
        let code = Code::SessionStartFailed;
        let refused = Dict::new().with("refusal", "org.st2.Tools.Error.LimitReached");
        assert_eq!(not_opened(&error, code, &Dict::new()), Failure::recoverable(code, "too many"));
        assert_eq!(not_opened(&error, code, &refused), Failure::lasting(code, "too many"));
    }

    #[test]
    fn a_root_is_a_real_directory() {
        let bench = tempfile::tempdir().unwrap();
        let at = |name: &str| bench.path().join(name);
        fs::create_dir(at("real")).unwrap();
        fs::write(at("file"), "").unwrap();
        symlink(at("real"), at("link")).unwrap();
        let judge = |path: &Path| look_at(path.to_str().unwrap(), "root", Code::SessionStartFailed);
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
