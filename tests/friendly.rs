//! Ordinary programs do their ordinary work in a session, in every tier that this machine has. What a tier breaks is named
//! here, and is broken indeed: no more, no less.

#![allow(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod support;

mod friendly {
    mod driven;
    mod programs;
    mod toolchain;

    mod suite;
}
