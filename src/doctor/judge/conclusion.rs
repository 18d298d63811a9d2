//! The one sentence: which tier sessions get, or why none.

use super::namespaces;
use crate::{
    doctor::facts::{Broker, Facts, Policy},
    launch::report::Tier,
    policy::resolve,
};

/// The tier that sessions get, and the sentence.
pub(super) fn conclude(facts: &Facts) -> (Option<String>, String) {
    match tier(facts) {
        Ok(tier) => {
            let why = why_not_better(facts, &tier).map(|why| format!(": {why}"));
            let summary = format!("sessions here get the tier {tier}{}", why.unwrap_or_default());
            (Some(tier), summary)
        }
        Err(obstacle) => (None, format!("no tool can be opened here: {obstacle}")),
    }
}

/// What a broker that was started from here would use.
pub(super) fn own_tier(facts: &Facts) -> Result<Tier, String> {
    let policy = usable(facts)?;
    facts.launcher.as_ref().map_err(String::clone)?;
    resolve::tier(&facts.surroundings, &policy.settings).map_err(|missing| missing.to_string())
}

/// A broker that runs has found its launcher and its tier; the policy it reads anew.
fn tier(facts: &Facts) -> Result<String, String> {
    match facts.bus.as_ref().map(|bus| &bus.broker) {
        Ok(Broker::Running { tier, .. }) if tier == "none" => Err(match own_tier(facts) {
            Ok(tier) => {
                format!("the broker that runs has no tier, one started now has {}", tier.as_str())
            }
            Err(obstacle) => obstacle,
        }),
        Ok(Broker::Running { tier, .. }) => usable(facts).map(|_| tier.clone()),
        _ => own_tier(facts).map(|tier| tier.as_str().to_owned()),
    }
}

/// The policy, where it lets anything be opened.
fn usable(facts: &Facts) -> Result<&Policy, String> {
    let policy = facts.policy.as_ref().map_err(String::clone)?;
    match &policy.settings.fault {
        Some(fault) => Err(fault.to_string()),
        None if policy.tools == 0 => Err("the policy declares no tool".to_owned()),
        None => Ok(policy),
    }
}

fn why_not_better(facts: &Facts, tier: &str) -> Option<String> {
    if tier == Tier::Mounts.as_str() {
        return None;
    }
    if facts.no_mounts.is_some() {
        return Some(namespaces::refusal(facts).reason);
    }
    let (name, value) = facts.variables.iter().find(|(name, _)| super::policy::lowers(name))?;
    Some(format!("{name} is {value}"))
}
