//! `st2-tools mcp` with the clients that agent hosts are made of: the official SDKs, in Python and in TypeScript. What
//! they do is written in their languages, in tests/agents; here is one test for each, by its name.

#![allow(clippy::unwrap_used, reason = "what cannot be had fails the test")]

mod support;

mod agents {
    mod hosts;
    mod python;
    mod typescript;
}
