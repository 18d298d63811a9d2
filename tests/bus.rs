//! Ownership, errors and limits, on a real bus, without a service manager.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

#[path = "../examples/pane.rs"]
#[allow(dead_code, reason = "its main is not what is tested")]
mod pane;

mod bus {
    mod appearance;
    mod bad_input;
    mod client;
    mod direct;
    mod events;
    mod fence;
    mod flow;
    mod framed;
    mod hardening;
    mod limits;
    mod ownership;
    mod pipes;
    mod quiet;
    mod readers;
    mod reuse;
    mod sessions;
    mod sharing;
    mod sizes;
    mod typing;
}
