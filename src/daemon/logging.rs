//! Where the log goes: to the journal with its fields where the service manager connected us to it, else to stderr.

use std::{env, io, os::linux::fs::MetadataExt};

use tracing_journald::{Priority, PriorityMappings};
use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt, registry, util::SubscriberInitExt};

/// Starts logging. `ST2_TOOLS_LOG` filters, as `RUST_LOG` is written; the default is `info`.
pub fn log() {
    let filter =
        EnvFilter::try_from_env("ST2_TOOLS_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    // What the MCP server's library says below this level holds whole messages, and with them terminal content.
    let filter = filter.add_directive("rmcp=error".parse().expect("the directive is well formed"));
    let journal = if stderr_is_journal() { tracing_journald::layer().ok() } else { None };
    // Without a prefix, ST2_SESSION in the code is ST2_SESSION in the journal.
    let journal =
        journal.map(|layer| layer.with_field_prefix(None).with_priority_mappings(priorities()));
    // A closed stderr must not end the broker: the layer's own complaint about it would panic.
    let stderr = journal
        .is_none()
        .then(|| fmt::layer().with_writer(io::stderr).with_ansi(false).log_internal_errors(false));
    // Fails only where a subscriber is there already, which then is the one.
    let _ = registry().with(filter).with(journal).with(stderr).try_init();
}

/// Levels as the journal's readers expect them (syslog(3)): the layer's own put information among what is notable.
fn priorities() -> PriorityMappings {
    PriorityMappings {
        error: Priority::Error,
        warn: Priority::Warning,
        info: Priority::Informational,
        debug: Priority::Debug,
        trace: Priority::Debug,
    }
}

/// Whether stderr is the stream that the service manager connected to the journal: `JOURNAL_STREAM` names its device
/// and inode (systemd.exec(5)).
fn stderr_is_journal() -> bool {
    let stream = env::var("JOURNAL_STREAM").unwrap_or_default();
    let metadata = std::fs::metadata("/proc/self/fd/2");
    let Ok(metadata) = metadata else { return false };
    stream == format!("{}:{}", metadata.st_dev(), metadata.st_ino())
}
