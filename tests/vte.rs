//! A session in a VTE window on a real display server: what a person would see of it, judged by pixels.

#![allow(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod support;

mod vte {
    mod display;
    mod pane;
}
