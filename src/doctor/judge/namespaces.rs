//! User namespaces: whether the launcher gets them, and who forbids them where it does not.

use std::path::Path;

use crate::doctor::{Check, facts::Facts};

/// Why the launcher is refused user namespaces.
pub(super) struct Refusal {
    /// Who refuses.
    pub(super) reason: String,
    /// What to do.
    advice: String,
}

/// What cannot be had without a root of a tool's own.
const COST: &str = "the tier mounts: sessions get a lesser one, with the gaps no-user-namespace, \
                    metadata-outside and git-hooks";

pub(super) fn check(facts: &Facts) -> Check {
    const NAME: &str = "user-namespaces";
    match (&facts.launcher, &facts.no_mounts) {
        (Err(_), _) => Check::missing(NAME, "not asked, for there is no launcher").costs(COST),
        (Ok(_), None) => Check::good(NAME, "the launcher can make a root of a tool's own"),
        (Ok(_), Some(words)) => {
            let Refusal { reason, advice } = refusal(facts);
            let found = format!("{reason}; the launcher says: {words}");
            Check::lesser(NAME, found).costs(COST).mended_by(advice)
        }
    }
}

/// Who refuses: the first setting that forbids them to this user, or somebody who has no setting.
pub(super) fn refusal(facts: &Facts) -> Refusal {
    let sysctls = facts.sysctls;
    // What is forbidden to those without privileges is not to root.
    let ordinary = !facts.surroundings.uid.is_root();
    if sysctls.max_user_namespaces == Some(0) {
        return by_sysctl("user.max_user_namespaces", 0, "15000");
    }
    if ordinary && sysctls.unprivileged_userns_clone == Some(0) {
        return by_sysctl("kernel.unprivileged_userns_clone", 0, "1");
    }
    match sysctls.apparmor_restrict {
        Some(value @ 1..) if ordinary => by_apparmor(facts, value),
        _ => Refusal {
            reason: "user namespaces are refused, by no known sysctl".to_owned(),
            advice:
                "look for a container's system call filter, a change of root, or a security module"
                    .to_owned(),
        },
    }
}

fn by_sysctl(name: &str, value: u64, better: &str) -> Refusal {
    Refusal {
        reason: format!("sysctl {name} is {value}, which forbids user namespaces"),
        advice: format!(
            "echo {name}={better} | sudo tee /etc/sysctl.d/60-st2-tools.conf && \
             sudo sysctl --system"
        ),
    }
}

/// The profile is beside the vendor's policy, which is the weakest.
fn by_apparmor(facts: &Facts, value: u64) -> Refusal {
    let policy = facts.policy.as_ref().ok().and_then(|policy| policy.directories.first());
    let vendor = policy.map_or(Path::new("/usr/share/st2-tools"), |directory| directory);
    let profile = vendor.join("apparmor/st2-tools-launch");
    Refusal {
        reason: format!(
            "sysctl kernel.apparmor_restrict_unprivileged_userns is {value}, which keeps \
             user namespaces to programs with an AppArmor profile"
        ),
        advice: format!(
            "sudo install -m 644 {} /etc/apparmor.d/ && \
             sudo apparmor_parser -r /etc/apparmor.d/st2-tools-launch",
            profile.display()
        ),
    }
}
