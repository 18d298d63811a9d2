//! Real programs in real sessions, used as a person would: keys in, screens out. Every one is confined by the shipped
//! policy, and runs as a scope of a real user manager.

#![allow(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod support;

mod cross {
    mod crash;
    mod git;
    mod heirs;
    mod lazygit;
    mod log;
    mod programs;
    mod shell;
}
