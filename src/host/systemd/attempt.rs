//! One attempt to start a scope: undone wherever it is given up, even by dropping it half-way.

use std::{io, sync::Arc};

use tokio::{task::JoinHandle, time::timeout};
use zbus::OwnedObjectPath;

use super::manager::{Link, PATIENCE, Property, within};
use crate::{
    broker::name::UnitName,
    host::{HostError, pidfd::PidFd},
};

/// What the manager answers: the job that starts the scope.
type Answer = zbus::Result<OwnedObjectPath>;

/// A scope that is being started for a launcher.
#[derive(Debug)]
pub(super) struct Attempt {
    link: Arc<Link>,
    unit: UnitName,
    launcher: PidFd,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The manager has made nothing of it.
    Nothing,
    /// It was asked and has not answered.
    Asked(JoinHandle<Answer>),
    /// There is, or was, a scope.
    Begun,
}

impl Attempt {
    pub(super) fn new(link: &Arc<Link>, unit: &UnitName, launcher: &PidFd) -> io::Result<Self> {
        let launcher = launcher.try_clone()?;
        Ok(Self { link: Arc::clone(link), unit: unit.clone(), launcher, stage: Stage::Nothing })
    }

    /// Starts the scope with these properties, and waits until the launcher should be in it.
    pub(super) async fn start(
        &mut self,
        properties: Vec<Property<'static>>,
    ) -> Result<(), HostError> {
        let mut ends = self.link.wait(&self.unit);
        let (proxy, unit) = (self.link.proxy.clone(), self.unit.clone());
        // A task of its own: given up on, it still gets the answer that tells what to undo.
        let call = tokio::spawn(async move {
            proxy.start_transient_unit(unit.as_str(), "fail", &properties, &[]).await
        });
        self.stage = Stage::Asked(call);
        let job = self.answer().await?;
        let ended = timeout(PATIENCE, ends.result(&job)).await.ok().flatten();
        match ended.as_deref() {
            Some("done") => Ok(()),
            Some(result) => Err(HostError::Job { unit: self.unit.clone(), result: result.into() }),
            None => Err(HostError::Silent { what: "start a scope" }),
        }
    }

    async fn answer(&mut self) -> Result<OwnedObjectPath, HostError> {
        const WHAT: &str = "start a scope";
        let Stage::Asked(call) = &mut self.stage else {
            return Err(HostError::Silent { what: WHAT });
        };
        match timeout(PATIENCE, call).await {
            Ok(Ok(Ok(job))) => {
                self.stage = Stage::Begun;
                Ok(job)
            }
            Ok(Ok(Err(refusal))) => {
                self.stage = Stage::Nothing;
                Err(HostError::manager(WHAT, refusal))
            }
            // The task is not aborted by anybody, nor does it panic: it ends with the runtime only.
            Ok(Err(_)) | Err(_) => Err(HostError::Silent { what: WHAT }),
        }
    }

    /// The launcher is where it should be: nothing is to be undone.
    pub(super) fn keep(mut self) {
        self.stage = Stage::Nothing;
    }

    /// Kills the launcher and lets go of what was begun; returns when that is done, or left to a task
    /// that waits for the manager's late answer.
    pub(super) async fn undo(mut self) {
        let _ = self.launcher.kill();
        match std::mem::replace(&mut self.stage, Stage::Nothing) {
            Stage::Nothing => {}
            Stage::Asked(call) => {
                drop(tokio::spawn(undo_late(Arc::clone(&self.link), self.unit.clone(), call)))
            }
            Stage::Begun => undo(&self.link, &self.unit).await,
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let (link, unit) = (Arc::clone(&self.link), self.unit.clone());
        match std::mem::replace(&mut self.stage, Stage::Nothing) {
            Stage::Nothing => return,
            Stage::Asked(call) => drop(tokio::spawn(undo_late(link, unit, call))),
            Stage::Begun => drop(tokio::spawn(async move { undo(&link, &unit).await })),
        }
        let _ = self.launcher.kill();
    }
}

/// Lets go of a scope whose launcher is dead. Failures say that there is nothing to let go of.
async fn undo(link: &Link, unit: &UnitName) {
    let _ = within("stop a scope", link.proxy.stop_unit(unit.as_str(), "replace")).await;
    let _ = within("let go of a scope", link.proxy.unref_unit(unit.as_str())).await;
}

/// Undoes what a manager did after it was given up on, if it ever does it.
async fn undo_late(link: Arc<Link>, unit: UnitName, call: JoinHandle<Answer>) {
    if let Ok(Ok(_)) = call.await {
        undo(&link, &unit).await;
    }
}
