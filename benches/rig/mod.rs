//! What the benchmarks share: the broker under test, its peers, terminals and their bytes, where things run, what they
//! cost, the report.

pub mod broker;
pub mod bulk;
pub mod cgroup;
pub mod cost;
pub mod cue;
pub mod launch;
pub mod line;
pub mod machine;
pub mod pack;
pub mod peer;
pub mod placement;
pub mod process;
pub mod report;
pub mod stage;
