//! Announcements: properties that changed, sessions that opened, closed or are forgotten.
//!
//! Nothing of a session is announced before its `Open` was answered: a tool that ends at once must not be reported
//! closed to a caller that does not know it yet.

use std::{
    collections::{HashMap, HashSet},
    mem,
};

use tokio::sync::{mpsc, watch};
use zbus::{fdo, message::Header, names::InterfaceName, object_server::SignalEmitter};

use super::{
    ROOT, dict,
    guard::Guarded,
    manager::ManagerSignals,
    properties,
    session::{INTERFACE, Session, SessionSignals},
    session_path,
};
use crate::{
    broker::name::SessionId,
    engine::{Notice, Notices, State},
};

/// One call of a method: who made it, and its serial.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Call(Option<String>, u32);

impl Call {
    /// Tells a call by its header.
    #[must_use]
    pub fn of(header: &Header<'_>) -> Self {
        let sender = header.sender().map(|sender| sender.as_str().to_owned());
        Self(sender, header.primary().serial_num().get())
    }
}

/// What the publisher hears.
#[derive(Debug)]
enum Heard {
    Served(SessionId, watch::Receiver<State>, Call),
    Answered(Call),
}

/// How the object side tells the publisher what it has done.
#[derive(Debug, Clone)]
pub struct Publisher(mpsc::Sender<Heard>);

/// What the object side may have told and the publisher not heard yet; a call waits beyond that, and the publisher for
/// nothing but the bus.
const QUEUE: usize = 64;

impl Publisher {
    /// A session's object is on the bus; this `Open` is about to be answered with it.
    pub async fn served(&self, id: &SessionId, state: watch::Receiver<State>, open: Call) {
        let _ = self.0.send(Heard::Served(id.clone(), state, open)).await;
    }

    /// A call, an `Open` or another, was answered.
    pub async fn answered(&self, call: Call) {
        let _ = self.0.send(Heard::Answered(call)).await;
    }
}

/// What is known of a session's announcements.
struct Known {
    state: watch::Receiver<State>,
    shown: State,
}

struct Announcer {
    bus: zbus::Connection,
    known: HashMap<SessionId, Known>,
    unanswered: HashMap<Call, SessionId>,
    answered: HashSet<SessionId>,
    /// What waits for an answer to be sent, each notice once.
    held: HashMap<SessionId, Vec<Notice>>,
}

/// Starts announcing; ends when the engine has nothing more to tell.
#[must_use]
pub fn publish(bus: &zbus::Connection, mut notices: Notices) -> Publisher {
    let (sender, mut heard) = mpsc::channel(QUEUE);
    let bus = bus.clone();
    tokio::spawn(async move {
        let mut announcer = Announcer::new(bus);
        loop {
            tokio::select! {
                biased;
                Some(heard) = heard.recv() => announcer.hear(heard).await,
                notice = notices.next() => match notice {
                    Some(notice) => announcer.take(notice).await,
                    None => break,
                },
            }
        }
    });
    Publisher(sender)
}

impl Announcer {
    fn new(bus: zbus::Connection) -> Self {
        Self {
            bus,
            known: HashMap::new(),
            unanswered: HashMap::new(),
            answered: HashSet::new(),
            held: HashMap::new(),
        }
    }

    async fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Served(id, state, open) => {
                let shown = state.borrow().clone();
                // A session that an open takes can be forgotten before its object was there to be removed.
                if state.has_changed().is_err() {
                    self.announce(Notice::Retired(id)).await;
                    return;
                }
                self.unanswered.insert(open, id.clone());
                self.known.entry(id).or_insert(Known { state, shown });
            }
            Heard::Answered(call) => {
                let Some(id) = self.unanswered.remove(&call) else { return };
                // Of several opens that a session answers, each is answered before anything is said of it.
                if self.unanswered.values().any(|unanswered| *unanswered == id)
                    || !self.answered.insert(id.clone())
                {
                    return;
                }
                for notice in self.held.remove(&id).unwrap_or_default() {
                    self.announce(notice).await;
                }
            }
        }
    }

    async fn take(&mut self, notice: Notice) {
        // What is forgotten before it was answered for will not be answered for.
        let retired = matches!(notice, Notice::Retired(_));
        if retired || self.answered.contains(notice.session()) {
            self.announce(notice).await;
            return;
        }
        let held = self.held.entry(notice.session().clone()).or_default();
        if !held.contains(&notice) {
            held.push(notice);
        }
    }

    async fn announce(&mut self, notice: Notice) {
        let announced = match &notice {
            Notice::Opened(id) => self.opened(id).await,
            Notice::Changed(id) => self.changed(id).await,
            Notice::Closed(id) => self.closed(id).await,
            Notice::Retired(id) => self.retired(id).await,
        };
        if let Err(error) = announced {
            tracing::debug!(%error, ?notice, "cannot announce");
        }
    }

    async fn opened(&self, id: &SessionId) -> zbus::Result<()> {
        let Some(known) = self.known.get(id) else { return Ok(()) };
        let facts = properties::constant(&known.state.borrow()).into_iter().collect();
        self.emitter(ROOT)?.session_opened(session_path(id), facts).await
    }

    async fn changed(&mut self, id: &SessionId) -> zbus::Result<()> {
        let Some(known) = self.known.get_mut(id) else { return Ok(()) };
        let now = known.state.borrow_and_update().clone();
        let before = mem::replace(&mut known.shown, now);
        let changes = properties::changes(&before, &known.shown);
        if changes.is_empty() {
            return Ok(());
        }
        let interface = InterfaceName::from_static_str_unchecked(INTERFACE);
        let emitter = self.emitter(session_path(id))?;
        let changes = changes.into_iter().collect();
        fdo::Properties::properties_changed(&emitter, interface, changes, (&[]).into()).await
    }

    async fn closed(&mut self, id: &SessionId) -> zbus::Result<()> {
        self.changed(id).await?;
        let Some(known) = self.known.get(id) else { return Ok(()) };
        let outcome = dict::outcome(known.shown.view.outcome.as_ref());
        self.emitter(session_path(id))?.closed(outcome.clone()).await?;
        self.emitter(ROOT)?.session_closed(session_path(id), outcome).await
    }

    async fn retired(&mut self, id: &SessionId) -> zbus::Result<()> {
        self.known.remove(id);
        self.answered.remove(id);
        self.held.remove(id);
        self.unanswered.retain(|_, unanswered| unanswered != id);
        self.bus.object_server().remove::<Guarded<Session>, _>(session_path(id)).await?;
        Ok(())
    }

    fn emitter(
        &self,
        path: impl TryInto<zbus::ObjectPath<'static>, Error: Into<zbus::Error>>,
    ) -> zbus::Result<SignalEmitter<'static>> {
        SignalEmitter::new(&self.bus, path)
    }
}
