//! Dictionaries as they are written to the bus.

use std::{collections::BTreeMap, ffi::OsString, path::Path};

use zbus::Variant;

use crate::{
    broker::outcome::{Ending, Outcome},
    launch::report::Report,
    terminal::View,
};

/// An `a{sv}`.
pub type Dict = BTreeMap<&'static str, Variant<'static>>;

/// A path as text; bytes that are not UTF-8 are replaced.
#[must_use]
pub fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// An argv as text; bytes that are not UTF-8 are replaced.
#[must_use]
pub fn texts(argv: &[OsString]) -> Vec<String> {
    argv.iter().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// An outcome as the contract writes it; empty before the end.
#[must_use]
pub fn outcome(outcome: Option<&Outcome>) -> Dict {
    let Some(outcome) = outcome else { return Dict::new() };
    let mut dict = Dict::from([
        ("reason", outcome.reason.as_str().into()),
        ("requester", outcome.requester.clone().into()),
        ("started_usec", outcome.started_usec.into()),
        ("ended_usec", outcome.ended_usec.into()),
        ("bytes_out", outcome.bytes_out.into()),
        ("bytes_dropped", outcome.bytes_dropped.into()),
        ("unseen", outcome.unseen.into()),
        ("survivors", outcome.survivors.into()),
        ("cpu_usec", outcome.usage.cpu_usec.into()),
        ("memory_peak", outcome.usage.memory_peak.into()),
    ]);
    dict.extend(ending(&outcome.ending));
    dict
}

/// How a leader ended, as the contract writes it.
#[must_use]
pub fn ending(ending: &Ending) -> Vec<(&'static str, Variant<'static>)> {
    let (kind, code, signal, core_dumped) = match ending {
        Ending::Exited(code) => ("exited", *code, String::new(), false),
        Ending::Signaled { signal, core_dumped } => {
            ("signaled", 0, signal_name(*signal), *core_dumped)
        }
        Ending::Failed(_) => ("failed", 0, String::new(), false),
    };
    let mut entries = vec![
        ("kind", kind.into()),
        ("code", code.into()),
        ("signal", signal.into()),
        ("core_dumped", core_dumped.into()),
    ];
    if let Ending::Failed(failure) = ending {
        entries.extend([
            ("step", failure.step.as_str().into()),
            ("errno", failure.errno.into()),
            ("message", failure.message.clone().into()),
        ]);
    }
    entries
}

/// A signal's name as signal(7) writes it; `SIGRTn` and unknown ones as `SIG` and the number.
fn signal_name(number: i32) -> String {
    nix::sys::signal::Signal::try_from(number)
        .map_or_else(|_| format!("SIG{number}"), |signal| signal.as_str().to_owned())
}

/// A screen as the contract writes it.
#[must_use]
pub fn screen(view: View) -> Dict {
    Dict::from([
        ("rows", view.rows.into()),
        ("cursor", view.cursor.into()),
        ("columns", view.size.columns.into()),
        ("rows_count", view.size.rows.into()),
        ("title", view.title.into()),
        ("alternate", view.alternate.into()),
    ])
}

/// What the kernel accepted, as the contract writes it.
#[must_use]
pub fn confinement(report: &Report) -> Dict {
    let gaps: Vec<&str> = report.gaps.iter().map(|gap| gap.as_str()).collect();
    Dict::from([
        ("tier", report.tier.as_str().into()),
        ("landlock_abi", report.landlock_abi.into()),
        ("read", report.read.clone().into()),
        ("write", report.write.clone().into()),
        ("execute", report.execute.clone().into()),
        ("devices", report.devices.clone().into()),
        ("protect", report.protect.clone().into()),
        ("network", report.network.clone().into()),
        ("unix_sockets", report.unix_sockets.clone().into()),
        ("sockets", report.sockets.clone().into()),
        ("signals", report.signals.clone().into()),
        ("syscalls", report.syscalls.clone().into()),
        ("capabilities", report.capabilities.clone().into()),
        ("gaps", gaps.into()),
    ])
}
