//! What callers ask of sessions that are there, judged by the core and carried out.

use std::sync::Arc;

use tokio::sync::{oneshot, watch};

use super::{
    command::{Act, Caller, Claimed, ControlError, EndWish},
    core::{Engine, Report, answer, secret},
    run::{Live, Run, State},
    wiring::Line,
};
use crate::{
    broker::{
        access::{Denied, Need},
        lease::{Connection, Token},
        name::SessionId,
        ownership::TokenError,
        session::{Event, Phase, Session},
    },
    host::{
        Host, HostError, Place,
        pidfd::PidFd,
        pty::{Key, Size},
    },
};

impl<H: Host> Engine<H> {
    pub(super) fn find(
        &self,
        id: &SessionId,
        caller: &Caller,
        need: Need,
    ) -> Result<&Session, Denied> {
        self.broker.access(id, &caller.connection, caller.token.as_deref(), need)
    }

    pub(super) fn owns(&self, session: &Session, caller: &Caller) -> bool {
        match &caller.token {
            Some(token) => self.broker.token_speaks_for(session, token).unwrap_or(false),
            None => self.broker.is_owner(session, &caller.connection),
        }
    }

    pub(super) fn states(&self, wanted: impl Fn(&Session) -> bool) -> Vec<State> {
        let wanted = self.broker.sessions().filter(|session| wanted(session));
        wanted
            .filter_map(|session| self.runs.get(&session.facts.id))
            .map(|run| State { size: run.size(), ..run.state.borrow().clone() })
            .collect()
    }

    /// Notes whether a session's processes are frozen. What is told of that after its end is not so any more.
    pub(super) fn paused(&mut self, id: &SessionId, paused: bool) {
        let lives = self.runs.get(id).is_some_and(|run| run.live.is_some());
        self.show(id, |state| state.paused = paused && lives);
        self.suspend(id);
    }

    /// A direct holder came or went; the size that it set is known at last.
    pub(super) fn held(&mut self, id: &SessionId, held: bool) {
        let Some(size) = self.runs.get(id).map(Run::size) else { return };
        self.show(id, |state| {
            state.held = held;
            state.size = size;
        });
        self.suspend(id);
    }

    pub(super) fn end(
        &mut self,
        id: &SessionId,
        caller: Caller,
        wish: EndWish,
    ) -> Result<watch::Receiver<State>, ControlError> {
        let state = self.runs.get(id).map(|run| run.state.subscribe());
        let state = state.ok_or_else(|| Denied::NoSuchSession(id.clone()))?;
        // A closed session answers anybody with its outcome, which is metadata.
        if state.borrow().view.outcome.is_some() {
            return Ok(state);
        }
        self.find(id, &caller, Need::Control)?;
        let requester = caller.connection.to_string();
        let event = match wish {
            EndWish::Close(within) => Event::CloseRequested { requester, within },
            EndWish::Kill => Event::KillRequested { requester },
        };
        self.on(id, event);
        Ok(state)
    }

    pub(super) fn claim(
        &mut self,
        token: &str,
        caller: &Connection,
    ) -> Result<Claimed, TokenError> {
        let claim = self.broker.claim(token, caller, &secret(), self.now())?;
        self.perform(claim.effects);
        claim.sessions.iter().for_each(|id| self.fence(id, caller));
        Ok(Claimed { token: claim.token.reveal().to_owned(), sessions: claim.sessions })
    }

    /// Takes a session from all but its owner: what they may not do by a call, they may not go on doing by a stream.
    fn fence(&self, id: &SessionId, owner: &Connection) {
        let terminal = self.runs.get(id).and_then(|run| run.channel.as_ref()?.terminal().cloned());
        let is_private = self.broker.session(id).is_some_and(|session| session.facts.private);
        if let Some(terminal) = terminal {
            terminal.fence(owner.as_str(), is_private);
        }
    }

    /// Makes a token for others; only the owner may, and no token speaks for it here.
    pub(super) fn share(
        &mut self,
        id: &SessionId,
        caller: &Caller,
        need: Need,
    ) -> Result<Token, ControlError> {
        self.find(id, caller, Need::Control)?;
        Ok(self.broker.share(id, need, &secret())?)
    }

    pub(super) fn forget(&mut self, id: &SessionId, caller: &Caller) -> Result<(), ControlError> {
        let session = self.find(id, caller, Need::Control)?;
        if session.outcome().is_none() {
            return Err(ControlError::NotClosed(id.clone()));
        }
        self.on(id, Event::Forgotten);
        Ok(())
    }

    pub(super) fn act(
        &mut self,
        id: &SessionId,
        caller: &Caller,
        act: Act,
        reply: oneshot::Sender<Result<(), ControlError>>,
    ) {
        let live = match self.live(id, caller) {
            Ok(live) => live,
            // A size after the end changes nothing and is no error: a client's window may outlive its tool.
            Err(ControlError::Closed(..) | ControlError::Closing(_))
                if matches!(act, Act::Resize(_)) =>
            {
                return answer(reply, Ok(()));
            }
            Err(error) => return answer(reply, Err(error)),
        };
        match act {
            Act::Resize(size) => answer(reply, self.resize(id, caller, &live, size)),
            Act::Signal(signal) => answer(reply, to_foreground(&live, signal)),
            Act::Interrupt => answer(reply, interrupt(&live)),
            Act::EndOfFile => answer(reply, end_of_file(id, &live)),
            Act::Freeze(frozen) => self.freeze(id, live, frozen, reply),
        }
    }

    fn live(&self, id: &SessionId, caller: &Caller) -> Result<Arc<Live<H::Place>>, ControlError> {
        if let Some(outcome) = self.broker.session(id).and_then(Session::outcome) {
            return Err(ControlError::Closed(id.clone(), Box::new(outcome.clone())));
        }
        match self.find(id, caller, Need::Control)?.phase {
            Phase::Running(_) => self
                .runs
                .get(id)
                .and_then(|run| run.live.clone())
                .ok_or_else(|| ControlError::Closing(id.clone())),
            Phase::Waiting
            | Phase::Opening
            | Phase::Aborting(_)
            | Phase::Closing { .. }
            | Phase::Closed { .. }
            | Phase::Gone => Err(ControlError::Closing(id.clone())),
        }
    }

    fn resize(
        &mut self,
        id: &SessionId,
        caller: &Caller,
        live: &Live<H::Place>,
        size: Size,
    ) -> Result<(), ControlError> {
        let Line::Terminal(terminal, _) = &live.line else {
            return Err(ControlError::NotATerminal(id.clone()));
        };
        let changed = terminal
            .resize_by(caller.connection.as_str(), size)
            .map_err(|error| HostError::system("resize the terminal", error))?;
        if changed {
            self.show(id, |state| state.size = size);
        }
        Ok(())
    }

    fn freeze(
        &self,
        id: &SessionId,
        live: Arc<Live<H::Place>>,
        frozen: bool,
        reply: oneshot::Sender<Result<(), ControlError>>,
    ) {
        let (id, reports) = (id.clone(), self.reports.clone());
        tokio::spawn(async move {
            let result = live.place.freeze(frozen).await;
            if result.is_ok() {
                let _ = reports.send(Report::Paused(id, frozen)).await;
            }
            answer(reply, result.map_err(ControlError::from));
        });
    }
}

fn to_foreground<P: Place>(live: &Live<P>, signal: i32) -> Result<(), ControlError> {
    let group = match &live.line {
        Line::Terminal(_, controller) => controller
            .foreground()
            .map_err(|error| HostError::system("find the foreground process group", error))?,
        // The leader of a session leads a process group of the same number (setsid(2)).
        Line::Pipes(_) => live.leader.as_ref().map(PidFd::pid),
    };
    if let Some(group) = group {
        live.place.signal_group(group, signal)?;
    }
    Ok(())
}

/// Ctrl-C is a signal only while the terminal makes it one; a program in raw mode reads the byte.
fn interrupt<P: Place>(live: &Live<P>) -> Result<(), ControlError> {
    let failed = |error| HostError::system("interrupt", error);
    let Line::Terminal(terminal, controller) = &live.line else {
        return to_foreground(live, nix::libc::SIGINT);
    };
    let modes = controller.modes().map_err(failed)?;
    if modes.signals {
        controller.press(Key::Interrupt).map_err(failed)?;
    } else {
        terminal.write(&[0x03])?;
    }
    Ok(())
}

/// The line discipline makes the end of input of a character, which can be another than Ctrl-D (termios(3), VEOF).
fn end_of_file<P: Place>(id: &SessionId, live: &Live<P>) -> Result<(), ControlError> {
    let (terminal, controller) = match &live.line {
        Line::Terminal(terminal, controller) => (terminal, controller),
        Line::Pipes(pipes) => return Ok(pipes.end_input().map(drop)?),
    };
    let modes = controller
        .modes()
        .map_err(|error| HostError::system("ask the terminal for its modes", error))?;
    if !modes.canonical {
        return Err(ControlError::RawMode(id.clone()));
    }
    terminal.write(&[modes.end_of_file])?;
    Ok(())
}
