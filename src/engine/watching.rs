//! What is watched of a running session: its leader's end, and its terminal: streams, holds, size, title.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::{core::Report, ending, run::Live};
use crate::{
    broker::{name::SessionId, session::Event},
    host::{Place, child::Exit, spawn::Launcher},
    terminal::Terminal,
};

/// Waits for the leader's end, finds out who ended it, and tells.
pub(super) fn leader<P: Place>(
    id: SessionId,
    live: Arc<Live<P>>,
    mut launcher: Launcher,
    exit: watch::Sender<Option<Exit>>,
    reports: mpsc::Sender<Report<P>>,
) {
    tokio::spawn(async move {
        let ended = launcher.exited().await;
        let ending = ended.ending.clone();
        exit.send_replace(Some(ended));
        let reason = ending::reason(&live).await;
        drop(live);
        let _ = reports.send(Report::Event(id, Event::LeaderExited { ending, reason })).await;
    });
}

/// Tells how many streams are attached, and the terminal's size and title, each time that they change.
pub(super) fn terminal<P: Place>(
    id: SessionId,
    terminal: &Terminal,
    reports: mpsc::Sender<Report<P>>,
) {
    let (mut attached, mut appearance) = (terminal.attached(), terminal.appearance());
    tokio::spawn(async move {
        loop {
            let report = tokio::select! {
                changed = attached.changed() => changed
                    .map(|()| Report::Attached(id.clone(), *attached.borrow_and_update())),
                changed = appearance.changed() => changed
                    .map(|()| Report::Appeared(id.clone(), appearance.borrow_and_update().clone())),
            };
            let Ok(report) = report else { break };
            if reports.send(report).await.is_err() {
                break;
            }
        }
    });
}

/// Tells when a direct holder takes the terminal, and when it is gone.
pub(super) fn holds<P: Place>(
    id: SessionId,
    terminal: &Terminal,
    reports: mpsc::Sender<Report<P>>,
) {
    let mut holds = terminal.holds();
    tokio::spawn(async move {
        while holds.changed().await.is_ok() {
            let held = holds.borrow_and_update().is_held();
            if reports.send(Report::Held(id.clone(), held)).await.is_err() {
                break;
            }
        }
    });
}
