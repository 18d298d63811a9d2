//! A reader that follows the output of a session.

use tokio_util::sync::CancellationToken;

use crate::host::pty::Size;

/// A subscription's name, unique within its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SubscriptionId(pub(super) u64);

#[cfg(test)]
impl SubscriptionId {
    /// Any name.
    pub(super) fn test(number: u64) -> Self {
        Self(number)
    }
}

/// A reader that follows the output and must miss none of it.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) id: SubscriptionId,
    pub(super) begin: u64,
    pub(super) cursor: u64,
    /// Where it ends, if not with the output.
    pub(super) until: Option<u64>,
    pub(super) cut: CancellationToken,
    pub(super) kind: Kind,
    /// The last change of size that it was told of, where it is told of any.
    pub(super) told: Option<u64>,
}

/// What a subscriber is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    /// Its client answers what the tool asks of terminals.
    pub(super) answers: bool,
    /// It is told of changes of size.
    pub(super) sizes: bool,
}

/// Where a subscriber begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Begin {
    /// The first byte of the output that it is shown.
    pub(super) cursor: u64,
    /// The size in force there.
    pub(super) size: Size,
}

/// What a subscriber has in front of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pending {
    /// These bytes; more may follow.
    Bytes(Vec<u8>),
    /// From here on, this is the size.
    Size(Size),
    /// Nothing now.
    Nothing,
    /// Nothing, and nothing will follow: the session ended with this exit code.
    End(i32),
    /// Nothing, and nothing will follow here, though the session goes on.
    Over,
}

impl Subscription {
    /// Whether its client is to answer what the tool has asked up to this byte: it is shown that, or was.
    pub(super) fn answers(&self, asked_at: u64) -> bool {
        self.kind.answers
            && self.begin < asked_at
            && self.until.is_none_or(|until| asked_at <= until)
    }
}
