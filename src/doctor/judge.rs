//! Makes a diagnosis of facts. Pure: the same facts, the same diagnosis.

use super::{Check, Diagnosis, facts::Facts};

mod conclusion;
mod kernel;
mod namespaces;
mod policy;
mod services;

/// Judges what was found.
#[must_use]
pub fn judge(facts: &Facts) -> Diagnosis {
    let (tier, summary) = conclusion::conclude(facts);
    let checks: Vec<Check> = [
        kernel::checks(facts),
        services::checks(facts),
        policy::checks(facts),
        policy::sockets(facts, tier.as_deref()),
    ]
    .concat();
    Diagnosis { checks, tier, summary }
}

#[cfg(test)]
mod tests;
