//! Ownership, errors and limits, on a real bus, without a service manager.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

mod bus {
    mod bad_input;
    mod hardening;
    mod limits;
    mod ownership;
    mod sessions;
}
