//! One session as the engine runs it: what the core does not know because it is not state but the world.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    command::{OpenError, Opened},
    wiring::Line,
};
use crate::{
    broker::view::View,
    host::{Place, child::Exit, pidfd::PidFd, pty::Size, tmpdir::TmpDir},
    launch::spec::Io,
    policy::resolved::Resolved,
    terminal::Channel,
};

/// All that can be seen of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// What the core knows.
    pub view: View,
    /// How input and output are carried; once it runs, for good.
    pub io: Io,
    /// Whether that is by pipes because there was no pty.
    pub fell_back: bool,
    /// Columns and rows in force; none without a terminal.
    pub size: Size,
    /// The title that the tool has set.
    pub title: String,
    /// Whether its processes are frozen.
    pub paused: bool,
    /// Streams attached to it, a direct holder included.
    pub attached: u32,
    /// Whether a direct holder has the terminal, and sets its size without telling.
    pub held: bool,
    /// Whether the tool writes, or did a moment ago.
    pub busy: bool,
}

/// A session from its `Open` to its last trace.
#[derive(Debug)]
pub(super) struct Run<P> {
    pub state: watch::Sender<State>,
    /// Until it is its turn.
    pub resolved: Option<Box<Resolved>>,
    /// Who waits until it opened or failed: the one that asked for it, then those that reuse it.
    pub replies: Vec<oneshot::Sender<Result<Opened, OpenError>>>,
    /// Whether nothing can be seen of its output: it is paused, or held.
    pub suspended: watch::Sender<bool>,
    /// Stops its opening.
    pub abort: CancellationToken,
    /// From its start until its scope is empty.
    pub live: Option<Arc<Live<P>>>,
    /// From its start on; the output stays readable after the end.
    pub channel: Option<Channel>,
}

impl State {
    /// That of a session that is to be opened.
    pub(super) fn asked(view: View, resolved: &Resolved) -> Self {
        Self {
            view,
            io: resolved.spec.io,
            fell_back: false,
            size: Size::new(resolved.columns, resolved.rows),
            title: String::new(),
            paused: false,
            attached: 0,
            held: false,
            busy: true,
        }
    }
}

impl<P> Run<P> {
    /// A session that waits for its turn.
    pub fn new(
        state: State,
        resolved: Box<Resolved>,
        reply: oneshot::Sender<Result<Opened, OpenError>>,
    ) -> Self {
        Self {
            state: watch::Sender::new(state),
            resolved: Some(resolved),
            replies: vec![reply],
            suspended: watch::Sender::new(false),
            abort: CancellationToken::default(),
            live: None,
            channel: None,
        }
    }

    /// Its tool runs, and this is how it is carried.
    pub fn arrived(&mut self, channel: Channel, io: Io, fell_back: bool) {
        self.state.send_modify(|state| {
            (state.io, state.fell_back, state.size) = (io, fell_back, channel.size());
        });
        self.channel = Some(channel);
    }

    /// The size in force: a direct holder sets it in the kernel, and no event tells.
    pub fn size(&self) -> Size {
        self.channel.as_ref().map_or_else(|| self.state.borrow().size, Channel::size)
    }

    /// The title that the tool has set, which is told some time later; `None` without a terminal.
    pub fn title(&self) -> Option<String> {
        let terminal = self.channel.as_ref()?.terminal()?;
        Some(terminal.appearance().borrow().title.clone())
    }
}

/// What there is of a session while it runs.
#[derive(Debug)]
pub(super) struct Live<P> {
    pub place: P,
    pub leader: Option<PidFd>,
    pub line: Line,
    /// Until it is removed.
    pub tmpdir: Mutex<Option<TmpDir>>,
    pub exit: watch::Receiver<Option<Exit>>,
    /// When KILL follows, once its end was begun; the earliest that was asked for.
    pub kill_at: watch::Sender<Option<Instant>>,
    /// Whether the end was asked for by us.
    asked: AtomicBool,
}

impl<P: Place> Live<P> {
    pub fn new(
        place: P,
        leader: Option<PidFd>,
        line: Line,
        tmpdir: TmpDir,
        exit: watch::Receiver<Option<Exit>>,
    ) -> Self {
        let (kill_at, _) = watch::channel(None);
        let asked = AtomicBool::new(false);
        let tmpdir = Mutex::new(Some(tmpdir));
        Self { place, leader, line, tmpdir, exit, kill_at, asked }
    }

    /// Notes when KILL follows; gives whether this begins the end.
    pub fn end_within(&self, within: Duration) -> bool {
        let at = Instant::now() + within;
        let mut begins = false;
        self.kill_at.send_if_modified(|kill_at| {
            begins = kill_at.is_none();
            let sooner = kill_at.is_none_or(|earlier| at < earlier);
            if sooner {
                *kill_at = Some(at);
            }
            sooner
        });
        begins
    }

    /// Takes what is left to remove.
    pub fn take_tmpdir(&self) -> Option<TmpDir> {
        self.tmpdir.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Notes that the end is ours to explain.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    pub fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}
