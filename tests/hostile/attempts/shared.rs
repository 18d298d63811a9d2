//! What programs share without files.

use crate::hostile::attempt::{Attempt, words};

pub fn attempts() -> Vec<Attempt> {
    vec![
        Attempt::new("write to System V shared memory", |s| {
            words!["write-segment", s.shared.id("segment")]
        })
        .trace(|s| s.shared.changed("segment")),
        Attempt::new("send to a System V queue", |s| {
            words!["send-message", s.shared.id("messages")]
        })
        .trace(|s| s.shared.changed("messages")),
        Attempt::new("raise a System V semaphore", |s| {
            words!["raise-semaphore", s.shared.id("semaphore")]
        })
        .trace(|s| s.shared.changed("semaphore")),
        Attempt::new("send to a POSIX queue", |s| {
            words!["send-to-queue", format!("/{}", s.shared.name())]
        })
        .trace(|s| s.shared.changed("queue")),
        Attempt::new("read a key of the user's keyring", |s| words!["read-key", s.shared.name()]),
        Attempt::new("add a key to the user's keyring", |s| {
            words!["add-key", format!("{}-added", s.shared.name())]
        })
        .trace(|s| s.shared.changed("keys")),
    ]
}
