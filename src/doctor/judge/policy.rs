//! What the policy lets be opened, what changes it, and what could be granted.

use crate::{
    config::{LANDLOCK_ABI_VARIABLE, MAX_TIER_VARIABLE},
    doctor::{
        Check,
        facts::{Facts, GPG_AGENT, Policy, Socket},
    },
    launch::report::Tier,
};

pub(super) fn checks(facts: &Facts) -> Vec<Check> {
    let mut checks = match &facts.policy {
        Ok(policy) => of_files(policy),
        Err(why) => vec![
            Check::missing("policy", why)
                .costs("no broker starts")
                .mended_by("mend or unset the variable"),
        ],
    };
    checks.extend(facts.variables.iter().map(|(name, value)| variable(name, value)));
    checks
}

fn of_files(policy: &Policy) -> Vec<Check> {
    let mut checks = vec![settings(policy), tools(policy)];
    checks.extend(policy.faults.iter().map(|fault| {
        Check::lesser("policy-file", fault)
            .costs("nothing that it declares is in force")
            .mended_by("mend the file; st2-tools tools shows what is in force")
    }));
    checks.extend(policy.masked.iter().map(|link| Check::good("masked", link)));
    checks
}

fn settings(policy: &Policy) -> Check {
    const NAME: &str = "settings";
    let settings = &policy.settings;
    match (&settings.fault, &settings.source) {
        (Some(fault), _) => Check::missing(NAME, fault.to_string())
            .costs("no tool can be opened")
            .mended_by("mend the file, then systemctl --user restart st2-tools.service"),
        (None, Some(source)) => Check::good(NAME, source.display().to_string()),
        (None, None) => Check::good(NAME, "the defaults, for there is no broker.toml"),
    }
}

fn tools(policy: &Policy) -> Check {
    let places: Vec<_> = policy.directories.iter().map(|place| place.to_string_lossy()).collect();
    let places = places.join(", ");
    match policy.tools {
        0 => Check::missing("tools", format!("none in {places}"))
            .costs("no tool can be opened")
            .mended_by("packaging/install, which brings the vendor's"),
        1 => Check::good("tools", format!("1, from {places}")),
        count => Check::good("tools", format!("{count}, from {places}")),
    }
}

/// Whether a variable makes a broker act as on a lesser machine.
pub(super) fn lowers(name: &str) -> bool {
    [MAX_TIER_VARIABLE, LANDLOCK_ABI_VARIABLE].contains(&name)
}

fn variable(name: &str, value: &str) -> Check {
    let found = format!("{name}={value}");
    if !lowers(name) {
        return Check::good("override", found);
    }
    Check::lesser("override", found)
        .costs("a broker that is started from here acts as on a lesser kernel")
        .mended_by(format!("unset {name}"))
}

/// Sockets that could be granted in this tier.
pub(super) fn sockets(facts: &Facts, tier: Option<&str>) -> Vec<Check> {
    facts.sockets.iter().map(|found| socket(found, tier)).collect()
}

fn socket(socket: &Socket, tier: Option<&str>) -> Check {
    let Socket { name, place } = socket;
    match place {
        Err(why) => Check::missing(name, why).costs("no tool can be granted it"),
        Ok(path) if grants(tier, name) => Check::good(name, path.display().to_string()),
        Ok(path) => Check::lesser(name, path.display().to_string())
            .costs(format!("it cannot be granted in the tier {}", tier.unwrap_or("none"))),
    }
}

/// The restricted socket of gpg-agent has to be put at another's place, which only a root of one's own has.
fn grants(tier: Option<&str>, name: &str) -> bool {
    let is = |known: Tier| tier == Some(known.as_str());
    is(Tier::Mounts) || (is(Tier::ResolveUnix) && name != GPG_AGENT)
}
