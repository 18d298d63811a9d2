//! A tool that attacks: every way out that works for a program of the same user in the same place is closed to a tool, in
//! every tier that this machine has, or stated as open by the session itself.

#![allow(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod support;

mod hostile {
    mod attempt;
    mod attempts;
    mod control;
    mod from;
    mod judge;
    mod leftovers;
    mod scene;
    mod sessions;
    mod shared;
    mod side;
    mod swap;
    mod table;
    mod victims;

    mod suite;
}
