//! The numbers, times and names of a request, judged against the tool's and the settings' bounds: a
//! request only narrows.

use std::{collections::BTreeMap, ffi::OsStr, os::unix::ffi::OsStrExt, time::Duration};

use crate::{
    broker::name::UnitName,
    config::{Limits, RING_MIN_BYTES},
    launch::spec::Io,
    policy::{
        refusal::{InvalidArgs, NotPermitted, Refusal},
        request::{LeaseKind, Request, Stdin},
        tool::Declaration,
    },
};

/// Columns or rows of a terminal.
const SIDE: (u64, u64) = (1, 1000);

/// Longest watchdog, milliseconds: 30 days, as in a declaration.
const TIMEOUT_MAX_MS: u64 = 2_592_000_000;

/// Least memory and tasks with which a program can be executed at all, and the bounds of a
/// declaration.
const MEMORY: (u64, u64) = (1 << 20, 1 << 53);
const TASKS: (u64, u64) = (1, 4_194_304);

/// Shortest token lease, milliseconds.
const LEASE_TTL_MIN_MS: u64 = 1_000;

/// What is left of a request's numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Narrowed {
    pub(super) io: Io,
    pub(super) stdin: Stdin,
    pub(super) io_fallback: bool,
    pub(super) columns: u16,
    pub(super) rows: u16,
    pub(super) grace: Duration,
    pub(super) lease: LeaseKind,
    pub(super) timeout: Option<Duration>,
    pub(super) silence: Option<Duration>,
    pub(super) memory_max: Option<u64>,
    pub(super) tasks_max: Option<u64>,
    pub(super) ring_bytes: usize,
}

/// Judges all of them.
pub(super) fn narrow(
    request: &Request,
    tool: &Declaration,
    limits: &Limits,
) -> Result<Narrowed, Refusal> {
    labels(&request.labels, limits)?;
    request.bind_unit.as_ref().map_or(Ok(()), unit)?;
    let (io, stdin, io_fallback) = carried(request, tool)?;
    Ok(Narrowed {
        io,
        stdin,
        io_fallback,
        columns: side("columns", request.columns.unwrap_or(80))?,
        rows: side("rows", request.rows.unwrap_or(24))?,
        grace: grace(request.grace, tool, limits)?,
        lease: lease(request.lease, limits)?,
        timeout: watchdog(&TIMEOUT, request.timeout, tool.timeout_ms)?,
        silence: watchdog(&SILENCE, request.silence_timeout, tool.silence_timeout_ms)?,
        memory_max: memory(request.memory_max, tool)?,
        tasks_max: tasks(request.tasks_max, tool)?,
        ring_bytes: ring(request.ring_bytes, limits)?,
    })
}

/// How input and output are carried, what is read where that is by pipes, and whether pipes may take a pty's place.
fn carried(request: &Request, tool: &Declaration) -> Result<(Io, Stdin, bool), Refusal> {
    let declared = &tool.io;
    let default = if declared.contains(&Io::Pty) { Io::Pty } else { Io::Pipe };
    let io = request.io.unwrap_or(default);
    if !declared.contains(&io) {
        return Err(NotPermitted::Io { asked: io, declared: declared.clone() }.into());
    }
    let falls_back = request.io_fallback && io == Io::Pty;
    if falls_back && !declared.contains(&Io::Pipe) {
        return Err(NotPermitted::Fallback { declared: declared.clone() }.into());
    }
    if request.stdin.is_some() && io == Io::Pty && !falls_back {
        return Err(InvalidArgs::Stdin.into());
    }
    // Whoever asked for a terminal means to type.
    let default = if falls_back { Stdin::Open } else { Stdin::Closed };
    Ok((io, request.stdin.unwrap_or(default), falls_back))
}

/// Checks the name of a terminal type: it becomes part of a path beneath the terminfo directories.
pub(super) fn term(term: Option<&str>) -> Result<&str, InvalidArgs> {
    let term = term.unwrap_or("xterm-256color");
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte);
    let begins = term.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if begins && term.len() <= 64 && term.bytes().all(allowed) {
        Ok(term)
    } else {
        Err(InvalidArgs::Term(term.chars().take(64).collect()))
    }
}

/// Refuses a NUL byte, where execve(2) would end the text.
pub(super) fn no_nul(what: &'static str, text: &OsStr) -> Result<(), InvalidArgs> {
    if text.as_bytes().contains(&0) {
        return Err(InvalidArgs::Nul { what, value: text.to_owned() });
    }
    Ok(())
}

fn side(what: &'static str, value: u16) -> Result<u16, InvalidArgs> {
    within(what, u64::from(value), SIDE).map(|_| value)
}

fn within(what: &'static str, value: u64, (least, most): (u64, u64)) -> Result<u64, InvalidArgs> {
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(InvalidArgs::Outside { what, value, least, most })
    }
}

/// Judges a number against a cap that policy sets.
fn capped(
    what: &'static str,
    asked: u64,
    cap_name: &'static str,
    cap: u64,
) -> Result<u64, NotPermitted> {
    if asked > cap { Err(NotPermitted::AboveCap { what, asked, cap_name, cap }) } else { Ok(asked) }
}

/// The tool's grace is a default: it yields to the cap, a request does not.
fn grace(
    asked: Option<Duration>,
    tool: &Declaration,
    limits: &Limits,
) -> Result<Duration, NotPermitted> {
    let cap = limits.grace_max_ms;
    let grace = match asked {
        None => tool.grace_ms.min(cap),
        Some(asked) => capped("grace_ms", millis(asked), "grace_max_ms", cap)?,
    };
    Ok(Duration::from_millis(grace))
}

fn lease(asked: LeaseKind, limits: &Limits) -> Result<LeaseKind, Refusal> {
    let LeaseKind::Token { ttl } = asked else {
        return Ok(LeaseKind::Caller);
    };
    let cap = limits.lease_ttl_max_ms;
    let ttl = match ttl {
        None => limits.lease_ttl_default_ms.min(cap),
        Some(asked) => {
            let asked = capped("lease_ttl_ms", millis(asked), "lease_ttl_max_ms", cap)?;
            within("lease_ttl_ms", asked, (LEASE_TTL_MIN_MS, cap))?
        }
    };
    Ok(LeaseKind::Token { ttl: Some(Duration::from_millis(ttl)) })
}

/// How a watchdog is called, by a request and by a tool.
struct Watchdog {
    name: &'static str,
    cap_name: &'static str,
}

const TIMEOUT: Watchdog = Watchdog { name: "timeout_ms", cap_name: "the tool's timeout_ms" };
const SILENCE: Watchdog =
    Watchdog { name: "silence_timeout_ms", cap_name: "the tool's silence_timeout_ms" };

/// The tool's own time is default and cap; zero is none.
fn watchdog(
    watchdog: &Watchdog,
    asked: Option<Duration>,
    cap: u64,
) -> Result<Option<Duration>, Refusal> {
    let Watchdog { name: what, cap_name } = *watchdog;
    let asked = asked.map_or(Ok(cap), |asked| within(what, millis(asked), (0, TIMEOUT_MAX_MS)))?;
    if cap > 0 && asked == 0 {
        return Err(NotPermitted::NoTimeout { what, cap }.into());
    }
    let most = if cap == 0 { TIMEOUT_MAX_MS } else { cap };
    let timeout = capped(what, asked, cap_name, most)?;
    Ok((timeout > 0).then(|| Duration::from_millis(timeout)))
}

fn memory(asked: Option<u64>, tool: &Declaration) -> Result<Option<u64>, Refusal> {
    let Some(asked) = asked else {
        return Ok(tool.memory_max);
    };
    let asked = within("memory_max", asked, MEMORY)?;
    Ok(Some(capped(
        "memory_max",
        asked,
        "the tool's memory_max",
        tool.memory_max.unwrap_or(asked),
    )?))
}

fn tasks(asked: Option<u64>, tool: &Declaration) -> Result<Option<u64>, Refusal> {
    let Some(asked) = asked else {
        return Ok(tool.tasks_max);
    };
    let asked = within("tasks_max", asked, TASKS)?;
    Ok(Some(capped("tasks_max", asked, "the tool's tasks_max", tool.tasks_max.unwrap_or(asked))?))
}

fn ring(asked: Option<u64>, limits: &Limits) -> Result<usize, InvalidArgs> {
    let most = limits.ring_max_bytes;
    let default = limits.ring_default_bytes.min(most);
    let bytes = within("ring_bytes", asked.unwrap_or(default), (RING_MIN_BYTES, most))?;
    Ok(usize::try_from(bytes).expect("a ring is at most 4 MiB"))
}

fn labels(labels: &BTreeMap<String, String>, limits: &Limits) -> Result<(), InvalidArgs> {
    let (given, most) = (labels.len(), limits.labels);
    if given as u64 > most {
        return Err(InvalidArgs::Labels { given, most });
    }
    let most = limits.label_bytes;
    let fits = |text: &str| text.len() as u64 <= most && !text.contains(char::is_control);
    match labels.iter().find(|(name, value)| name.is_empty() || !fits(name) || !fits(value)) {
        None => Ok(()),
        Some((name, _)) => Err(InvalidArgs::Label { name: name.chars().take(64).collect(), most }),
    }
}

/// What systemd takes for the name of a unit (systemd.unit(5)): at most 255 of these characters, a
/// dot and a type.
fn unit(unit: &UnitName) -> Result<(), InvalidArgs> {
    let name = unit.as_str();
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
    let typed =
        name.rsplit_once('.').is_some_and(|(stem, kind)| !stem.is_empty() && !kind.is_empty());
    if typed && name.len() <= 255 && name.bytes().all(allowed) {
        Ok(())
    } else {
        Err(InvalidArgs::Unit(name.chars().take(255).collect()))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
