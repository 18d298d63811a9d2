//! What is on the user bus: the bus itself, the user manager, the broker.

use super::conclusion::own_tier;
use crate::doctor::{
    Check,
    facts::{Broker, Facts, OnBus},
};

/// What is left without a broker on a bus.
const NO_BROKER: &str = "no session outlives its command: `st2-tools run` works, with a broker of its \
                         own, and `open` does not";

/// What is left without a user manager.
const NO_MANAGER: &str = "the gaps no-scope and no-resource-limits: systemctl does not see sessions, and \
                          memory_max and tasks_max do nothing";

const NOT_ASKED: &str = "not asked, for there is no user bus";

pub(super) fn checks(facts: &Facts) -> Vec<Check> {
    match &facts.bus {
        Err(why) => vec![
            Check::missing("user-bus", why).costs(NO_BROKER).mended_by(
                "log in on a machine with a user bus, or set DBUS_SESSION_BUS_ADDRESS to one",
            ),
            Check::missing("user-manager", NOT_ASKED).costs(NO_MANAGER),
            Check::missing("broker", NOT_ASKED),
        ],
        Ok(bus) => {
            vec![Check::good("user-bus", "it answers"), manager(facts, bus), broker(facts, bus)]
        }
    }
}

fn manager(facts: &Facts, bus: &OnBus) -> Check {
    const NAME: &str = "user-manager";
    let manager = match &bus.manager {
        Ok(manager) => manager,
        Err(why) => {
            return Check::missing(NAME, why)
                .costs(NO_MANAGER)
                .mended_by("log in on a machine where systemd --user runs");
        }
    };
    let found = format!("systemd {}", manager.version);
    let missing = manager.missing_controllers();
    if missing.is_empty() {
        return Check::good(NAME, format!("{found}, with the controllers memory and pids"));
    }
    let uid = facts.surroundings.uid;
    Check::lesser(NAME, format!("{found}, without the controllers {}", missing.join(" and ")))
        .costs("the gap no-resource-limits: memory_max and tasks_max do nothing")
        .mended_by(format!(
            "sudo systemctl edit user@{uid}.service, with Delegate=memory pids in [Service]; then log \
             in anew"
        ))
}

fn broker(facts: &Facts, bus: &OnBus) -> Check {
    const NAME: &str = "broker";
    match &bus.broker {
        Broker::Running { version, backend, tier } => {
            let found = format!("st2-tools {version}, backend {backend}, tier {tier}");
            match outdated(facts, bus) {
                None => Check::good(NAME, found),
                Some(cost) => Check::lesser(NAME, found).costs(cost).mended_by(
                    "systemctl --user restart st2-tools.service, which ends the sessions of now",
                ),
            }
        }
        Broker::Silent(why) => Check::missing(NAME, format!("it does not answer: {why}"))
            .costs(NO_BROKER)
            .mended_by("journalctl --user -u st2-tools.service says more"),
        Broker::Activatable => {
            Check::good(NAME, "not running; the bus starts it when it is first called")
        }
        Broker::Absent => {
            Check::missing(NAME, "nobody owns org.st2.Tools, nor can the bus start it")
                .costs(NO_BROKER)
                .mended_by("packaging/install --user, or start st2-toolsd")
        }
    }
}

/// Whether a broker that was started now would be a better one.
fn outdated(facts: &Facts, bus: &OnBus) -> Option<String> {
    let Broker::Running { version, backend, tier } = &bus.broker else { return None };
    let own = env!("CARGO_PKG_VERSION");
    if version != own {
        return Some(format!("it is not of the version of this command, {own}"));
    }
    if backend == "portable" && bus.manager.is_ok() {
        return Some("it was started without the user manager that answers now".to_owned());
    }
    // What is set for this command alone says nothing about it.
    if !facts.variables.is_empty() {
        return None;
    }
    let better = own_tier(facts).ok()?.as_str();
    (better != tier).then(|| format!("a broker that is started now has the tier {better}"))
}
