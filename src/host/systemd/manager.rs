//! The user's service manager on the bus (org.freedesktop.systemd1(5)): the few calls that are made,
//! each bounded in time, and the ends of its jobs.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt, future::try_join_all};
use serde::Serialize;
use tokio::{sync::mpsc, task::AbortHandle, time::timeout};
use zbus::{
    Connection, DynamicType, Message, OwnedObjectPath, OwnedVariant, Variant, fdo,
    proxy::{CacheProperties, Proxy},
};

use crate::{broker::name::UnitName, host::HostError};

/// How long the manager may take for one answer, and for one job: milliseconds on an idle machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Ends of jobs that may wait for one who waits for one: a unit has one job at a time.
const QUEUE: usize = 16;

/// The interface of every unit.
pub(super) const UNIT: &str = "org.freedesktop.systemd1.Unit";
/// The interface of scopes.
pub(super) const SCOPE: &str = "org.freedesktop.systemd1.Scope";
/// The interface of services.
pub(super) const SERVICE: &str = "org.freedesktop.systemd1.Service";
/// The interface of jobs.
pub(super) const JOB: &str = "org.freedesktop.systemd1.Job";

/// One property of a unit to be: its name and value.
pub(super) type Property<'a> = (&'a str, Variant<'a>);

/// One row of `ListUnitsByPatterns`: name, description, load, active and sub state, followed unit,
/// unit path, job id, type and path.
pub(super) type Row =
    (String, String, String, String, String, String, OwnedObjectPath, u32, String, OwnedObjectPath);

#[zbus::proxy(
    interface = "org.freedesktop.systemd1.Manager",
    default_service = "org.freedesktop.systemd1",
    default_path = "/org/freedesktop/systemd1"
)]
pub(super) trait Manager {
    fn start_transient_unit(
        &self,
        name: &str,
        mode: &str,
        properties: &[Property<'_>],
        aux: &[(&str, Vec<Property<'_>>)],
    ) -> zbus::Result<OwnedObjectPath>;
    fn stop_unit(&self, name: &str, mode: &str) -> zbus::Result<OwnedObjectPath>;
    fn kill_unit(&self, name: &str, whom: &str, signal: i32) -> zbus::Result<()>;
    fn freeze_unit(&self, name: &str) -> zbus::Result<()>;
    fn thaw_unit(&self, name: &str) -> zbus::Result<()>;
    #[zbus(no_reply)]
    fn unref_unit(&self, name: &str) -> zbus::Result<()>;
    fn reset_failed_unit(&self, name: &str) -> zbus::Result<()>;
    #[zbus(name = "GetUnitByPID")]
    fn get_unit_by_pid(&self, pid: u32) -> zbus::Result<OwnedObjectPath>;
    fn list_units_by_patterns(&self, states: &[&str], names: &[&str]) -> zbus::Result<Vec<Row>>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn version(&self) -> zbus::Result<String>;
    #[zbus(property(emits_changed_signal = "false"))]
    fn control_group(&self) -> zbus::Result<String>;
    #[zbus(signal)]
    fn job_removed(
        &self,
        id: u32,
        job: OwnedObjectPath,
        unit: String,
        result: String,
    ) -> zbus::Result<()>;
}

/// A connection to the service manager.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) proxy: ManagerProxy<'static>,
    ends: Arc<Ends>,
    reader: AbortHandle,
    /// Properties that this manager does not have.
    unknown: Mutex<HashSet<&'static str>>,
}

/// Who waits for the end of a job of which unit.
#[derive(Debug, Default)]
struct Ends {
    waiting: Mutex<HashMap<String, Vec<mpsc::Sender<End>>>>,
}

/// The end of a job: which, and its result (`done`, `failed`, `canceled`, `timeout`, …).
type End = (OwnedObjectPath, String);

/// A wait for the end of a job of one unit, begun before the job is asked for: its end may be told
/// before its beginning is.
#[derive(Debug)]
pub(super) struct Wait {
    unit: String,
    ends: Arc<Ends>,
    arriving: mpsc::Receiver<End>,
}

/// The properties of one interface of one object.
#[derive(Debug, Default)]
pub(super) struct Properties(HashMap<String, OwnedVariant>);

impl Link {
    /// Finds the manager on a bus and begins to listen to it.
    pub(super) async fn new(connection: &Connection) -> Result<Self, HostError> {
        let proxy = ManagerProxy::builder(connection).cache_properties(CacheProperties::No).build();
        let proxy = within("be found", proxy).await?;
        within("answer", proxy.version()).await?;
        let mut removed = within("tell of its jobs", proxy.receive_job_removed()).await?;
        let ends = Arc::<Ends>::default();
        let told = Arc::clone(&ends);
        let reader = tokio::spawn(async move {
            while let Some(signal) = removed.next().await {
                match signal.args() {
                    Ok(end) => told.tell(&end.unit, (end.job.clone(), end.result.clone())),
                    Err(error) => tracing::warn!(%error, "the end of a job is malformed"),
                }
            }
        });
        Ok(Self { proxy, ends, reader: reader.abort_handle(), unknown: Mutex::default() })
    }

    /// Begins to wait for the end of a job of this unit.
    pub(super) fn wait(&self, unit: &UnitName) -> Wait {
        let (sender, arriving) = mpsc::channel(QUEUE);
        let unit = unit.as_str().to_owned();
        self.ends.lock().entry(unit.clone()).or_default().push(sender);
        Wait { unit, ends: Arc::clone(&self.ends), arriving }
    }

    /// The properties of one interface of a unit. A unit that is not loaded has them too.
    pub(super) async fn of_unit(
        &self,
        unit: &UnitName,
        interface: &str,
    ) -> Result<Properties, HostError> {
        self.of_object(&unit_path(unit), interface).await
    }

    /// Some properties of a unit, by interface and name, asked for all at once. Told in this order, each as it is at
    /// that time. For a few, this takes the manager and the bus far less than all of a unit's hundred and more. One
    /// that this manager does not have is asked for once.
    pub(super) async fn some_of_unit<const N: usize>(
        &self,
        unit: &UnitName,
        names: [(&str, &'static str); N],
    ) -> Result<Properties, HostError> {
        let path = unit_path(unit);
        let unknown = self.unknown().clone();
        let asked = names.into_iter().filter(|(_, name)| !unknown.contains(name));
        let asked = asked.map(|(interface, name)| self.property(&path, interface, name));
        let told = within("tell a state", try_join_all(asked)).await?;
        Ok(Properties(told.into_iter().flatten().collect()))
    }

    /// One property under its name; `None` where this manager has none of that name.
    async fn property(
        &self,
        path: &str,
        interface: &str,
        name: &'static str,
    ) -> zbus::Result<Option<(String, OwnedVariant)>> {
        match self.properties_call(path, "Get", &(interface, name)).await {
            Ok(answer) => Ok(Some((name.to_owned(), answer.body().deserialize()?))),
            Err(zbus::Error::FDO(error)) if matches!(*error, fdo::Error::UnknownProperty(_)) => {
                self.unknown().insert(name);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn unknown(&self) -> MutexGuard<'_, HashSet<&'static str>> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn properties_call<B: Serialize + DynamicType>(
        &self,
        path: &str,
        method: &str,
        body: &B,
    ) -> zbus::Result<Message> {
        let proxy: &Proxy<'_> = self.proxy.inner();
        let interface = Some("org.freedesktop.DBus.Properties");
        proxy
            .connection()
            .call_method(Some(proxy.destination()), path, interface, method, body)
            .await
    }

    /// The properties of one interface of an object of the manager's.
    pub(super) async fn of_object(
        &self,
        path: &str,
        interface: &str,
    ) -> Result<Properties, HostError> {
        let call = async {
            self.properties_call(path, "GetAll", &interface)
                .await?
                .body()
                .deserialize()
                .map(Properties)
        };
        within("tell a state", call).await
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Ends {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<mpsc::Sender<End>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, unit: &str, end: End) {
        for waiting in self.lock().get(unit).into_iter().flatten() {
            // Full, it holds more ends than the unit has jobs of ours: the wait has a deadline.
            let _ = waiting.try_send(end.clone());
        }
    }
}

impl Wait {
    /// Waits for the end of this job, and gives its result.
    pub(super) async fn result(&mut self, job: &OwnedObjectPath) -> Option<String> {
        while let Some((ended, result)) = self.arriving.recv().await {
            if ended == *job {
                return Some(result);
            }
        }
        None
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.arriving.close();
        let mut waiting = self.ends.lock();
        if let Some(senders) = waiting.get_mut(&self.unit) {
            senders.retain(|sender| !sender.is_closed());
            if senders.is_empty() {
                waiting.remove(&self.unit);
            }
        }
    }
}

impl Properties {
    /// A text; empty where it is not there.
    pub(super) fn text(&self, name: &str) -> String {
        self.get(name).unwrap_or_default()
    }

    /// A number; 0 where it is not there.
    pub(super) fn number(&self, name: &str) -> u64 {
        self.get(name).unwrap_or_default()
    }

    /// A value; `None` where it is not there or of another type.
    pub(super) fn get<T: TryFrom<OwnedVariant>>(&self, name: &str) -> Option<T> {
        self.0.get(name)?.try_clone().ok()?.try_into().ok()
    }
}

/// Bounds one call by [`PATIENCE`].
pub(super) async fn within<T>(
    what: &'static str,
    call: impl Future<Output = zbus::Result<T>>,
) -> Result<T, HostError> {
    match timeout(PATIENCE, call).await {
        Ok(answer) => answer.map_err(|source| HostError::manager(what, source)),
        Err(_) => Err(HostError::Silent { what }),
    }
}

/// The object path of a unit: what is not a letter or a digit, and a digit in front, is escaped
/// (`bus_path_encode` of sd-bus).
fn unit_path(unit: &UnitName) -> String {
    let mut path = "/org/freedesktop/systemd1/unit/".to_owned();
    for (at, byte) in unit.as_str().bytes().enumerate() {
        if byte.is_ascii_alphabetic() || (at > 0 && byte.is_ascii_digit()) {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("_{byte:02x}"));
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_the_path_that_the_manager_gives_it() {
        let path = unit_path(&UnitName::foreign("app-st2tools-git\\x2dadd-1a.scope"));
        let name = path.strip_prefix("/org/freedesktop/systemd1/unit/").unwrap();
        assert_eq!(name, "app_2dst2tools_2dgit_5cx2dadd_2d1a_2escope");
        assert!(unit_path(&UnitName::foreign("1.scope")).ends_with("/_31_2escope"));
    }

    #[tokio::test]
    async fn an_end_that_comes_early_is_not_missed_and_nothing_is_kept() {
        let ends = Arc::<Ends>::default();
        let (sender, arriving) = mpsc::channel(QUEUE);
        ends.lock().entry("a.scope".into()).or_default().push(sender);
        let mut wait = Wait { unit: "a.scope".into(), ends: Arc::clone(&ends), arriving };
        let job = |text: &str| OwnedObjectPath::try_from(text).unwrap();
        ends.tell("b.scope", (job("/job/2"), "failed".into()));
        ends.tell("a.scope", (job("/job/1"), "canceled".into()));
        ends.tell("a.scope", (job("/job/2"), "done".into()));
        assert_eq!(wait.result(&job("/job/2")).await.as_deref(), Some("done"));
        drop(wait);
        assert!(ends.lock().is_empty());
    }
}
