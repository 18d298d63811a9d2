//! The machine itself: what each phase makes of each event.

use super::{Cause, Emptied, Event, Phase, Running, Session};
use crate::{
    broker::{
        clock::Now,
        deadline::Key,
        effect::{Effect, How, OpenFailure},
        name::SessionId,
        outcome::{Ending, Outcome, Reason},
    },
    launch::spec::{Failure, Step},
};

impl Session {
    fn id(&self) -> SessionId {
        self.facts.id.clone()
    }

    pub(super) fn while_waiting(&self, event: Event) -> (Phase, Vec<Effect>) {
        match event {
            Event::Turn => (Phase::Opening, vec![Effect::Launch(self.id())]),
            Event::LaunchFailed(failure) => self.gone(OpenFailure::Launch(failure)),
            Event::CloseRequested { .. }
            | Event::KillRequested { .. }
            | Event::OwnerVanished
            | Event::GraceElapsed
            | Event::LeaseElapsed
            | Event::TimeoutElapsed
            | Event::SilenceElapsed
            | Event::Shutdown => match cause_of(&event) {
                Some(cause) => self.gone(OpenFailure::Ended(cause.reason)),
                None => (Phase::Waiting, Vec::new()),
            },
            Event::Started { .. }
            | Event::LeaderExited { .. }
            | Event::ScopeEmpty(_)
            | Event::Claimed
            | Event::Forgotten => (Phase::Waiting, Vec::new()),
        }
    }

    pub(super) fn while_opening(&mut self, event: Event, now: Now) -> (Phase, Vec<Effect>) {
        match event {
            Event::Started { pid, confinement } => {
                let running = Running { started_usec: now.wall_usec, pid, confinement };
                let mut effects = vec![Effect::Opened(self.id())];
                if let Some(timeout) = self.facts.timeout {
                    effects.push(Effect::Arm(Key::Timeout(self.id()), now.elapsed + timeout));
                }
                (Phase::Running(running), effects)
            }
            Event::LaunchFailed(failure) => self.gone(OpenFailure::Launch(failure)),
            // A caller that vanished before the reply cannot hold the token that would claim the session.
            Event::CloseRequested { .. }
            | Event::KillRequested { .. }
            | Event::OwnerVanished
            | Event::GraceElapsed
            | Event::LeaseElapsed
            | Event::TimeoutElapsed
            | Event::SilenceElapsed
            | Event::Shutdown => match cause_of(&event) {
                Some(cause) => (Phase::Aborting(cause), vec![Effect::AbortLaunch(self.id())]),
                None => (Phase::Opening, Vec::new()),
            },
            Event::Turn
            | Event::LeaderExited { .. }
            | Event::ScopeEmpty(_)
            | Event::Claimed
            | Event::Forgotten => (Phase::Opening, Vec::new()),
        }
    }

    pub(super) fn while_aborting(
        &self,
        cause: Cause,
        event: Event,
        now: Now,
    ) -> (Phase, Vec<Effect>) {
        match event {
            Event::Started { pid, confinement } => {
                let ran = Running { started_usec: now.wall_usec, pid, confinement };
                let effects = vec![Effect::Opened(self.id()), Effect::End(self.id(), How::Kill)];
                (Phase::Closing { ran, cause, ending: None }, effects)
            }
            Event::LaunchFailed(_) => self.gone(OpenFailure::Ended(cause.reason)),
            Event::Turn
            | Event::LeaderExited { .. }
            | Event::ScopeEmpty(_)
            | Event::CloseRequested { .. }
            | Event::KillRequested { .. }
            | Event::OwnerVanished
            | Event::Claimed
            | Event::GraceElapsed
            | Event::LeaseElapsed
            | Event::TimeoutElapsed
            | Event::SilenceElapsed
            | Event::Forgotten
            | Event::Shutdown => (Phase::Aborting(cause), Vec::new()),
        }
    }

    pub(super) fn while_running(
        &mut self,
        ran: Running,
        event: Event,
        now: Now,
    ) -> (Phase, Vec<Effect>) {
        match event {
            Event::LeaderExited { ending, reason } => {
                let cause = Cause { reason, requester: String::new() };
                let how = How::Stop { within: self.facts.stop_timeout };
                self.closing(ran, cause, Some(ending), how)
            }
            Event::OwnerVanished if !self.facts.grace.is_zero() => {
                let deadline = now.elapsed + self.facts.grace;
                self.grace_deadline_usec = now.wall_at(deadline);
                let arm = Effect::Arm(Key::Grace(self.id()), deadline);
                (Phase::Running(ran), vec![arm, Effect::Changed(self.id())])
            }
            Event::Claimed => {
                self.grace_deadline_usec = 0;
                let disarm = Effect::Disarm(Key::Grace(self.id()));
                (Phase::Running(ran), vec![disarm, Effect::Changed(self.id())])
            }
            Event::CloseRequested { .. }
            | Event::KillRequested { .. }
            | Event::OwnerVanished
            | Event::GraceElapsed
            | Event::LeaseElapsed
            | Event::TimeoutElapsed
            | Event::SilenceElapsed
            | Event::Shutdown => match cause_of(&event) {
                Some(cause) => self.closing(ran, cause, None, self.how(&event)),
                None => (Phase::Running(ran), Vec::new()),
            },
            Event::Turn
            | Event::Started { .. }
            | Event::LaunchFailed(_)
            | Event::ScopeEmpty(_)
            | Event::Forgotten => (Phase::Running(ran), Vec::new()),
        }
    }

    pub(super) fn while_closing(
        &mut self,
        ran: Running,
        cause: Cause,
        ending: Option<Ending>,
        event: Event,
        now: Now,
    ) -> (Phase, Vec<Effect>) {
        match event {
            Event::LeaderExited { ending: how, .. } => {
                (Phase::Closing { ran, cause, ending: ending.or(Some(how)) }, Vec::new())
            }
            Event::ScopeEmpty(emptied) => {
                let outcome = outcome(&ran, cause, ending, emptied, now);
                (Phase::Closed { ran, outcome }, vec![Effect::Closed(self.id())])
            }
            Event::KillRequested { .. } => {
                let kill = Effect::End(self.id(), How::Kill);
                (Phase::Closing { ran, cause, ending }, vec![kill])
            }
            Event::CloseRequested { within: Some(within), .. } => {
                let within = within.min(self.facts.stop_timeout);
                let sooner = Effect::End(self.id(), How::Stop { within });
                (Phase::Closing { ran, cause, ending }, vec![sooner])
            }
            Event::OwnerVanished | Event::Claimed => {
                (Phase::Closing { ran, cause, ending }, vec![Effect::Changed(self.id())])
            }
            Event::Turn
            | Event::Started { .. }
            | Event::LaunchFailed(_)
            | Event::CloseRequested { within: None, .. }
            | Event::GraceElapsed
            | Event::LeaseElapsed
            | Event::TimeoutElapsed
            | Event::SilenceElapsed
            | Event::Forgotten
            | Event::Shutdown => (Phase::Closing { ran, cause, ending }, Vec::new()),
        }
    }

    pub(super) fn while_closed(
        &self,
        ran: Running,
        outcome: Outcome,
        event: Event,
    ) -> (Phase, Vec<Effect>) {
        match event {
            Event::Forgotten => (Phase::Gone, vec![Effect::Retired(self.id())]),
            Event::OwnerVanished | Event::Claimed => {
                (Phase::Closed { ran, outcome }, vec![Effect::Changed(self.id())])
            }
            Event::Turn
            | Event::Started { .. }
            | Event::LaunchFailed(_)
            | Event::LeaderExited { .. }
            | Event::ScopeEmpty(_)
            | Event::CloseRequested { .. }
            | Event::KillRequested { .. }
            | Event::GraceElapsed
            | Event::LeaseElapsed
            | Event::TimeoutElapsed
            | Event::SilenceElapsed
            | Event::Shutdown => (Phase::Closed { ran, outcome }, Vec::new()),
        }
    }

    fn gone(&self, failure: OpenFailure) -> (Phase, Vec<Effect>) {
        (Phase::Gone, vec![Effect::OpenFailed(self.id(), failure)])
    }

    /// How hard an event ends a running session.
    fn how(&self, event: &Event) -> How {
        let longest = self.facts.stop_timeout;
        match event {
            Event::KillRequested { .. } => How::Kill,
            Event::CloseRequested { within: Some(within), .. } => {
                How::Stop { within: longest.min(*within) }
            }
            _ => How::Stop { within: longest },
        }
    }

    fn closing(
        &mut self,
        ran: Running,
        cause: Cause,
        ending: Option<Ending>,
        how: How,
    ) -> (Phase, Vec<Effect>) {
        self.grace_deadline_usec = 0;
        let effects = vec![
            Effect::Disarm(Key::Grace(self.id())),
            Effect::Disarm(Key::Timeout(self.id())),
            Effect::End(self.id(), how),
            Effect::Changed(self.id()),
        ];
        (Phase::Closing { ran, cause, ending }, effects)
    }
}

/// The reason that an event forces, if it is one that ends a session.
fn cause_of(event: &Event) -> Option<Cause> {
    let (reason, requester) = match event {
        Event::CloseRequested { requester, .. } => (Reason::ClosedByOwner, requester.clone()),
        Event::KillRequested { requester } => (Reason::KilledByOwner, requester.clone()),
        Event::OwnerVanished | Event::GraceElapsed => (Reason::OwnerVanished, String::new()),
        Event::LeaseElapsed => (Reason::LeaseExpired, String::new()),
        Event::TimeoutElapsed => (Reason::Timeout, String::new()),
        Event::SilenceElapsed => (Reason::SilenceTimeout, String::new()),
        Event::Shutdown => (Reason::BrokerShutdown, String::new()),
        Event::Turn
        | Event::Started { .. }
        | Event::LaunchFailed(_)
        | Event::LeaderExited { .. }
        | Event::ScopeEmpty(_)
        | Event::Claimed
        | Event::Forgotten => return None,
    };
    Some(Cause { reason, requester })
}

/// The end of a leader that was not reaped: it survived KILL, as one does that hangs in the kernel.
fn unlearnt() -> Ending {
    let message = "the tool could not be confirmed dead".to_owned();
    Ending::Failed(Failure { step: Step::Wait, errno: 0, message })
}

pub(super) fn outcome(
    ran: &Running,
    cause: Cause,
    ending: Option<Ending>,
    emptied: Emptied,
    now: Now,
) -> Outcome {
    Outcome {
        ending: ending.or(emptied.ending).unwrap_or_else(unlearnt),
        reason: cause.reason,
        requester: cause.requester,
        started_usec: ran.started_usec,
        ended_usec: now.wall_usec.max(ran.started_usec),
        bytes_out: emptied.bytes_out,
        bytes_dropped: emptied.bytes_dropped,
        unseen: emptied.unseen,
        survivors: emptied.survivors,
        usage: emptied.usage,
    }
}
