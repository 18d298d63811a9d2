//! The broker's own unit.

use zbus::Variant;

use super::manager::{Link, PATIENCE, SERVICE, UNIT, within};
use crate::{broker::name::UnitName, host::HostError};

/// Finds the unit that ends when the broker does, or becomes one.
///
/// That is a service whose main process we are. Any other unit may outlive us: a terminal's scope
/// holds the shell that started us, too.
pub(super) async fn find_or_become(link: &Link) -> Result<UnitName, HostError> {
    let pid = std::process::id();
    let scope = UnitName::foreign(format!("st2-toolsd-{pid}.scope"));
    // A process of no unit of this manager's is refused, or found in the root slice.
    if let Ok(path) = within("find our unit", link.proxy.get_unit_by_pid(pid)).await {
        let unit = UnitName::foreign(link.of_object(&path, UNIT).await?.text("Id"));
        let is_ours = unit == scope || {
            let service = link.of_object(&path, SERVICE).await;
            service.is_ok_and(|service| service.get::<u32>("MainPID") == Some(pid))
        };
        if is_ours {
            return Ok(unit);
        }
    }
    become_scope(link, pid, &scope).await?;
    Ok(scope)
}

async fn become_scope(link: &Link, pid: u32, scope: &UnitName) -> Result<(), HostError> {
    let properties = [
        ("Description", Variant::from("st2-tools broker")),
        ("CollectMode", "inactive-or-failed".into()),
        ("PIDs", vec![pid].into()),
    ];
    let mut ends = link.wait(scope);
    let start = link.proxy.start_transient_unit(scope.as_str(), "fail", &properties, &[]);
    let job = within("give us a scope", start).await?;
    let result = tokio::time::timeout(PATIENCE, ends.result(&job)).await.ok().flatten();
    match result.as_deref() {
        Some("done") => Ok(()),
        Some(result) => Err(HostError::Job { unit: scope.clone(), result: result.into() }),
        None => Err(HostError::Silent { what: "give us a scope" }),
    }
}
