//! What a request would get: the answer of a dry run, as plain facts.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    os::fd::AsFd,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Duration,
};

use nix::unistd::{AccessFlags, access};

use crate::{
    config::Settings,
    launch::{
        confine,
        report::{Gap, Tier, all_gaps},
        spec::{Access, ConfinementSpec, Grant, Io, Target},
    },
    policy::{
        catalogue::Catalogue,
        refusal::Refusal,
        request::{Request, Stdin},
        resolve,
        resolved::Resolved,
        settled::settled,
        surroundings::Surroundings,
        tool::Tool,
    },
};

/// What a request would get, or why it would get nothing.
#[derive(Debug)]
pub enum Explanation {
    /// It would be opened like this.
    Granted(Box<Facts>),
    /// It would be refused.
    Refused(Refusal),
}

/// What would be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The tool's line for a person.
    pub title: String,
    /// The file that declares the tool.
    pub source: String,
    /// Its profiles and those that they include, each with the file that declares it.
    pub profiles: Vec<(String, String)>,
    /// The file that says which command it is: for an agent, possibly the project's or the user's.
    pub command_source: String,
    /// The file of the broker's settings; none where the defaults hold.
    pub settings: Option<String>,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The file that would be executed; none where none is found, and `execve` would fail.
    pub program: Option<String>,
    /// Working directory.
    pub cwd: String,
    /// Workspace.
    pub workspace: String,
    /// Names of the environment.
    pub environment: Vec<String>,
    /// Paths that can be read.
    pub read: Vec<String>,
    /// Paths that can be written.
    pub write: Vec<String>,
    /// Paths from which programs can be executed.
    pub execute: Vec<String>,
    /// Device nodes; `terminal` is the session's own.
    pub devices: Vec<String>,
    /// What beneath the writable paths can only be read; nothing in a tier that cannot see to that.
    pub protect: Vec<String>,
    /// `none`, `loopback`, `all` or `tcp:PORT,…`.
    pub network: String,
    /// Where the tool finds sockets of others.
    pub sockets: Vec<String>,
    /// Tier of confinement.
    pub tier: Tier,
    /// Landlock ABI, 0..=255.
    pub landlock_abi: u32,
    /// What the host cannot promise. What the kernel cannot enforce is known once it has accepted a
    /// ruleset.
    pub gaps: Vec<Gap>,
    /// Milliseconds that it outlives a vanished owner.
    pub grace_ms: u64,
    /// Longest life, milliseconds; 0 is none.
    pub timeout_ms: u64,
    /// No-output watchdog; 0 is none.
    pub silence_timeout_ms: u64,
    /// From the first gentle signal to SIGKILL, milliseconds.
    pub stop_timeout_ms: u64,
    /// Most memory, bytes; 0 is no bound.
    pub memory_max: u64,
    /// Most processes and threads; 0 is no bound.
    pub tasks_max: u64,
    /// Output ring, bytes.
    pub ring_bytes: u64,
    /// Whether the terminal's controller end may be lent to a direct holder.
    pub direct: bool,
    /// How input and output are carried.
    pub io: Io,
    /// Whether a pty that cannot be opened gives way to pipes.
    pub io_fallback: bool,
    /// Whether there is anything to write to: on pipes, where standard input is open.
    pub input: bool,
    /// Terminal size: columns, rows; 0 without one.
    pub size: (u16, u16),
}

/// Says what a request would get: the same judgement as for opening, and nothing is opened.
#[must_use]
pub fn explain(
    catalogue: &Catalogue,
    tool: &str,
    request: &Request,
    surroundings: &Surroundings,
    settings: &Settings,
    tmpdir: &Path,
) -> Explanation {
    let judged = resolve::find(catalogue, tool).and_then(|declared| {
        let judged = resolve::resolve(catalogue, tool, request, surroundings, settings, tmpdir);
        judged.map(|resolved| (declared, resolved))
    });
    match judged {
        Err(refusal) => Explanation::Refused(refusal),
        Ok((declared, resolved)) => {
            let landlock_abi = resolve::landlock_abi(surroundings, settings);
            let workspace = Some(resolved.workspace_fd.as_fd());
            let own = confine::gaps(&resolved.spec.confinement, landlock_abi, workspace);
            let gaps = all_gaps(&own, &surroundings.host_gaps);
            let settings = settings.source.as_ref().map(|path| path.display().to_string());
            let facts = Facts { landlock_abi, gaps, settings, ..Facts::of(declared, &resolved) };
            Explanation::Granted(Box::new(facts))
        }
    }
}

impl Facts {
    fn of(declared: &Tool, resolved: &Resolved) -> Self {
        let confinement = &resolved.spec.confinement;
        let grants = confinement.grants.as_slice();
        let sockets = confinement.sockets.iter();
        Self {
            title: declared.declaration.title.clone(),
            source: resolved.source.display().to_string(),
            profiles: profiles(declared),
            command_source: resolved.command_source.display().to_string(),
            settings: None,
            argv: resolved
                .spec
                .argv
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .collect(),
            program: program(resolved).map(|path| path.display().to_string()),
            cwd: resolved.cwd.display().to_string(),
            workspace: resolved.workspace.display().to_string(),
            environment: names(&resolved.spec.environment),
            read: paths(grants, |access| access.read && !access.device),
            write: paths(grants, |access| access.write && !access.device),
            execute: paths(grants, |access| access.execute),
            devices: paths(grants, |access| access.device),
            protect: protected(resolved),
            network: confinement.network.to_string(),
            sockets: sockets.map(|socket| socket.at.display().to_string()).collect(),
            tier: confinement.tier,
            landlock_abi: 0,
            gaps: Vec::new(),
            grace_ms: millis(resolved.grace),
            timeout_ms: resolved.timeout.map_or(0, millis),
            silence_timeout_ms: resolved.silence.map_or(0, millis),
            stop_timeout_ms: millis(resolved.stop_timeout),
            memory_max: resolved.memory_max.unwrap_or(0),
            tasks_max: resolved.tasks_max.unwrap_or(0),
            ring_bytes: resolved.ring_bytes as u64,
            direct: resolved.direct,
            io: resolved.spec.io,
            io_fallback: resolved.io_fallback,
            input: resolved.spec.io == Io::Pty || resolved.stdin == Stdin::Open,
            size: (resolved.columns, resolved.rows),
        }
    }
}

fn profiles(tool: &Tool) -> Vec<(String, String)> {
    let layers = tool.profile.layers();
    layers.map(|layer| (layer.name.to_string(), layer.source.display().to_string())).collect()
}

/// What the launcher will protect: what is there, or can be made in a directory that is there.
fn protected(resolved: &Resolved) -> Vec<String> {
    let ConfinementSpec { tier, grants, root, .. } = &resolved.spec.confinement;
    let is_written = |place: &Path| {
        grants.iter().any(|grant| match &grant.target {
            Target::Path(path) | Target::Descriptor(_, path) => grant.access.write && path == place,
            Target::OwnTerminal => false,
        })
    };
    let places = root.protect.iter().filter_map(|protected| {
        let beneath = protected.beneath.as_deref().unwrap_or(&resolved.workspace);
        let path = beneath.join(&protected.path);
        let holder = path.parent()?;
        // No symlink is followed on the way, nor one at its end.
        let is_plain = settled(holder) == holder && holder.is_dir() && !path.is_symlink();
        (is_written(beneath) && is_plain).then(|| path.display().to_string())
    });
    if *tier == Tier::Mounts { places.collect() } else { Vec::new() }
}

/// Looks a program up as execvp(3) does.
fn program(resolved: &Resolved) -> Option<PathBuf> {
    let program = Path::new(resolved.spec.argv.first()?);
    let is_executable = |path: &PathBuf| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
    if program.as_os_str().as_bytes().contains(&b'/') {
        return Some(resolved.cwd.join(program)).filter(is_executable);
    }
    let path = resolved.spec.environment.get(OsStr::new("PATH"))?;
    env::split_paths(path).map(|directory| directory.join(program)).find(is_executable)
}

fn names(environment: &BTreeMap<OsString, OsString>) -> Vec<String> {
    environment.keys().map(|name| name.to_string_lossy().into_owned()).collect()
}

fn paths(grants: &[Grant], wanted: impl Fn(Access) -> bool) -> Vec<String> {
    let granted = grants.iter().filter(|grant| wanted(grant.access));
    granted
        .map(|grant| match &grant.target {
            Target::Path(path) | Target::Descriptor(_, path) => path.display().to_string(),
            Target::OwnTerminal => "terminal".to_owned(),
        })
        .collect()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
