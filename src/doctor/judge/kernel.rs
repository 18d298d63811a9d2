//! What the kernel has.

use super::namespaces;
use crate::{
    doctor::{
        Check,
        facts::{Facts, Groups},
    },
    launch::confine::REQUIRED_ABI,
};

/// The first Linux with Landlock ABI 6, whose scopes a whole confinement needs.
const RELEASE: (u32, u32) = (6, 12);

/// Landlock ABIs that bring something: an audit log of refusals, `RESOLVE_UNIX`, UDP.
const AUDIT_ABI: u32 = 7;
const RESOLVE_UNIX_ABI: u32 = 9;
const UDP_ABI: u32 = 10;

/// What is left without Landlock or seccomp.
const NOTHING: &str = "no tool can be opened";

pub(super) fn checks(facts: &Facts) -> Vec<Check> {
    vec![
        release(facts),
        landlock(facts),
        seccomp(facts),
        launcher(facts),
        namespaces::check(facts),
        resolve_unix(facts),
        groups(facts),
    ]
}

fn release(facts: &Facts) -> Check {
    let found = format!("Linux {}", facts.release);
    let mut numbers = facts.release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) < RELEASE => {
            Check::lesser("kernel", found)
                .costs("what Landlock learnt since: see the line landlock")
                .mended_by("boot Linux 6.12 or later")
        }
        _ => Check::good("kernel", found),
    }
}

fn landlock(facts: &Facts) -> Check {
    const NAME: &str = "landlock";
    let degraded = facts.policy.as_ref().is_ok_and(|policy| policy.settings.allow_degraded);
    let abi = facts.kernel().landlock_abi;
    let found = format!("ABI {abi}");
    if abi == 0 {
        return no_landlock(facts);
    }
    if abi < REQUIRED_ABI && degraded {
        return Check::lesser(NAME, format!("{found}, and broker.toml has allow_degraded"))
            .costs("signals to processes outside and abstract sockets stay open")
            .mended_by("boot Linux 6.12 or later");
    }
    if abi < REQUIRED_ABI {
        return Check::missing(NAME, format!("{found}, below {REQUIRED_ABI}"))
            .costs(NOTHING)
            .mended_by("boot Linux 6.12 or later, or set allow_degraded = true in broker.toml");
    }
    if abi < AUDIT_ABI {
        return Check::lesser(NAME, found)
            .costs("the gap audit: refusals are not in the audit log")
            .mended_by("boot Linux 6.15 or later");
    }
    let udp = if abi < UDP_ABI { "; UDP follows with ABI 10" } else { "" };
    Check::good(NAME, found + udp)
}

/// Not built in, or built in and not among the modules that are in force.
fn no_landlock(facts: &Facts) -> Check {
    let check = |found: &str| Check::missing("landlock", found).costs(NOTHING);
    match &facts.modules {
        Some(modules) if !modules.iter().any(|module| module == "landlock") => {
            check("not among the security modules in force (/sys/kernel/security/lsm)").mended_by(
                format!("add to the kernel's command line: lsm=landlock,{}", modules.join(",")),
            )
        }
        _ => check("the kernel offers none").mended_by(
            "boot a kernel with CONFIG_SECURITY_LANDLOCK=y and landlock in CONFIG_LSM, or in lsm= of \
             its command line",
        ),
    }
}

fn seccomp(facts: &Facts) -> Check {
    if facts.kernel().seccomp {
        return Check::good("seccomp", "system call filters can be installed");
    }
    Check::missing("seccomp", "the kernel takes no system call filters")
        .costs(NOTHING)
        .mended_by("boot a kernel with CONFIG_SECCOMP_FILTER=y")
}

fn launcher(facts: &Facts) -> Check {
    match &facts.launcher {
        Ok(path) => Check::good("launcher", path.display().to_string()),
        Err(why) => Check::missing("launcher", why)
            .costs(NOTHING)
            .mended_by("packaging/install --user, or cargo build in a checkout"),
    }
}

fn resolve_unix(facts: &Facts) -> Check {
    const NAME: &str = "resolve-unix";
    let abi = facts.kernel().landlock_abi;
    let found = format!("not in Landlock ABI {abi}; it comes with {RESOLVE_UNIX_ABI}");
    match (abi >= RESOLVE_UNIX_ABI, facts.kernel().mounts) {
        (true, _) => Check::good(NAME, format!("Landlock ABI {abi}")),
        (false, true) => Check::good(NAME, found + ". The tier mounts does without"),
        (false, false) => Check::lesser(NAME, found)
            .costs("a tool has no socket of its own but pairs, and none can be granted")
            .mended_by("allow user namespaces, or boot a kernel with Landlock ABI 9"),
    }
}

fn groups(facts: &Facts) -> Check {
    const NAME: &str = "cgroup2";
    match &facts.groups {
        Err(why) => Check::lesser(NAME, format!("not to be found: {why}"))
            .costs("the gap no-cgroup: processes are found by descent, and cannot be paused")
            .mended_by("sudo mount -t cgroup2 none /sys/fs/cgroup"),
        Ok(Groups { own, lacks }) => match lacks.as_deref() {
            None => Check::good(NAME, format!("{}, the root of the hierarchy", own.display())),
            Some([]) => Check::good(NAME, own.display().to_string()),
            Some(lacks) => {
                Check::lesser(NAME, format!("{}, without {}", own.display(), lacks.join(" and ")))
                    .costs("sessions end process by process, or cannot be paused")
                    .mended_by("boot Linux 5.14 or later")
            }
        },
    }
}
