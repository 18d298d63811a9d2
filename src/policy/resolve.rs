//! Declaration × request → launch specification.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    broker::name::ToolName,
    config::{Limits, MaxTier, Settings},
    launch::{
        report::Tier,
        spec::{ConfinementSpec, Io, LaunchSpec, Network, OwnRoot},
    },
    policy::{
        agent::{AgentError, Command},
        arguments::Inside,
        catalogue::{Catalogue, Entry},
        environment,
        grants::{self, SessionValues},
        narrow::{self, Narrowed},
        off_limits::OffLimits,
        refusal::{InvalidArgs, LimitReached, Missing, NoSuchTool, NotPermitted, Refusal},
        repository,
        request::Request,
        resolved::Resolved,
        sockets::{self, Sockets},
        surroundings::Surroundings,
        tool::Tool,
        workspace::{self, Opened, WorkspaceError},
    },
};

/// `oom_score_adj` of every tool: above the 200 of a desktop's applications, so that tools go
/// before them.
const OOM_SCORE_ADJ: i16 = 500;

/// Where a name leads that is only to be there.
const NOTHING: &str = "/dev/null";

/// Landlock's ABI from which signals and abstract sockets are scoped.
const ABI_SCOPED: u32 = 6;

/// Landlock's ABI from which TCP ports are known.
const ABI_PORTS: u32 = 4;

/// Landlock's ABI from which connecting to a pathname socket is a right.
const ABI_RESOLVE_UNIX: u32 = 9;

/// Judges one request. `tmpdir` is where the session's `TMPDIR` will be; nothing is made.
///
/// # Errors
/// [`Refusal`], naming the value and the rule.
pub fn resolve(
    catalogue: &Catalogue,
    tool: &str,
    request: &Request,
    surroundings: &Surroundings,
    settings: &Settings,
    tmpdir: &Path,
) -> Result<Resolved, Refusal> {
    if let Some(fault) = &settings.fault {
        return Err(NotPermitted::Settings(Box::new(fault.clone())).into());
    }
    let tool = find(catalogue, tool)?;
    let tier = tier_for(tool.profile.network(), surroundings, settings)?;
    let numbers = narrow::narrow(request, &tool.declaration, &settings.limits)?;
    let place = Place::open(catalogue, tool, request, surroundings, settings, tmpdir)?;
    let (argv, origin) = place.argv(tool, request, surroundings)?;
    let mut environment = place.environment(tool, request, surroundings)?;
    let (confinement, found_by) = place.confinement(tool, tier, surroundings, settings)?;
    environment.extend(found_by);
    check_size(&argv, &environment, &settings.limits)?;
    let spec = LaunchSpec {
        argv,
        environment,
        io: Io::Pty,
        confinement,
        umask: tool.declaration.umask,
        nofile_soft: tool.declaration.open_files,
        oom_score_adj: OOM_SCORE_ADJ,
        supervise: None,
    };
    let io = numbers.io;
    let resolved = assemble(tool, request, numbers, place, (spec, origin));
    Ok(if io == Io::Pipe { resolved.without_terminal() } else { resolved })
}

/// The Landlock ABI that counts: the kernel's, or the cap of a test.
#[must_use]
pub fn landlock_abi(surroundings: &Surroundings, settings: &Settings) -> u32 {
    let kernel = surroundings.kernel.landlock_abi;
    settings.overrides.landlock_abi_cap.map_or(kernel, |cap| cap.min(kernel))
}

/// The best tier here, if it can enforce what a profile says of the network.
///
/// # Errors
/// [`Missing`]: what this machine lacks for that.
pub(super) fn tier_for(
    network: &Network,
    surroundings: &Surroundings,
    settings: &Settings,
) -> Result<Tier, Missing> {
    let abi = landlock_abi(surroundings, settings);
    let ports = matches!(network, Network::TcpConnect(_));
    if ports && (1..ABI_PORTS).contains(&abi) && !settings.allow_degraded {
        return Err(Missing::Ports { abi, network: network.clone() });
    }
    match tier(surroundings, settings)? {
        tier if *network == Network::Loopback && tier != Tier::Mounts => {
            Err(Missing::Loopback { tier })
        }
        tier => Ok(tier),
    }
}

/// The best tier available here.
///
/// # Errors
/// [`Missing`]: what confinement needs and this machine lacks.
pub fn tier(surroundings: &Surroundings, settings: &Settings) -> Result<Tier, Missing> {
    let abi = landlock_abi(surroundings, settings);
    let most = settings.overrides.max_tier;
    match most {
        MaxTier::Nothing => Err(Missing::NoTierAllowed),
        _ if abi == 0 => Err(Missing::Landlock),
        _ if abi < ABI_SCOPED && !settings.allow_degraded => Err(Missing::LandlockAbi { abi }),
        _ if !surroundings.kernel.seccomp => Err(Missing::Seccomp),
        _ if surroundings.kernel.mounts && most.admits(Tier::Mounts) => Ok(Tier::Mounts),
        _ if abi >= ABI_RESOLVE_UNIX && most.admits(Tier::ResolveUnix) => Ok(Tier::ResolveUnix),
        MaxTier::Best | MaxTier::Most(_) => Ok(Tier::Seccomp),
    }
}

/// The tool of a name, if it can be asked for.
pub(super) fn find<'c>(catalogue: &'c Catalogue, name: &str) -> Result<&'c Tool, Refusal> {
    let unknown = || NoSuchTool::Unknown(name.chars().take(64).collect());
    let name = ToolName::new(name).map_err(|_| unknown())?;
    match catalogue.get(&name).ok_or_else(unknown)? {
        Entry::Ready(tool) => Ok(tool),
        Entry::Masked(by) => Err(NoSuchTool::Masked { name, by: by.clone() }.into()),
        Entry::Broken(error) => {
            Err(NotPermitted::Broken { name, error: Box::new(error.clone()) }.into())
        }
    }
}

/// What argv does not tell of itself.
struct Origin {
    /// The file that says which program.
    command_source: PathBuf,
    /// How many arguments, the last, are a prompt.
    prompt_words: usize,
}

/// Where a session will be.
struct Place {
    asked: PathBuf,
    workspace: Opened,
    cwd: Opened,
    tmpdir: PathBuf,
    path: OsString,
    values: SessionValues,
    off_limits: OffLimits,
}

impl Place {
    fn open(
        catalogue: &Catalogue,
        tool: &Tool,
        request: &Request,
        surroundings: &Surroundings,
        settings: &Settings,
        tmpdir: &Path,
    ) -> Result<Self, Refusal> {
        // Neither the default workspace nor a directory of PATH can refer to the workspace.
        let values = SessionValues::new(surroundings, Path::new("/"), tmpdir);
        let declared =
            || tool.declaration.workspace.as_ref().map(|path| path.template().expand(&values));
        let asked = request.workspace.clone().or_else(declared).ok_or(WorkspaceError::None)?;
        let directories = grants::path_directories(tool, settings, &values);
        let off_limits = OffLimits::of(surroundings, catalogue.search_path(), &directories);
        let workspace = workspace::open(&asked, &off_limits)?;
        let cwd = request.cwd.as_deref().unwrap_or(Path::new("."));
        let cwd = workspace::open_cwd(&workspace, &asked, cwd)?;
        let values = SessionValues::new(surroundings, &workspace.path, tmpdir);
        let path = grants::path_variable(&directories);
        Ok(Self { asked, workspace, cwd, tmpdir: tmpdir.to_owned(), path, values, off_limits })
    }

    /// Program and arguments, and where they are from.
    fn argv(
        &self,
        tool: &Tool,
        request: &Request,
        surroundings: &Surroundings,
    ) -> Result<(Vec<OsString>, Origin), Refusal> {
        for argument in &request.argv {
            narrow::no_nul("argument", argument)?;
        }
        let appended =
            tool.declaration.arguments.judge(&request.argv, self).map_err(NotPermitted::from)?;
        let command = self.command(tool, surroundings)?;
        let prompt = prompt(tool, request)?;
        let origin = Origin { command_source: command.source, prompt_words: prompt.len() };
        let argv: Vec<OsString> = command.argv.into_iter().chain(appended).chain(prompt).collect();
        match argv.first() {
            Some(program) if !program.is_empty() => Ok((argv, origin)),
            _ => Err(InvalidArgs::NoProgram(tool.name.clone()).into()),
        }
    }

    fn command(&self, tool: &Tool, surroundings: &Surroundings) -> Result<Command, NotPermitted> {
        if let Some(agent) = &tool.declaration.agent
            && let Some(command) =
                agent.command(tool.name.as_str(), &self.workspace, surroundings)?
        {
            return Ok(command);
        }
        let declared = tool.declaration.command.get_ref().iter();
        let argv = declared.map(|part| part.expand(&self.values)).collect();
        Ok(Command { argv, source: tool.source.clone() })
    }

    fn environment(
        &self,
        tool: &Tool,
        request: &Request,
        surroundings: &Surroundings,
    ) -> Result<BTreeMap<OsString, OsString>, Refusal> {
        let places = (self.path.clone(), self.cwd.path.as_path(), self.tmpdir.as_path());
        environment::build(tool, request, surroundings, &self.values, places)
    }

    /// What the tool may touch, and the variables by which it finds its sockets.
    fn confinement(
        &self,
        tool: &Tool,
        tier: Tier,
        surroundings: &Surroundings,
        settings: &Settings,
    ) -> Result<(ConfinementSpec, BTreeMap<OsString, OsString>), NotPermitted> {
        let Self { workspace, values, off_limits, .. } = self;
        let linked = match tool.profile.git_common_dir() {
            true => repository::linked(workspace, surroundings.uid, off_limits)?,
            false => None,
        };
        let granted = grants::resolve(tool, settings, values, off_limits, linked.as_ref())?;
        let mut root = OwnRoot {
            home: Some(granted.home),
            links: granted.links,
            protect: tool.profile.protect(),
        };
        if let Some(linked) = linked {
            root.protect.extend(linked.protect);
            root.links.extend(linked.names.into_iter().map(|name| (name, NOTHING.into())));
        }
        let ground = sockets::Ground { tier, surroundings, values, off_limits };
        let sockets = Sockets::of(tool, &ground, &mut root)?;
        let admits_mounts = settings.overrides.max_tier.admits(Tier::Mounts);
        let confinement = ConfinementSpec {
            tier,
            grants: granted.paths,
            sockets: sockets.grants,
            network: tool.profile.network().clone(),
            root,
            no_user_namespace: tier != Tier::Mounts && admits_mounts,
            landlock_abi_cap: settings.overrides.landlock_abi_cap,
            allow_degraded: settings.allow_degraded,
        };
        Ok((confinement, sockets.environment))
    }
}

impl Inside for Place {
    fn holds(&self, path: &OsStr) -> bool {
        self.workspace.holds(&self.cwd, &self.asked, Path::new(path))
    }
}

/// The arguments that carry the prompt of an agent.
fn prompt(tool: &Tool, request: &Request) -> Result<Vec<OsString>, Refusal> {
    let Some(prompt) = &request.prompt else { return Ok(Vec::new()) };
    narrow::no_nul("prompt", OsStr::new(prompt))?;
    let name = tool.name.as_str();
    let none = || NotPermitted::from(AgentError::NoPrompt(name.to_owned()));
    let agent = tool.declaration.agent.as_ref().ok_or_else(none)?;
    Ok(agent.prompt(name, prompt).map_err(NotPermitted::from)?)
}

/// Counts as execve(2) does, without the pointers: each text with its NUL, a variable with its `=`.
fn check_size(
    argv: &[OsString],
    environment: &BTreeMap<OsString, OsString>,
    limits: &Limits,
) -> Result<(), LimitReached> {
    let arguments = argv.iter().map(|argument| argument.len() + 1);
    let variables = environment.iter().map(|(name, value)| name.len() + value.len() + 2);
    let bytes = arguments.chain(variables).map(|length| length as u64).sum();
    let most = limits.argv_env_bytes;
    if bytes > most { Err(LimitReached::ArgvEnv { bytes, most }) } else { Ok(()) }
}

fn assemble(
    tool: &Tool,
    request: &Request,
    numbers: Narrowed,
    place: Place,
    (spec, origin): (LaunchSpec, Origin),
) -> Resolved {
    let Narrowed { io: _, stdin, io_fallback, columns, rows, grace, lease, .. } = numbers;
    let Narrowed { timeout, silence, memory_max, tasks_max, ring_bytes, .. } = numbers;
    Resolved {
        tool: tool.name.clone(),
        source: tool.source.clone(),
        command_source: origin.command_source,
        prompt_words: origin.prompt_words,
        spec,
        workspace_fd: place.workspace.fd,
        cwd_fd: place.cwd.fd,
        workspace: place.workspace.path,
        cwd: place.cwd.path,
        tmpdir: place.tmpdir,
        stdin,
        io_fallback,
        columns,
        rows,
        grace,
        lease,
        timeout,
        silence,
        stop_timeout: Duration::from_millis(tool.declaration.stop_timeout_ms),
        memory_max,
        tasks_max,
        ring_bytes,
        direct: tool.declaration.direct,
        labels: request.labels.clone(),
        bind_unit: request.bind_unit.clone(),
        private: request.private,
        reuse: request.reuse,
    }
}

#[cfg(test)]
mod tests;
