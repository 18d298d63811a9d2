//! What the benchmarks share: the broker under test, commands on a pty, where things run, what they cost, the report.

pub mod broker;
pub mod cost;
pub mod launch;
pub mod machine;
pub mod peer;
pub mod placement;
pub mod report;
