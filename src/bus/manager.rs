//! `org.st2.Tools.Manager1`: the way in.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use tokio::{sync::watch, task::spawn_blocking};
use zbus::{
    Connection as Bus, OwnedObjectPath, OwnedVariant, Variant, interface, message::Header,
    object_server::SignalEmitter,
};

use super::{
    Callers, Error, Publisher, VERSION,
    dict::Dict,
    filter::Filter,
    guard::{Answered, Guarded},
    open::request,
    options::Options,
    publisher::Call,
    rows,
    session::Session,
    session_path,
};
use crate::{
    broker::{lease::Connection, name::SessionId},
    engine::{self, Caller, EndWish, Opened},
    policy::{judge::Judge, request::Request, resolved::Resolved},
};

/// What every object of the bus reaches the rest by.
#[derive(Debug, Clone)]
pub struct Surface {
    /// The engine.
    pub engine: engine::Handle,
    /// Who calls.
    pub callers: Arc<Callers>,
    /// The policy.
    pub judge: Arc<Judge>,
    /// Announcements.
    pub publisher: Publisher,
    /// `systemd` or `portable`.
    pub backend: &'static str,
    /// The bus's own id.
    pub bus_id: String,
    /// Whether sessions may open: not before what an earlier broker left is swept.
    pub may_open: watch::Receiver<bool>,
}

/// The manager's object.
#[derive(Debug)]
pub struct Manager(Surface);

type Input = HashMap<String, OwnedVariant>;

impl Manager {
    /// Makes the manager, guarded.
    #[must_use]
    pub fn guarded(surface: Surface) -> Guarded<Self> {
        let callers = surface.callers.clone();
        Guarded::new(Self(surface), callers)
    }

    async fn resolve(&self, id: &SessionId, tool: String, ask: Request) -> Result<Resolved, Error> {
        let (judge, id) = (self.0.judge.clone(), id.clone());
        let judged = spawn_blocking(move || judge.resolve(&id, &tool, &ask)).await;
        Ok(judged
            .map_err(|error| Error::Failed(format!("cannot judge the request: {error}")))??)
    }

    /// Opens a session, whose opener may have left the bus before there was a session to end.
    async fn open_for(
        &self,
        opener: Connection,
        id: SessionId,
        resolved: Resolved,
    ) -> Result<Opened, Error> {
        let surface = &self.0;
        let opening = surface.engine.open(opener.clone(), id, resolved).await;
        let presence = async {
            if !surface.callers.is_present(&opener).await.unwrap_or(true) {
                surface.engine.vanished(opener).await;
            }
        };
        let (opened, ()) = tokio::join!(opening, presence);
        Ok(opened?)
    }

    /// Puts a session's object on the bus; gives its path and the answer of `Open`.
    async fn serve(
        &self,
        bus: &Bus,
        opened: Opened,
        call: &Header<'_>,
    ) -> Result<(OwnedObjectPath, Dict), Error> {
        let Surface { engine, callers, judge, publisher, .. } = &self.0;
        let Opened { state, channel, token, reused } = opened;
        let info = rows::info(&state.borrow(), token, reused);
        let id = state.borrow().view.facts.id.clone();
        let path = session_path(&id);
        let limits = judge.settings().limits;
        let session = Session::new(engine.clone(), callers.clone(), state.clone(), channel, limits);
        let served = bus.object_server().at(&path, Guarded::new(session, callers.clone())).await;
        publisher.served(&id, state, Call::of(call)).await;
        served.map_err(|error| Error::Failed(format!("cannot serve the session: {error}")))?;
        Ok((path, info))
    }
}

impl Answered for Manager {
    async fn answered(&self, call: &Header<'_>) {
        self.0.publisher.answered(Call::of(call)).await;
    }
}

#[interface(name = "org.st2.Tools.Manager1")]
impl Manager {
    /// Open a session of a tool; answers once the tool's execve(2) has succeeded.
    ///
    /// Options: argv as or argv_bytes aay (appended to the declared command), prompt s (of an agent that takes it as an
    /// argument: the last), workspace s (absolute path of a directory), cwd s (inside it), env a{ss}, io s ("pty", the
    /// default, or "pipe": no terminal; what the tool declares), stdin s (of pipes: "closed", the default, is
    /// /dev/null, or "open"), io_fallback b (pipes where no pty can be opened; their stdin is open by default), columns
    /// q and rows q (1 to 1000; 80 and 24), term s, lease s ("caller" or "token"), lease_ttl_ms t, grace_ms t,
    /// timeout_ms t and silence_timeout_ms t (life, and time without output; 0 is none), ring_bytes t (4096 to
    /// 4194304), memory_max t, tasks_max t, labels a{ss} (at most 16), bind_unit s (a unit that is active; the session
    /// ends when it stops), private b, reuse b (take the caller's own session of the same tool, argv but for a prompt,
    /// workspace, io (with stdin and io_fallback), "agent" label and kind of lease, if one runs or is being opened). A
    /// request only narrows what the tool declares.
    ///
    /// Info: id s, unit s, pid u, token s (claims the lease), reused b, io s, io_fallback b (only where pipes took the
    /// place of a pty: true), confinement a{sv}, columns q, rows q (both 0 without a terminal).
    #[zbus(out_args("session", "info"))]
    async fn open(
        &self,
        tool: String,
        options: Input,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Bus,
    ) -> Result<(OwnedObjectPath, Dict), Error> {
        let opener = self.0.callers.connection(&header)?;
        let mut may_open = self.0.may_open.clone();
        // A sender that is gone has said its last word.
        let _ = may_open.wait_for(|may| *may).await;
        let id = engine::draw_id();
        let resolved = self.resolve(&id, tool, request(Options::new(options))?).await?;
        let opened = self.open_for(opener, id, resolved).await?;
        self.serve(bus, opened, &header).await
    }

    /// List sessions, live and retained. Filter: owner s ("self"), phase s, tool s, label.NAME s. A row has path o
    /// and the session's properties under their own names.
    #[zbus(out_args("sessions"))]
    async fn list_sessions(
        &self,
        filter: Input,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<Vec<Dict>, Error> {
        let filter = Filter::read(Options::new(filter))?;
        let connection = self.0.callers.connection(&header)?;
        let sessions = if filter.own || filter.token.is_some() {
            self.0.engine.owned(Caller { connection, token: filter.token.clone() }).await
        } else {
            self.0.engine.sessions().await
        };
        Ok(sessions.iter().filter(|state| filter.admits(state)).map(rows::session).collect())
    }

    /// List the declared tools: name s, title s, command as, arguments s, io as, profile s, agent b, prompt s (how an
    /// agent takes one: "argument", "terminal", or "" for not at all), source s (the file), error s (why it is
    /// disabled).
    #[zbus(out_args("tools"))]
    async fn list_tools(&self) -> Result<Vec<Dict>, Error> {
        let judge = self.0.judge.clone();
        let tools = spawn_blocking(move || judge.tools()).await;
        let tools = tools.map_err(|error| Error::Failed(format!("cannot list tools: {error}")))?;
        Ok(tools.into_iter().map(rows::tool).collect())
    }

    /// Judge a request as Open would, and open nothing: title s, source s, profiles as with profile_sources as,
    /// settings s and command_source s (the files that decide), argv as, program s, cwd s, workspace s, environment as
    /// (names), read as, write as, execute as, devices as, protect as, network s, sockets as, tier s, landlock_abi u,
    /// gaps as, io s, stdin s, io_fallback b, and the limits in force; or refusal s (the error's name) and message s.
    #[zbus(out_args("explanation"))]
    async fn explain(&self, tool: String, options: Input) -> Result<Dict, Error> {
        let (judge, ask) = (self.0.judge.clone(), request(Options::new(options))?);
        let explained = spawn_blocking(move || judge.explain(&tool, &ask)).await;
        let explained = explained
            .map_err(|error| Error::Failed(format!("cannot judge the request: {error}")))?;
        Ok(rows::explanation(explained))
    }

    /// Become the owner of a lease: its old token is dead, its old owner fenced, and shares with others are no longer;
    /// what any other controls its sessions by, stream or hold, ends, and of private ones what it observes them by.
    /// Gives the new token and the sessions that came with it, closed ones that are retained included.
    #[zbus(out_args("token", "sessions"))]
    async fn claim_lease(
        &self,
        token: String,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(String, Vec<OwnedObjectPath>), Error> {
        let caller = self.0.callers.connection(&header)?;
        let claimed = self.0.engine.claim(token, caller).await?;
        Ok((claimed.token, claimed.sessions.iter().map(session_path).collect()))
    }

    /// Renew a token lease; gives when it runs out, µs since the epoch. Until it leaves the bus, the caller may
    /// control the lease's sessions.
    #[zbus(out_args("expires_usec"))]
    async fn renew_lease(
        &self,
        token: String,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<u64, Error> {
        let caller = self.0.callers.connection(&header)?;
        Ok(self.0.engine.renew(token, caller).await?)
    }

    /// Close the caller's own sessions that match, all at once; answers once they have ended, with how many they
    /// were. Filter: as ListSessions, and token s (a lease's token: those sessions are the caller's for this call).
    #[zbus(out_args("closed"))]
    async fn close_sessions(
        &self,
        filter: Input,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<u32, Error> {
        let filter = Filter::read(Options::new(filter))?;
        let connection = self.0.callers.connection(&header)?;
        let caller = Caller { connection, token: filter.token.clone() };
        let mut ending = Vec::new();
        for state in self.0.engine.owned(caller.clone()).await {
            if state.view.outcome.is_none() && filter.admits(&state) {
                let id = &state.view.facts.id;
                // One that is forgotten meanwhile has ended too.
                if let Ok(state) = self.0.engine.end(id, caller.clone(), EndWish::Close(None)).await
                {
                    ending.push(state);
                }
            }
        }
        let closed = u32::try_from(ending.len()).unwrap_or(u32::MAX);
        for mut state in ending {
            let _ = state.wait_for(|state| state.view.outcome.is_some()).await;
        }
        Ok(closed)
    }

    /// The log of what happened to sessions: the events after one (0: from the oldest kept), at most so many and never
    /// more than 1024; next is what to go on after. A row has seq t (each event's is one more than the last; a gap is of
    /// events that are dropped, or of others' private sessions), at_usec t, kind s (session-starting, -started, -reused,
    /// -busy, -idle, -exited, -failed, -closed), session s, tool s, labels a{ss}; of an end and a
    /// failure also how it ended: ended s (the kind of an outcome), code i, signal s, core_dumped b, reason s, and of a
    /// failure step s, errno i, message s. A number that is yet to come is BadCursor.
    #[zbus(out_args("events", "next"))]
    async fn list_events(
        &self,
        after: u64,
        limit: u32,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(Vec<Dict>, u64), Error> {
        let caller = self.0.callers.connection(&header)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let page = self.0.engine.events(after, limit, caller).await?;
        Ok((page.rows.into_iter().map(rows::event).collect(), page.next))
    }

    /// A session opened: its constant properties. It is emitted after the answer to Open.
    #[zbus(signal)]
    pub async fn session_opened(
        emitter: &SignalEmitter<'_>,
        session: OwnedObjectPath,
        properties: BTreeMap<&str, Variant<'_>>,
    ) -> zbus::Result<()>;

    /// A session ended.
    #[zbus(signal)]
    pub async fn session_closed(
        emitter: &SignalEmitter<'_>,
        session: OwnedObjectPath,
        outcome: BTreeMap<&str, Variant<'_>>,
    ) -> zbus::Result<()>;

    /// Numbers this contract: it only grows.
    #[zbus(property(emits_changed_signal = "const"))]
    fn version(&self) -> u32 {
        VERSION
    }

    /// The broker's own version.
    #[zbus(property(emits_changed_signal = "const"))]
    fn broker_version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// "systemd" or "portable".
    #[zbus(property(emits_changed_signal = "const"))]
    fn backend(&self) -> &'static str {
        self.0.backend
    }

    /// Landlock's ABI; 0 where there is none.
    #[zbus(property(emits_changed_signal = "const"))]
    fn landlock_abi(&self) -> u32 {
        self.0.judge.landlock_abi()
    }

    /// The best tier of confinement here, or "none": every Open is refused then.
    #[zbus(property(emits_changed_signal = "const"))]
    fn tier(&self) -> &'static str {
        self.0.judge.tier().map_or("none", |tier| tier.as_str())
    }

    /// What this broker can do, by name.
    #[zbus(property(emits_changed_signal = "const"))]
    fn features(&self) -> Vec<&'static str> {
        vec![
            "attach-direct",
            "attach-pty",
            "attach-raw",
            "bind-unit",
            "events",
            "keys",
            "pause",
            "pipe",
            "private",
            "reuse",
            "screen",
            "share",
            "token-lease",
        ]
    }

    /// What is bounded: names and values as in the policy's documentation. Times in milliseconds, sizes in bytes.
    #[zbus(property(emits_changed_signal = "const"))]
    fn limits(&self) -> BTreeMap<&'static str, u64> {
        self.0.judge.settings().limits.to_map()
    }

    /// The id of the bus that owners are on.
    #[zbus(property(emits_changed_signal = "const"))]
    fn bus_id(&self) -> String {
        self.0.bus_id.clone()
    }
}
