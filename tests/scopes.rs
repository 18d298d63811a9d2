//! Sessions as scopes of a real user manager: where they are, how they end, and that nothing of them stays.

#![allow(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod support;

mod scopes {
    mod broker;
    mod confinement;
    mod doctor;
    mod ending;
    mod escape;
    mod journal;
    mod manager;
    mod many;
    mod placement;
    mod terminals;
    mod waiting;
}
