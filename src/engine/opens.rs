//! Opens: a session is added, or one that is there is taken; and each is answered once.

use std::{mem, time::Duration};

use tokio::sync::oneshot;

use super::{
    command::{OpenError, OpenRequest, Opened},
    core::{Engine, answer, secret},
    notices::Notice,
    run::{Run, State},
};
use crate::{
    broker::{
        clock::Now,
        effect::OpenFailure,
        events::What,
        lease::Connection,
        name::{SessionId, UnitName},
        registry::LeaseWish,
        session::{Facts, IoWish},
    },
    host::Host,
    policy::{
        request::{LeaseKind, Stdin},
        resolved::Resolved,
    },
};

/// Who waits for the answer of an open.
type Reply = oneshot::Sender<Result<Opened, OpenError>>;

impl<H: Host> Engine<H> {
    pub(super) fn open(&mut self, request: OpenRequest) {
        let OpenRequest { opener, id, resolved, reply } = request;
        if !self.stopping.is_empty() {
            return answer(reply, Err(OpenError::Stopping));
        }
        let wish = match resolved.lease {
            LeaseKind::Caller => LeaseWish::Caller,
            LeaseKind::Token { ttl } => LeaseWish::Token {
                ttl: ttl
                    .unwrap_or(Duration::from_millis(self.settings.limits.lease_ttl_default_ms)),
            },
        };
        let facts = facts(opener, id.clone(), &resolved, self.now());
        if resolved.reuse
            && let Some(there) = self.broker.reusable(&facts, &wish).cloned()
        {
            return self.reuse(&there, reply);
        }
        let opened = self.broker.open(facts, &wish, &secret(), self.now());
        let effects = match opened {
            Ok(effects) => effects,
            Err(error) => return answer(reply, Err(error.into())),
        };
        let Some(session) = self.broker.session(&id) else {
            return answer(reply, Err(OpenError::Stopping));
        };
        let view = self.broker.view(session);
        let state = State::asked(view, &resolved);
        self.runs.insert(id, Run::new(state, resolved, reply));
        self.perform(effects);
    }

    pub(super) fn opened(&mut self, id: &SessionId) {
        self.show(id, |_| ());
        let replies = self.runs.get_mut(id).map(|run| mem::take(&mut run.replies));
        let mut replies = replies.unwrap_or_default().into_iter();
        if let Some(reply) = replies.next() {
            self.log(id, "session opened");
            self.tell(Notice::Opened(id.clone()));
            self.give(id, reply, false);
        }
        for reply in replies {
            self.reuse(id, reply);
        }
    }

    /// Answers an open with a session that is there; one that is on its way is waited for, and if it fails, so does
    /// this open.
    fn reuse(&mut self, id: &SessionId, reply: Reply) {
        match self.runs.get_mut(id) {
            Some(run) if run.live.is_none() => run.replies.push(reply),
            _ => {
                self.broker.record(id, What::Reused, self.now());
                self.give(id, reply, true);
            }
        }
    }

    fn give(&self, id: &SessionId, reply: Reply, reused: bool) {
        let token = self.broker.token(id).map(|token| token.reveal().to_owned());
        let run = self.runs.get(id);
        let channel = run.and_then(|run| run.channel.clone());
        if let (Some(run), Some(channel), Some(token)) = (run, channel, token) {
            let state = run.state.subscribe();
            answer(reply, Ok(Opened { state, channel, token, reused }));
        }
    }

    pub(super) fn open_failed(&mut self, id: &SessionId, failure: &OpenFailure) {
        let Some(run) = self.runs.remove(id) else { return };
        if let OpenFailure::Launch(failure) = failure {
            let step = failure.step.as_str();
            tracing::info!(ST2_SESSION = %id, step, errno = failure.errno, "session not opened: {failure}");
        }
        for reply in run.replies {
            answer(reply, Err(OpenError::Failed(failure.clone())));
        }
    }
}

fn facts(opener: Connection, id: SessionId, resolved: &Resolved, now: Now) -> Facts {
    let tool = resolved.tool.clone();
    Facts {
        unit: UnitName::scope(&tool, &id),
        id,
        opener,
        tool,
        command: resolved.spec.argv.clone(),
        prompt_words: resolved.prompt_words,
        workspace: resolved.workspace.clone(),
        cwd: resolved.cwd.clone(),
        io: IoWish {
            io: resolved.spec.io,
            fallback: resolved.io_fallback,
            input: resolved.stdin == Stdin::Open,
        },
        created_usec: now.wall_usec,
        labels: resolved.labels.clone(),
        private: resolved.private,
        grace: resolved.grace,
        timeout: resolved.timeout,
        silence: resolved.silence,
        stop_timeout: resolved.stop_timeout,
    }
}
