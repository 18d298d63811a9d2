//! What an earlier broker left behind.

use std::time::Duration;

use futures_util::future::join_all;

use super::{
    manager::{Link, PATIENCE, Row, SCOPE, within},
    slices::is_ours,
};
use crate::{
    broker::name::UnitName,
    host::{HostError, cgroup::Cgroup},
};

/// Names of the scopes of sessions.
const PATTERN: &str = "app-st2tools-*.scope";

/// How long a killed control group may take to become empty.
const KILLED: Duration = Duration::from_secs(1);

/// Stops every scope of ours, in whatever state, and waits until nothing runs in any of them.
pub(super) async fn sweep(link: &Link) -> Result<usize, HostError> {
    let rows = within("list scopes", link.proxy.list_units_by_patterns(&[], &[PATTERN])).await?;
    let swept = join_all(rows.iter().map(|row| sweep_one(link, row))).await;
    Ok(swept.into_iter().filter(|swept| *swept).count())
}

async fn sweep_one(link: &Link, row: &Row) -> bool {
    let unit = UnitName::foreign(row.0.as_str());
    let scope = match link.of_object(&row.6, SCOPE).await {
        Ok(scope) if is_ours(&scope.text("Slice")) => scope,
        Ok(_) => return false,
        // It ended while we looked.
        Err(error) => {
            tracing::debug!(%unit, %error, "cannot look at a left scope");
            return false;
        }
    };
    if let Err(error) = within("stop", link.proxy.stop_unit(unit.as_str(), "replace")).await {
        tracing::debug!(%unit, %error, "cannot stop a left scope");
    }
    if let Ok(group) = Cgroup::open(scope.text("ControlGroup").into()) {
        empty(&unit, &group).await;
    }
    let _ = within("forget", link.proxy.reset_failed_unit(unit.as_str())).await;
    true
}

/// Waits for the manager to end all of them, then no longer.
async fn empty(unit: &UnitName, group: &Cgroup) {
    let mut left = group.emptied(PATIENCE).await;
    if !matches!(left, Ok(0)) {
        let _ = group.kill();
        left = group.emptied(KILLED).await;
    }
    match left {
        Ok(0) => {}
        Ok(left) => tracing::warn!(%unit, left, "processes of a left scope do not end"),
        Err(error) => tracing::warn!(%unit, %error, "cannot see whether a left scope is empty"),
    }
}
