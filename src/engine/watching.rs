//! What is watched of a running session: its leader's end, and its terminal: streams, holds, size, title.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use super::{core::Report, ending, run::Live};
use crate::{
    broker::{name::SessionId, session::Event},
    host::{Place, child::Exit, spawn::Launcher},
    terminal::{Appearance, Terminal},
};

/// Shortest time between two titles that are told: a tool can set thousands a second.
const TITLE_PAUSE: Duration = Duration::from_millis(100);

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

/// Tells how many streams are attached, and the terminal's size and title, each time that they change; but of titles
/// that follow each other more closely than [`TITLE_PAUSE`] only the last.
pub(super) fn terminal<P: Place>(
    id: SessionId,
    terminal: &Terminal,
    reports: mpsc::Sender<Report<P>>,
) {
    let (mut attached, mut appearance) = (terminal.attached(), terminal.appearance());
    let mut titles = Titles::new(&appearance.borrow_and_update());
    tokio::spawn(async move {
        loop {
            let due = titles.due(&appearance.borrow(), Instant::now());
            let report = tokio::select! {
                changed = attached.changed() => changed
                    .map(|()| Report::Attached(id.clone(), *attached.borrow_and_update())),
                changed = appearance.changed() => match changed {
                    Ok(()) => {
                        appearance.mark_unchanged();
                        continue;
                    }
                    Err(gone) => Err(gone),
                },
                () = ending::until(due) => {
                    Ok(Report::Appeared(id.clone(), titles.tell(&appearance.borrow(), Instant::now())))
                }
            };
            let Ok(report) = report else { break };
            if reports.send(report).await.is_err() {
                break;
            }
        }
    });
}

/// What was told of a terminal's appearance last, and when a title may be again.
struct Titles {
    told: Appearance,
    from: Instant,
}

impl Titles {
    /// Nothing but this size is known.
    fn new(first: &Appearance) -> Self {
        let told = Appearance { size: first.size, title: String::new() };
        Self { told, from: Instant::now() }
    }

    /// When this is to be told: a size at once.
    fn due(&self, seen: &Appearance, now: Instant) -> Option<Instant> {
        if seen.size != self.told.size {
            return Some(now);
        }
        (seen.title != self.told.title).then_some(self.from)
    }

    /// What is to be told of this now.
    fn tell(&mut self, seen: &Appearance, now: Instant) -> Appearance {
        self.told.size = seen.size;
        if seen.title != self.told.title && now >= self.from {
            self.told.title.clone_from(&seen.title);
            self.from = now + TITLE_PAUSE;
        }
        self.told.clone()
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::pty::Size;

    fn appearance(columns: u16, title: &str) -> Appearance {
        Appearance { size: Size::new(columns, 24), title: title.to_owned() }
    }

    #[test]
    fn a_size_is_told_at_once_and_a_title_after_a_pause() {
        let mut titles = Titles::new(&appearance(80, "first"));
        let began = titles.from;
        assert_eq!(titles.due(&appearance(80, ""), began), None);
        let first = appearance(80, "first");
        assert_eq!(titles.due(&first, began), Some(began), "set before it was watched");
        assert_eq!(titles.tell(&first, began), first);
        assert_eq!(titles.due(&first, began), None);
        assert_eq!(titles.due(&appearance(80, "second"), began), Some(began + TITLE_PAUSE));
        assert_eq!(titles.due(&appearance(90, "second"), began), Some(began));
        assert_eq!(titles.tell(&appearance(90, "second"), began), appearance(90, "first"));
        let third = appearance(90, "third");
        assert_eq!(titles.tell(&third, began + TITLE_PAUSE), third);
    }
}
