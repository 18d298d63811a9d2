//! The documentation, held against what it documents: the commands of the README are run, line by line and in order, and
//! what it shows is compared; words of the contract, variables and links are looked up.

#![allow(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

#[path = "../examples/ask.rs"]
#[allow(dead_code, reason = "its main is not what is tested")]
mod ask;
#[path = "docs/bash.rs"]
mod bash;
#[path = "docs/markdown.rs"]
mod markdown;
#[path = "docs/walkthrough.rs"]
mod walkthrough;
#[path = "docs/words.rs"]
mod words;
